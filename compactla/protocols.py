"""What a back end offers: a `Protocol` for each module that `compactla.cpu` and `compactla.gpu` both have.

A new function of both has its signature here, and the same names, order and defaults in either module; mypy and
``tests/test_backends.py`` compare them. Arrays are NumPy's on the CPU, where the queue is None, and pyopencl's or those
of `compactla.cuda` on a device. A default ``...`` is one that both modules have, and that is not known here.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from compactla.types import Array, Queue

if TYPE_CHECKING:
    import numpy as np

# Objects whose classes are on higher floors: how a call starts its work, views of packs, a routine, packs, and what
# describes sparse matrices.
Launch: TypeAlias = Any
View: TypeAlias = Any
Row: TypeAlias = Any
Matrix: TypeAlias = Any
Pattern: TypeAlias = Any
Tiles: TypeAlias = Any
Operator: TypeAlias = Any


class Arrays(Protocol):
    """Memory for arrays, and what moves matrices and blocks into packs and back."""

    def default_vlen(self, dtype: "np.dtype", queue: Queue) -> int:
        """Vector length that suits a type."""

    def empty(self, shape: Sequence[int], dtype: Any, queue: Queue, allocator: Any = None) -> Array:
        """A new C-contiguous array without values."""

    def beside(self, a: Array, shape: Sequence[int], dtype: "np.dtype") -> tuple[Array, int]:
        """A new C-contiguous array without values where another lives, and where it begins, as in views."""

    def reused(self, a: Array) -> Any:
        """The allocator of an array, for work space."""

    def pool(self, queue: Queue) -> Any:
        """An allocator that keeps memory for arrays to come, if there is one."""

    def upload(self, a: "np.ndarray", queue: Queue) -> Array:
        """An array of NumPy where the back end computes."""

    def download(self, a: Array) -> "np.ndarray":
        """An array of the back end as NumPy's; waits for it."""

    def reshaped(self, a: Array, shape: Sequence[int]) -> Array:
        """A view of a C-contiguous array in another shape."""

    def broadcast(self, matrix: "np.ndarray", nm: int, queue: Queue) -> Array:
        """A matrix as a stack of `nm` of them, with stride 0."""

    def pack(self, source: Array, A: View, nm: int, period: int, unit: float, launch: Launch = ...) -> None:
        """A <- a stack of ordinary matrices; unused lanes are `unit` where i % period == j, else 0."""

    def unpack(self, A: View, nm: int, target: Array, launch: Launch = ...) -> None:
        """A stack of ordinary matrices <- A"""

    def divide(self, nm: int, Z: View, A: View, number: Any) -> None:
        """Z <- A / number, as NumPy divides; unused lanes are those of A."""

    def gather_blocks(self, source: Array, index: Array, target: Array, launch: Launch = ...) -> None:
        """Lanes of packs <- the blocks of these numbers; -1 stands for zeros, -2 for an identity."""

    def gather_values(self, source: Array, index: Array, target: Array, launch: Launch = ...) -> None:
        """Elements of packs <- the values of these numbers, as blocks of a single one."""


class Runs(Protocol):
    """Runs of the routines of `compactla.routine`, as this module has checked them."""

    def start(
        self, row: Row, views: Sequence[View], scalars: Any, conj: Any, option: Any, nm: int, info: Any,
        launch: Launch,
    ) -> Any:  # fmt: skip
        """Run a routine on packs; its output, if there is one."""

    def again(
        self, row: Row, views: Sequence[View], scalars: Any, conj: Any, option: Any, nm: int, launch: Launch
    ) -> Any:
        """A function that makes a call again, of views of the operands that are made in each: they lie like these."""


class Kron(Protocol):
    """Products and sums of Kronecker products; see `compactla.kron.problem`."""

    def run(
        self, name: str, factors: Any, signs: Any, X: Any, Y: Any, d: Any, e: Any, scalars: Any, work: Any = None,
        launch: Launch = ...,
    ) -> None:  # fmt: skip
        """Compute Y from X, both arrays (nm, ...) or packs."""

    def scale(self, Y: Any, e: Any, beta: Any, launch: Launch = ...) -> None:
        """Y <- beta Y, which is not read if beta is zero."""

    def values(self, x: Array, dtype: "np.dtype", shift: Any, queue: Queue) -> Array:
        """Eigenvalues, an array (m,) or (nm, m), plus a number, as matrices of one column."""

    def needed(self, name: str, factors: Any, X: Any, Y: Any, d: Any, e: Any, launch: Launch = ...) -> Any:
        """Elements of work space that `run` needs."""


class Vectors(Protocol):
    """Vectors of n numbers for Krylov methods, unset; ``vectors[k]`` is one of them."""

    def __getitem__(self, k: int) -> Array: ...

    def dots(self, rows: range, others: range, scale: float = 1.0) -> Any:
        """Products of rows with others, which are scaled before."""

    def combine(self, *made: Any, against: int | None = None, measured: bool = True) -> Any:
        """Make rows that are sums of multiples of others; the square of the last one's norm, and a product with it."""


class Krylov(Protocol):
    """Operations of Krylov methods for one large system."""

    def Rows(self, count: int, n: int, dtype: "np.dtype", queue: Queue, launch: Launch = ...) -> Vectors:
        """So many vectors of n numbers."""


class Scratch(Protocol):
    """Work space of solves with lines."""

    def fit(self, nrhs: int) -> None:
        """Make room for so many right-hand sides."""


class Lines(Protocol):
    """Factors of lines of blocks, and solves with them; arrays are those of `compactla.lines.packed`."""

    def vector_length(self, b: int, dtype: "np.dtype", queue: Queue) -> int:
        """The vector length that suits packs of b x b blocks."""

    def concurrency(self, b: int, dtype: "np.dtype", vlen: int, queue: Queue) -> tuple[float, float]:
        """How many lines are solved at once; the steps of a line that calls for separators cost."""

    def relative_step(self, b: int, dtype: "np.dtype", lanes: int, vlen: int, nbytes: int) -> float:
        """Time of a step of packs with so many lanes, over that of packs with `vlen`, for so many bytes of blocks."""

    def LinesView(
        self, lower: Array, diag: Array, upper: Array, offset: Array, rows: Array, policy: str = "",
        swaps: Array = None, stored: Any = None, tiny: float = 0.0,
    ) -> Any:  # fmt: skip
        """Arguments of kernels for lines of blocks."""

    def CouplingsView(
        self, lower: Array, upper: Array, offset: Array, rows: Array, before: Array, after: Array, longest: int
    ) -> Any:
        """Arguments of kernels for block rows and their couplings to two others."""

    def LineScratch(self, lines: Any) -> Scratch:
        """Work space for a `LinesView` or `CouplingsView`."""

    def new_info(self, lanes: int, queue: Queue, allocator: Any = None) -> Array:
        """The array that `factor_lines` enters zero pivots into."""

    def swaps_like(self, diag: Array, queue: Queue) -> Array:
        """Room for the rows that are swapped."""

    def factor_lines(self, lines: Any, info: Array, launch: Launch = ..., watched: Array = None) -> None:
        """Factor lines in place."""

    def solve_lines(self, lines: Any, rhs: Array, x: Array, work: Any, launch: Launch = ...) -> None:
        """x <- the solutions for right-hand sides (block rows, b, columns), with factored lines."""

    def residual_lines(
        self, lines: Any, blocks: Any, rhs: Array, x: Array, r: Array, work: Any, launch: Launch = ...
    ) -> None:
        """r <- rhs - A x for the blocks of the lines before they were factored."""

    def pad_diagonals(self, blocks: Array, size: Array, launch: Launch = ...) -> None:
        """Diagonals of packed blocks, past the `size` of each, <- the largest number of the block, or one."""

    def copy(self, source: Array, target: Array, launch: Launch = ...) -> None:
        """target <- source, C-contiguous arrays of one size."""

    def spread_lines(self, lines: Any, ends: Array, edges: Any, spikes: Any, launch: Launch = ...) -> None:
        """Multiply what couples factored lines to others, at both ends, by the inverses of the lines."""

    def couple_rows(self, couplings: Any, source: Array, x: Array, work: Any, launch: Launch = ...) -> None:
        """x <- x minus the couplings of block rows times those of `source`."""


class Sparse(Protocol):
    """Sparse batches: products, factors, and solutions by Krylov methods; matrices are packs of values."""

    def tile_of(self, dtype: "np.dtype") -> int:
        """Rows and columns of the largest tile of factors."""

    def multiply(
        self, values: Matrix, pattern: Pattern, X: Matrix, Y: Matrix, trans: str = "N", scalars: Any = None,
        launch: Launch = ...,
    ) -> None:  # fmt: skip
        """Y <- op(A) X, or alpha op(A) X + beta Y with packs of both in `scalars`."""

    def precondition(self, M: Operator, X: Matrix, Y: Matrix, launch: Launch = ...) -> None:
        """Y <- M X"""

    def factor(self, values: Matrix, pattern: Pattern, factors: Matrix, launch: Launch = ...) -> Array:
        """Write incomplete factors; info of each lane."""

    def lu_factor(self, values: Matrix, tiles: Tiles, factors: Matrix, launch: Launch = ...) -> Array:
        """Write factors in tiles; info of each lane."""

    def lu_solve(
        self, factors: Matrix, tiles: Tiles, X: Matrix, Y: Matrix, trans: str = "N", launch: Launch = ...
    ) -> None:
        """Y <- op(A)^-1 X with the factors of `lu_factor`."""

    def solve(
        self, method: str, options: Any, A: Operator, M: Operator, B: Matrix, X: Matrix, out: Array, history: Array,
        start: int, maxiter: int, rtol: float, atol: float, restart: int, ortho: int, launch: Launch = ...,
    ) -> None:  # fmt: skip
        """Solve the systems of a batch; see `compactla.krylov_methods`. `out` and `history` are contiguous arrays."""


class Storage(Protocol):
    """Numbers rounded to a smaller type that they are stored as; see `compactla.lines.storage`."""

    def check_storage(self, storage: str, queue: Queue) -> None:
        """Refuse what the processor or the device cannot widen."""

    def round_blocks(
        self, source: Array, target: Array, storage: str, limit: float, overflow: Array, launch: Launch = ...
    ) -> None:
        """Round numbers to a smaller type; ``overflow[0]`` <- 1 if one is larger than `limit`."""


class Sweeps(Protocol):
    """Steps of sweeps along lines beside the solves; vectors are (block rows, b, right-hand sides)."""

    def residual(self, A: Any, x: Array, rhs: Array, y: Array, launch: Launch = ...) -> None:
        """y <- rhs - A x for block rows A."""

    def product(self, A: Any, x: Array, y: Array, launch: Launch = ...) -> None:
        """y <- A x"""

    def damp(self, z: Array, x: Array, damping: float, launch: Launch = ...) -> None:
        """x <- (1 - damping) x + damping z; z is lost."""

    def permute(self, order: Array, x: Array, y: Array, back: bool, launch: Launch = ...) -> None:
        """Block row i of y <- block row order[i] of x, or the other way round."""
