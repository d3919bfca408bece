"""Measurements in print: lines of two tables, of rows and of ceilings."""

from compactla.bench.ceilings import PATTERNS
from compactla.oracle import THRESHOLD

COLUMNS = f"{'routine':<8} {'n':>3}  {'what':<30} {'time us':>12} {'GFlop/s':>8} {'GB/s':>7}"
ROWS = f"{COLUMNS}  peak bandw.      bound  residual"
LOOPS = "".join(f"   {name:>5}" for name in PATTERNS)
CEILINGS = f"{'working set':<22} {'threads':>7} {'GFlop/s':>8}{LOOPS}"


def row_line(row) -> str:
    what = f"{row.what}, in cache" if row.in_cache else row.what
    flops = f"{row.flops / row.seconds / 1e9:8.1f}" if row.flops else f"{'-':>8}"
    speed = f"{microseconds(row.seconds):>12} {flops} {row.nbytes / row.seconds / 1e9:7.1f}"
    of_peak = percent(row.turns.of_peak.median) if row.flops else "-"
    bound = row.turns.of_bound
    of_bound = f"{percent(bound.median)} +-{percent(bound.spread)}"
    fractions = f"{of_peak:>5} {percent(row.turns.of_bandwidth.median):>6} {of_bound:>10}"
    wrong = "" if row.residual < THRESHOLD else "  wrong"
    return f"{row.routine:<8} {row.n:>3}  {what:<30} {speed} {fractions}  {row.residual:>8.2g}{wrong}"


def ceiling_line(ceiling) -> str:
    size = f"{in_bytes(ceiling.footprint)} ({ceiling.level})"
    rates = {name: f"{rate / 1e9:.1f}" for name, rate in ceiling.bandwidth.items()}
    columns = "".join(f"   {rates.get(name, '-'):>{max(len(name), 5)}}" for name in PATTERNS)
    return f"{size:<22} {ceiling.threads or '-':>7} {ceiling.peak / 1e9:>8.1f}{columns}"


def microseconds(seconds) -> str:
    """Microseconds with two decimals, or as many as show two digits."""
    us = seconds * 1e6
    return f"{us:.2f}" if us >= 0.1 else f"{us:.2g}"


def percent(x) -> str:
    return f"{100 * x:.0f}%"


def in_bytes(count) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"
