"""Numbers rounded to a smaller type on a device: the names and arguments are those of `compactla.cpu.storage`."""

from compactla.calls.launch import NOW, Launch
from compactla.gpu.launch import launch_lanes
from compactla.types import Array, Queue


def check_storage(storage: str, queue: Queue) -> None:
    """Every device loads and stores all types of `compactla.lines.storage`."""


def round_blocks(
    source: Array, target: Array, storage: str, limit: float, overflow: Array, launch: Launch = NOW
) -> None:
    """Round numbers to a smaller type; ``overflow[0]`` <- 1 if one is larger than `limit`."""
    args = source.size, source, target, float(limit), overflow
    launch_lanes(source.queue, launch, "stored.cl", "round_blocks", source.dtype, 1, (source.size, 1), *args,
                 CLA_STORED=f"CLA_STORED_{storage.upper()}")  # fmt: skip
