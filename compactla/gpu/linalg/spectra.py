"""Teams of work-items that find eigenvalues or singular values, and vectors: see `opencl/spectral.h`."""

from collections.abc import Callable
from dataclasses import dataclass

from compactla.gpu.tuning import choices
from compactla.search import LOCAL_BYTES

WARP = 32  # work-items that go together
GROUP = 128  # work-items of a work-group, if a team has no more
COUNTS = (32, 16, 8, 4, 2, 1)  # teams of a work-group: the more, the more recurrences go together
BEST = (4, 1), (8, 4), (16, 8), (24, 16), (32, 32)  # members for matrices of up to so many rows
EACH, FEW = 8, 256  # up to so many rows have a member each, where a compute unit has at most so many matrices
LARGEST = 256  # rows and columns, and members of a team


@dataclass(frozen=True)
class Spectrum:
    """A kernel for functions on stacks of matrices.

    Attributes
    ----------
    kernel : str
        Its name, and that of its file in `opencl/`.
    macros : dict
        What it is to make.
    vectors : bool
        Whether vectors are needed for that.
    shape : function
        Rows and columns of what a team turns into a diagonal matrix and vectors, of the sizes by their letters.
    numbers : function
        Real numbers beside it.
    products : function
        Further elements of local memory.
    """

    kernel: str
    macros: dict[str, int]
    vectors: bool
    shape: Callable[..., tuple[int, int]]
    numbers: Callable[..., int]
    products: Callable[..., int] = lambda **_: 0

    def lanes(self, number, spread) -> int:
        """Elements of a team: in local memory, or if they are `spread` in global memory, with a transpose."""
        m, n = self.shape(**number)
        if not spread:
            return m * (n | 1)
        return m * whole(n) + self.vectors * n * whole(m)

    def local_bytes(self, number, computed, members, teams, spread) -> int:
        """Bytes of local memory of a work-group."""
        lanes = (3 if teams > 1 else 1) * members + self.products(**number)  # for teams to be in different banks
        lanes += 0 if spread else self.lanes(number, False)
        return teams * (lanes * computed.itemsize + self.numbers(**number) * 8)


def whole(count):
    """Elements of a line in global memory."""
    return -(-count // 4) * 4


def eigen(vectors):
    return Spectrum("team_eigh", {"VECTORS": int(vectors)}, vectors, lambda n, **_: (n, n), lambda n, **_: 7 * n + 14)


def singular(outcome, products=lambda **_: 0):
    vectors = outcome != 1

    def shape(m, n, p=0, q=0, **_):
        k = min(m, n)
        return (max(m, n) + k, (q if m < n else p) or k) if vectors else (max(m, n), k)

    def numbers(m, n, **_):
        return (11 if vectors else 5) * min(m, n) + 14

    return Spectrum("team_svd", {"OUTCOME": outcome}, vectors, shape, numbers, products)


LEAST_SQUARES = singular(3, lambda m, n, r, **_: (min(m, n) + m) * r)
SPECTRA = {"eigh": eigen(True), "eigvalsh": eigen(False), "svd": singular(0), "svdvals": singular(1)}
SPECTRA |= {"pinv": singular(2), "lstsq": LEAST_SQUARES, "lstsq_wide": LEAST_SQUARES}


def spectrum(function, options, device, number, computed, nm) -> dict[str, int]:
    """Macros of the kernel for a function on nm matrices of a size; none if there is none, or a better way."""
    kind, warps = SPECTRA[function.name], "NVIDIA" in device.platform.name
    m, n = number.get("m", number["n"]), number["n"]
    extent = max(m, n)
    if choices.is_cpu(device) or extent > LARGEST:
        return {}
    macros = kind.macros | {"CLA_WARP": int(warps), "WIDE": int(m < n), "UPLO": int(options.get("UPLO") == "U")}
    few = extent <= EACH and nm <= FEW * device.max_compute_units
    for members in sizes(extent, few):
        for teams in (count for count in COUNTS if WARP <= count * members <= max(GROUP, members)):
            if kind.local_bytes(number, computed, members, teams, False) <= LOCAL_BYTES:
                return macros | {"MEMBERS": members, "TEAMS": teams, "IN_GLOBAL": 0}
    members = sizes(extent, few)[-1]
    if kind.local_bytes(number, computed, members, 1, True) > LOCAL_BYTES:
        return {}
    return macros | {"MEMBERS": members, "TEAMS": 1, "IN_GLOBAL": 1}


def work_bytes(function, number, computed) -> int:
    """Bytes of global memory for a matrix to be worked on there."""
    return SPECTRA[function.name].lanes(number, True) * computed.itemsize


def sizes(extent, few):
    """Numbers of members, the best first."""
    best = 1 << (extent - 1).bit_length() if few else next((members for most, members in BEST if extent <= most), 128)
    return [members for members in (1, 2, 4, 8, 16, 32, 64, 128, 256) if best <= members < max(2 * extent, 2 * best)]
