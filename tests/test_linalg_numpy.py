"""NumPy's own tests of numpy.linalg, with our functions in the place of NumPy's, and with NumPy patched."""

import numpy as np
import pytest

import compactla
from compactla import linalg

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
TESTS = "linalg.tests.test_linalg", "linalg.tests.test_regression", "matrixlib.tests.test_matrix_linalg"
# Those of what we do not have, and those that start processes or want much memory.
OTHERS = "norm", "multidot", "tensor", "xerbla", "sdot", "blas64", "outer", "cross", "trace", "diagonal", "openblas"


@pytest.fixture(autouse=True, params=["replaced", "patched"])
def in_the_place_of_numpy(request, monkeypatch):
    if request.param == "patched":
        with compactla.patch_numpy():
            yield
        return
    for name in np.linalg.__all__:
        if hasattr(linalg, name):
            monkeypatch.setattr(np.linalg, name, getattr(linalg, name))
    yield


for module in [pytest.importorskip(f"numpy.{name}") for name in TESTS]:
    for name, test in vars(module).items():
        own = getattr(test, "__module__", "") == module.__name__
        if own and name.lower().startswith("test") and not any(other in name.lower() for other in OTHERS):
            if hasattr(test, "test_openblas_threading"):  # hundreds of large products by OpenBLAS
                test = type(name, (test,), {"test_openblas_threading": None})
            globals()[f"{name}_{module.__name__.partition('test_')[2]}"] = test
