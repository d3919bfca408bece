import numpy as np
from numpy.linalg._linalg import EighResult

from compactla.linalg.places import as_arrays
from compactla.linalg.stacks import Result, Stacked

def eigh(a, UPLO="L", *, on_error="raise", compute="double", threads=None):
    given = as_arrays(a)
    (a,), wrap = given
    w, v = EIGH((a,), (UPLO,), on_error, compute, threads)
    return EighResult(w, v)

def eigvalsh(a, UPLO="L", *, on_error="raise", compute="double", threads=None):
    given = as_arrays(a)
    (a,), wrap = given
    w, = EIGVALSH((a,), (UPLO,), on_error, compute, threads)
    return w

EIGH = Stacked("eigh", ("nn",), (Result("n", "real"), Result("nn")), lambda n, **_: 9*n**3, lambda a, uplo: np.linalg.eigh(a, uplo), message="Eigenvalues did not converge", options=("uplo",))
EIGVALSH = Stacked("eigvalsh", ("nn",), (Result("n", "real"),), lambda n, **_: 3*n**3, lambda a, uplo: np.linalg.eigvalsh(a, uplo), message="Eigenvalues did not converge", options=("uplo",))
