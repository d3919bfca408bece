"""What is known of band matrices when kernels are compiled."""

from typing import NamedTuple


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

    @property
    def stored(self) -> int:
        """Diagonals that are given."""
        return 3 if self.name == "ring" else self.ku + 1 if self.name == "spd" else self.kl + self.ku + 1

    @property
    def reach(self) -> int:
        """Diagonals above the main one of the factor U; of "spd" those of L^H."""
        return self.ku + self.kl * self.pivoting

    @property
    def multiples(self) -> int:
        """Diagonals of the factor L that are kept beside U."""
        return 0 if self.name == "spd" else self.kl
