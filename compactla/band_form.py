"""The form of band matrices, for which kernels are compiled."""

from typing import NamedTuple

WIDE = 10  # diagonals beside the main one


class Form(NamedTuple):
    """The form of band matrices.

    Attributes
    ----------
    name : str
        "tridiag", "ring" (tridiagonal, closed to a ring), "banded" or "spd".
    kl, ku : int
        Diagonals below and above the main one that there are while a matrix is factored. Rings are folded: they have 2.
    pivoting : bool
        Whether rows are swapped.
    lower : bool
        Whether the diagonals of "spd" are the lower ones.
    """

    name: str
    kl: int
    ku: int
    pivoting: bool = False
    lower: bool = False

    def __str__(self) -> str:
        periodic, pivoting = self.name == "ring", f"pivoting={self.pivoting}"
        words = {"spd": f"u={self.ku}", "banded": f"l={self.kl}, u={self.ku}, {pivoting}"}
        return words.get(self.name, f"periodic={periodic}, {pivoting}")

    @property
    def stored(self) -> int:
        """Diagonals that are given."""
        return 3 if self.name == "ring" else self.ku + 1 if self.name == "spd" else self.kl + self.ku + 1

    @property
    def reach(self) -> int:
        """Diagonals above the main one of the factor U; of "spd" those of L^H."""
        return self.ku + self.kl * self.pivoting

    @property
    def wide(self) -> bool:
        """Whether the rows that a pivot touches are too many for registers."""
        return self.kl + self.ku >= WIDE

    @property
    def widths(self) -> tuple[int, int]:
        """Diagonals of the factor U, and of L where it is kept beside U: not of "spd", nor of wide bands."""
        if self.wide:
            return self.kl + self.reach + 1, 0
        return self.reach + 1, 0 if self.name == "spd" else self.kl

    @property
    def module(self) -> str:
        """The file of `compactla.cpu.bands` that has the kernels."""
        return "in_memory" if self.wide else "in_registers"
