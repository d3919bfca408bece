"""Vector utilisation on the CPU: how many lanes of a vector have useful work in a floating-point instruction.

That is the measure of Kim et al., "Designing Vector-Friendly Compact BLAS and LAPACK Kernels" (SC17). It is taken from
the assembly, where each instruction counts once, in loops too, and from the packs, whose last one may be filled in
part.
"""

import re
from typing import NamedTuple

from compactla import dump
from compactla.cpu.emit.machine import machine

# Of x86, whose scalars are ss and sd, and of Arm.
X86 = re.compile(
    r"^\s*v?(?:add|sub|mul|div|sqrt|min|max|rcp\d*|rsqrt\d*|addsub|fn?m(?:add|sub|addsub|subadd)\d*)([ps])([sd])\s(.*)$"
)
ARM = re.compile(r"^\s*f(?:n?m?(?:add|sub|ul|la|ls)|div|sqrt|max|min|rec|rsqrt)\w*\s+(?:v\d+\.(\d+)([sd])|([sd])\d+)")
REGISTER = {"x": 16, "y": 32, "z": 64}  # bytes of xmm, ymm and zmm
SIZE = {"s": 4, "d": 8}


class Utilisation(NamedTuple):
    """Lanes of the code of a case.

    Attributes
    ----------
    instructions : int
        Floating-point instructions.
    lanes : float
        Lanes that these work on, on average.
    width : int
        Lanes of a register.
    filled : float
        How many of the lanes hold a matrix of the batch, of all that are worked on.
    """

    instructions: int
    lanes: float
    width: int
    filled: float

    @property
    def useful(self) -> float:
        """Lanes with useful work, on average."""
        return self.lanes * self.filled


def utilisation(case) -> Utilisation:
    """Vector utilisation of a case on the CPU, whose kernels this process has not compiled yet."""
    with dump.collected() as made:
        case.call()
    found = [lanes for code in made for lanes in lanes_in(str(code.texts.get("s", "")))]
    width = machine()[0] // (case.dtype.itemsize // (2 if case.dtype.kind == "c" else 1))
    mean = sum(found) / len(found) if found else 0.0
    return Utilisation(len(found), mean, width, case.nm / (case.npack * case.vlen))


def lanes_in(assembly: str) -> list[int]:
    """Lanes of each floating-point instruction in the assembly, 1 of scalars."""
    found = []
    for line in assembly.splitlines():
        if x86 := X86.match(line):
            packed, kind, operands = x86.groups()
            registers = re.findall(r"%?([xyz])mm\d", operands)
            if registers:
                found.append(max(REGISTER[name] for name in registers) // SIZE[kind] if packed == "p" else 1)
        elif arm := ARM.match(line):
            found.append(int(arm[1]) if arm[1] else 1)
    return found
