"""The preconditioner in PETSc, on one rank and on two.

petsc4py is Debian's, for Debian's Python, so that the tests are in a program of their own, tests/petsc_cases.py.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from processes import ROOT, SECONDS

PYTHON = os.environ.get("PETSC_PYTHON")
HERE = Path(__file__).resolve().parent
NEEDED = "needs petsc4py: python3 tests/run.py gets it, as root on Debian"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PYTHON, reason=NEEDED)]


def run(arguments, ranks):
    """The output of a program on so many ranks."""
    path, cache = os.pathsep.join([str(ROOT), str(HERE)]), Path(PYTHON).parent.parent / "numba"
    settings = {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(cache), "NUMBA_NUM_THREADS": "1"}
    command = [PYTHON, *map(str, arguments)]
    if ranks > 1:
        options = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
        command = [shutil.which("mpirun"), *options, "-n", str(ranks), *command]
    environment = {**os.environ, **settings}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.parametrize("ranks", [1, 2])
def test_petsc(tmp_path, ranks):
    program = HERE / "petsc_cases.py"
    tests = re.findall(r"^def (test_\w+)", program.read_text(), re.MULTILINE)
    assert run([program, tmp_path], ranks).split() == tests


def test_example():
    out = run(["-m", "compactla.examples.petsc_wall", "--cells", "24", "32"], 1)
    lines, incomplete, jacobi = map(int, re.findall(r": (\d+) iterations", out))
    assert max(lines, incomplete) < jacobi / 3
    assert max(map(float, re.findall(r"relative residual (\S+)", out)[:2])) < 1e-7


END = """
from petsc4py import PETSc

A = PETSc.Mat().createAIJ((8, 8), nnz=1)
A.assemble()
A.shift(2)
x, b = A.createVecs()
b.set(1)
options = PETSc.Options()
options["outer_pc_type"] = "asm"
for prefix in ("", "outer_sub_"):
    options[prefix + "pc_type"], options[prefix + "pc_python_type"] = "python", "compactla.petsc.LinePC"
ksps = [PETSc.KSP().create(), PETSc.KSP().create()]
ksps[1].setOptionsPrefix("outer_")
for ksp in ksps:
    ksp.setOperators(A)
    ksp.setFromOptions()
    ksp.solve(b, x)
largest = x.max()[1]
if not A.comm.rank:
    print(f"{largest:.3f}")
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_end_of_a_program(ranks):
    """A program ends well though nothing is destroyed, be the PC that of a global KSP, or of one within."""
    assert run(["-c", END], ranks) == "0.500\n"


def test_weak_scaling():
    """The benchmark runs, on the smallest problem."""
    found = json.loads(run([ROOT / "benchmarks" / "weak_scaling.py", "--lines", 4, "--length", 8], 2))
    assert found["iterations"] > 1 and found["step"] > found["factor"] > 0 and found["exchange"] > 0
