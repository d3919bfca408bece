"""Run OpenCL kernels in Oclgrind, a simulated device: `.venv/bin/python .ci/oclgrind.py`.

A test in which it reports anything fails: races, invalid accesses, barriers that some work-items don't reach, reads of
what nobody has written. Kernels are not optimized, since a compiler leaves out reads that are not used; nor are
calls inlined, and pointers are not `restrict`, both of which bring words of LLVM that Oclgrind doesn't know. It comes
from Debian or a relative, and is left out elsewhere.

This file is a plugin of pytest, too: what is below `main`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = "-cl-opt-disable", "-Drestrict=", "-DCLA_INLINE=static"

# Small tests of all families of kernels. Oclgrind crashes where several threads use it.
TESTS = {
    "opencl_choices": (
        "gemm trsm getrfnp every_kernel_of_every_routine columns_of_no_matrix lines lines_with_an_eye_on_the_pivots "
        "teams_do_about_pivots_what_one_work_item_does lines_of_any_rows parts_of_lines_with_inverses "
        "moves_through_local_memory"
    ),
    "gemm_opencl": "kernels_of_gpus sequences",
    "linalg_opencl": "as_numpy solve through_local_memory what_fails",
    "linalg_grids": (
        "the_first_of_equal_pivots cho_factor_on_grids triangles_that_are_singular rows_that_are_none "
        "definite_systems_on_grids ranks_on_grids"
    ),
    "kron": "one_pass_of_gpus",
    "bands": (
        "devices tiles_on_devices minors_on_devices[opencl0-d] teams_on_devices teams_that_swap_rows_on_devices "
        "short_systems_of_teams_that_swap_rows"
    ),
    "solvers": (
        "a_system_that_fails_stays_alone[opencl0-BlockTridiag-float64] results[opencl0-Banded-complex64] "
        "results[opencl0-BandedSPD-complex64]"
    ),
    "storage": "factors_are_rounded_to_nearest",
    "precond": "csr_equals_bsr",
    "relaxation": "rings",
    "batchcsr": "products",
    "batchlu": "updates_on_devices rounds incomplete_factors_in_rounds",
    "batch_krylov": "approximate_inverses right_hand_sides_of_zeros",
}


def main():
    sys.path.insert(0, str(ROOT / "tests"))
    from run import PYTHON, apt_install

    def libraries():
        return sorted(Path("/usr/lib").rglob("liboclgrind-rt-icd.so"))

    if not libraries() and not apt_install("oclgrind"):
        print("Kernels are not run in Oclgrind: that takes Debian or a relative, its package oclgrind, and root")
        return 0
    environment = {
        "OCL_ICD_VENDORS": str(libraries()[0]),
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_UNINITIALIZED": "1",
        "OCLGRIND_MAX_ERRORS": "1000000",
        "OCLGRIND_NUM_THREADS": "1",
        "PYTEST_PLUGINS": "oclgrind",
        "PYTHONPATH": str(ROOT / ".ci"),
        "NUMBA_OPT": "0",
    }
    tests = [
        f"tests/test_{file}.py" + (f"::test_{name}" if name else "")
        for file, names in TESTS.items()
        for name in names.split() or [""]
    ]

    def run(tests, *options):
        command = PYTHON, "-m", "pytest", "--show-capture=no", "-k", "not numba", *options, *tests
        return subprocess.run(command, cwd=ROOT, env=os.environ | environment).returncode

    if (code := run(tests, "--numprocesses=auto")) != 1:
        return code
    print("What failed runs again by itself: Oclgrind once took memory that was written for memory that was not")
    return run(json.loads((ROOT / ".pytest_cache/v/cache/lastfailed").read_text()))


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests():
    """Before it is known which devices there are."""
    import pyopencl
    import pyopencl.array

    from compactla.gpu import program

    platforms, options, made = pyopencl.get_platforms, program.build_options, pyopencl.array.Array.__init__
    kept = []

    def keep(self, *args, **more):
        """Oclgrind takes memory that was freed and is used again for what it was."""
        made(self, *args, **more)
        kept.append(self.base_data)

    pyopencl.get_platforms = lambda: [found for found in platforms() if found.name == "Oclgrind"]
    program.build_options = lambda *args: [*OPTIONS, *options(*args)]
    pyopencl.array.Array.__init__ = keep


def pytest_collection_modifyitems(items):
    """All routines, each with a type of its own; of all else what `.ci/run` runs."""
    from rows import own

    def chosen(item):
        given = item.callspec.params if hasattr(item, "callspec") else {}
        if {"name", "kernel"} <= given.keys():  # of a routine
            return given.get("dtype", own(given["name"])) == own(given["name"])
        return item.get_closest_marker("exhaustive") is None

    items[:] = filter(chosen, items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call" and report.passed and report.capstderr:
        report.outcome, report.longrepr = "failed", report.capstderr[:4000]
    return report


if __name__ == "__main__":
    sys.exit(main())
