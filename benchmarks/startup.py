"""The start of a new process: the import, and the first call of each routine with a cache and without."""

import subprocess
import sys

from compactla import routine

BATCH = """
import numpy as np
import compactla as cla
a = np.tile(np.eye(5), (64, 1, 1))
cla.pack(a.astype(np.float32))  # Numba's own start is over then
"""

LINES = f"""{BATCH}
diag = np.tile(np.eye(5), (64, 4, 1, 1))
T = cla.BlockTridiag(diag[:, 1:] / 4, diag, diag[:, 1:] / 4)
"""

EMPTY_CACHE = """
import os, tempfile
folder = tempfile.TemporaryDirectory()
os.environ["NUMBA_CACHE_DIR"] = folder.name
"""

CALLS = {"pack": ("cla.pack(a)", BATCH)}
for _row in map(routine.named, routine.in_order()):
    _number = _row.numbers([5] * len(_row.letters))
    _shapes = [tuple(_number[letter] for letter in A.sizes) for A in _row.inputs if not A.kind]
    _packs = [f"cla.pack(np.tile(np.eye{shape}, (64, 1, 1)))" for shape in _shapes]
    for _i in (i for i, A in enumerate(_row.inputs) if A.kind):
        _packs.insert(_i, "np.tile(np.arange(5), (64, 1))")
    CALLS[_row.name] = f"cla.{_row.name}(*packs)", f"{BATCH}packs = [{', '.join(_packs)}]\n"
CALLS["factor"] = "T.factor()", LINES


class Process:
    """The import, and all until the first pack is there"""

    version = "4"
    timeout = 300

    def timeraw_import(self):
        return "import compactla"

    def timeraw_first_pack(self):
        return BATCH


class FirstCall:
    """The first call of a routine in a process, its operands at hand"""

    version = "4"
    timeout = 300
    params = tuple(CALLS)
    param_names = ("routine",)

    def setup(self, routine):
        call, operands = CALLS[routine]
        subprocess.run([sys.executable, "-c", operands + call], check=True)  # fills the cache

    def timeraw_cached(self, routine):
        return CALLS[routine]

    def timeraw_compiled(self, routine):
        call, operands = CALLS[routine]
        return call, EMPTY_CACHE + operands
