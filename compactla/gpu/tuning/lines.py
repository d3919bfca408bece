"""The kernels for lines of blocks of known size, and what tuning tries: few lines and watched pivots apart."""

from dataclasses import replace

from compactla.search import GROUP, LANES, REGISTERS, SQUARES, TEAM, WARP, Kernel, Search, registers

LARGEST = 16  # block
COPIES, BY_TURNS = 3, 4  # as AHEAD: a block row is copied to local memory in advance
BULK = 5, 6  # likewise, one or two block rows of a pack, as they lie


def factor_candidates(size, dtype, lanes):
    return lines_candidates(size, dtype, sorted(lanes, key=lambda some: abs(some - 16.1)))


def lines_candidates(size, dtype, lanes):
    (b,) = size
    if registers(4 * b * b, dtype) <= REGISTERS:
        for ahead in (1, 0):
            if registers((4 + 3 * ahead) * b * b, dtype) <= REGISTERS + 20:
                yield {"kernel": "factor_line", "GROUP": 32, "AHEAD": ahead}
    whole = [c for c in range(1, min(b, 5) + 1) if b % c == 0]
    for columns in sorted(whole, key=lambda c: abs(c - (3 if b > 10 else 1))):
        for some in lanes:
            for ahead in (2, 1, 0) if columns == 1 else (1, 0):
                limit = REGISTERS + 40 * (ahead == 0)
                if registers((3 + ahead) * columns * b, dtype) <= limit and b * some // columns >= 16:
                    yield team(b, some, columns, ahead)
    for columns in range(1, min(b - 1, 3) + 1):
        for some in lanes:
            if registers(2 * columns * b, dtype) <= REGISTERS - 40 and b * some // columns >= 16:
                yield team(b, some, columns, COPIES)
                yield team(b, some, columns, BY_TURNS)
    for columns in range(1, min(b - 1, 3) + 1):
        for ahead in BULK:
            if lanes and registers(2 * columns * b, dtype) <= REGISTERS - 40:
                yield team(b, max(lanes), columns, ahead)
    for members in (4, 8):
        for ahead in (1, 2):
            if lanes and members < 2 * b and registers(2 * -(-b // members) * b, dtype) <= REGISTERS - 80:
                yield {"kernel": "factor_warp", "LANES": max(lanes), "TEAM": members, "AHEAD": ahead}


def team(b, lanes, columns, ahead):
    """A choice of factor_team."""
    return {"kernel": "factor_team", "LANES": lanes, "COLUMNS": columns, "TEAM": -(-b // columns), "AHEAD": ahead}


def factor_few_candidates(size, dtype, lanes):
    """Small work-groups, which reach more compute units."""
    found = list(lines_candidates(size, dtype, lanes[::-1]))
    return sorted(found, key=lambda choice: (choice["kernel"] == "factor_line") == (size[0] > 3))


def watched_candidates(size, dtype, lanes):
    """Teams, first those whose members have few registers in use, which watching adds to."""
    found = (choice for choice in factor_candidates(size, dtype, lanes) if choice["kernel"] == "factor_team")
    found = (choice for choice in found if choice["AHEAD"] < COPIES)
    yield from sorted(found, key=lambda choice: (choice["COLUMNS"], abs(choice["AHEAD"] - 1)))
    yield team(size[0], max(lanes), 1, 0)


def solve_few_candidates(size, dtype, lanes):
    return solve_candidates(size, dtype, sorted(lanes, key=lambda some: abs(some - 8.1)))


def solve_candidates(size, dtype, lanes):
    b, nrhs = size
    for some in lanes:
        for rhs in [nrhs] if nrhs <= 8 else [8, 4]:
            depths = ((4, 4), (4, 8), (8, 8), (2, 4), (1, 2)) if b < 6 else ((2, 4), (1, 2), (4, 4), (4, 8))
            for ahead, up in depths if b <= 10 else ((1, 2), (2, 4)):
                if registers(max((2 * b + rhs) * ahead, (b + rhs) * up) + 2 * rhs, dtype) <= REGISTERS - 100 * (b > 10):
                    yield {"kernel": "solve_team", "LANES": some, "RHS": rhs, "AHEAD": ahead, "AHEAD_UP": up}
    yield {"kernel": "solve_team", "LANES": lanes[-1], "RHS": 1, "AHEAD": 1, "AHEAD_UP": 1}


def is_whole(choice, size) -> bool:
    """Whether a team does all columns."""
    return choice["TEAM"] == -(-size[0] // choice["COLUMNS"]) >= 1 + (COPIES <= choice["AHEAD"] < max(BULK))


def is_of_warps(choice, size) -> bool:
    """Whether teams are parts of warps, which they make up, or of less than one."""
    items = choice["LANES"] * choice["TEAM"]
    return choice["TEAM"].bit_count() == 1 and (items <= WARP or items % WARP == 0)


def warp_local(choice, size) -> int:
    """Two columns, each with a reciprocal and some elements that align it, and blocks."""
    return (2 * (size[0] + 8) + 3 * choice["AHEAD"] * size[0] ** 2) * choice["LANES"]


def factor_local(choice, size) -> int:
    columns, own, ahead = choice["COLUMNS"], choice["COLUMNS"] * choice["TEAM"], choice["AHEAD"]
    rows = {COPIES: size[0] + 2 * own, BY_TURNS: size[0] + own, 5: 3 * size[0], 6: 6 * size[0]}.get(ahead, size[0])
    return (2 * columns + rows) * size[0] * choice["LANES"]


FACTOR = {
    "factor_line": Kernel({"GROUP": GROUP, "AHEAD": range(3)}),
    "factor_team": Kernel(
        {"LANES": LANES, "COLUMNS": range(1, 6), "TEAM": TEAM, "AHEAD": range(max(BULK) + 1)},
        group=lambda choice, size: choice["LANES"] * choice["TEAM"],
        local=factor_local,
        places=lambda choice: 2,
        whole=is_whole,
        roomy=True,
        whole_packs=lambda choice: choice["AHEAD"] in BULK,
    ),
    "factor_warp": Kernel(
        {"LANES": LANES, "TEAM": TEAM, "AHEAD": range(1, 4)},
        group=lambda choice, size: choice["LANES"] * choice["TEAM"],
        local=warp_local,
        places=lambda choice: choice["AHEAD"],
        whole=is_of_warps,
        file="thomas_warp.cl",
        roomy=True,
        whole_packs=lambda choice: True,
    ),
}

WATCHED = {
    "factor_team": replace(
        FACTOR["factor_team"],
        tunables=FACTOR["factor_team"].tunables | {"AHEAD": range(COPIES)},
        local=lambda choice, size: (
            factor_local(choice, size) + (2 * choice["COLUMNS"] + 4 * choice["TEAM"]) * choice["LANES"]
        ),
        whole=lambda choice, size: choice["COLUMNS"] * choice["TEAM"] == size[0],
        roomy=False,
    ),
}


def solve_local(choice, size) -> float:
    return (2 * max(choice["AHEAD"], choice["AHEAD_UP"]) + 1) * size[0] * choice["RHS"] * (choice["LANES"] + 1)


SOLVE = {
    "solve_team": Kernel(
        {"LANES": LANES, "RHS": range(1, 9), "AHEAD": range(1, 9), "AHEAD_UP": range(1, 9)},
        group=lambda choice, size: choice["LANES"] * size[0],
        local=solve_local,
        places=lambda choice: 3 * choice["LANES"],
    )
}

BLOCKS = [b for b in SQUARES if b <= LARGEST]
ONE, EIGHT = [(b, 1) for b in BLOCKS], [(b, nrhs) for b in BLOCKS for nrhs in (1, 8)]
SEARCHES = {
    search.name: search
    for search in (
        Search("factor", "thomas.cl", FACTOR, factor_candidates, tuple((b,) for b in BLOCKS), LARGEST),
        Search("factor_few", "thomas.cl", FACTOR, factor_few_candidates, tuple((b,) for b in BLOCKS), LARGEST),
        Search("factor_watched", "thomas.cl", WATCHED, watched_candidates, tuple((b,) for b in BLOCKS), LARGEST),
        Search("solve", "thomas_solve.cl", SOLVE, solve_candidates, tuple(EIGHT), LARGEST, free=1),
        Search("solve_few", "thomas_solve.cl", SOLVE, solve_few_candidates, tuple(ONE), LARGEST, free=1),
    )
}
