/* Tridiagonal systems in ordinary arrays without row interchanges, a team of work-items for each. Define one of
 *
 * FACTOR_PARTED  the factors, in packs
 * SOLVE_PARTED   x <- inv(A) rhs with them
 * BOTH_PARTED    x <- inv(A) rhs; nothing is kept
 *
 * and SOURCE, which band_rows.h explains, but for 2, KL = KU = 1, what parted_rows.h has, with SPREAD 1, and
 *
 * COMMON         1: all systems have the matrix of the first, in SOLVE_PARTED
 *
 * All is read once and written once. Elimination is a recurrence, of which what a member does is known before it is
 * known what it begins with: the pivot becomes (a p + b) / (c p + d), right-hand sides and solutions a x + b. What these
 * are of all members before one is found by doubling. Then each repeats its rows as one work-item would have computed
 * them. Where that does not end with what the next began with, up to a few roundings, members of this system go one
 * after the other: products of many multiples are large in matrices that are not dominated by their diagonal. Row k of
 * the factors has the reciprocal of the pivot, the element of U divided by it, and the multiple of the
 * row that was subtracted, as in bands.cl.
 */
#include "parted_rows.h"

#define ROOM (TILES * LANES * PITCH > 8 * GROUP ? TILES * LANES * PITCH : 8 * GROUP)
#define TOLERANCE ((CLA_REAL)(sizeof(CLA_REAL) == 8 ? 0x1p-47f : 0x1p-18f)) /* 32 units of rounding */

/* The x of the member before, or behind; 0 if there is none. */
CLA_INLINE cla_lane neighbour(int back, int l, cla_lane x, CLA_LOCAL cla_lane *room)
{
    const int member = l / LANES, other = back ? l + LANES : l - LANES;
    MEET
    room[l] = x;
    MEET
    return (back ? member < MEMBERS - 1 : member > 0) ? room[other] : cla_lane_real(0);
}

/* What each member begins with, of which x <- factor x + value is made by each, and the first begins with 0. */
CLA_INLINE cla_lane begun(int back, int l, cla_lane factor, cla_lane value, CLA_LOCAL cla_lane *room)
{
    const int member = back ? MEMBERS - 1 - l / LANES : l / LANES;
    int turn = 0; /* which says whose is which half of the room */
    MEET
    for (int step = 1; step < MEMBERS; step *= 2, turn ^= 1) {
        const int other = back ? l + step * LANES : l - step * LANES;
        CLA_LOCAL cla_lane *const here = room + turn * 2 * GROUP;
        here[l] = factor;
        here[GROUP + l] = value;
        MEET
        if (member >= step) {
            value = cla_lane_fma(factor, here[GROUP + other], value);
            factor = cla_lane_mul(factor, here[other]);
        }
    }
    return neighbour(back, l, value, room);
}

/* Whether in its system what a member began with is, but for an error, not that with which the one before it ended.
 * `flags` has one for each system, and one that says whether it is so in any. */
CLA_INLINE int distrusted(int back, int l, cla_lane begin, cla_lane end, CLA_REAL error, CLA_LOCAL cla_lane *room,
                          CLA_LOCAL int *flags)
{
    const int member = back ? MEMBERS - 1 - l / LANES : l / LANES, other = back ? l + LANES : l - LANES;
    if (MEMBERS == 1) return 0;
    MEET
    room[l] = end;
    room[GROUP + l] = cla_lane_real(error);
    if (l < LANES) flags[l] = flags[LANES] = 0;
    MEET
    if (member && !(cla_lane_abs1(begin - room[other]) <= cla_lane_re(room[GROUP + other])))
        flags[l % LANES] = flags[LANES] = 1;
    MEET
    return flags[l % LANES];
}

/* Where members of some systems have to go one after the other: each begins with the `end` of that before it. */
#define IN_TURN(back, state, begin, end, REPEAT) \
    for (int turn = 1, turns = MEMBERS > 1 && flags[LANES] ? MEMBERS : 0; turn < turns; turn++) { \
        const cla_lane other = neighbour(back, l, end, room); \
        if ((state) && turn == ((back) ? MEMBERS - 1 - l / LANES : l / LANES)) { \
            begin = other; \
            REPEAT; \
        } \
    }

#if defined(FACTOR_PARTED) || defined(BOTH_PARTED)

/* The numbers of a 2 x 2 matrix divided by a power of 2, so that they do not overflow. */
CLA_INLINE void normalize(cla_lane *p)
{
    CLA_REAL most = 0;
    CLA_UNROLL for (int i = 0; i < 4; i++) most = fmax(most, cla_lane_abs1(p[i]));
    const CLA_REAL scale = inverse_power(most);
    CLA_UNROLL for (int i = 0; i < 4; i++) p[i] = p[i] * scale;
}

/* The reciprocal of the pivot before the rows of each member. The last two leading minors of the matrix are p times
 * those before these rows. */
CLA_INLINE cla_lane pivot_before(int l, cla_lane before, const cla_lane *low, const cla_lane *diag, const cla_lane *up,
                                 CLA_LOCAL cla_lane *room)
{
    cla_lane p[4] = {cla_lane_real(1), cla_lane_real(0), cla_lane_real(0), cla_lane_real(1)};
    EACH_ROW
    {
        const cla_lane product = cla_lane_mul(low[e], e ? up[e - 1] : before);
        CLA_UNROLL for (int j = 0; j < 2; j++) {
            const cla_lane last = p[j];
            p[j] = cla_lane_fnma(product, p[2 + j], cla_lane_mul(diag[e], last));
            p[2 + j] = last;
        }
        if (e % 2) normalize(p);
    }
    int turn = 0;
    MEET
    for (int step = 1; step < MEMBERS; step *= 2, turn ^= 1) {
        const int other = l - step * LANES;
        CLA_LOCAL cla_lane *const here = room + turn * 4 * GROUP;
        CLA_UNROLL for (int i = 0; i < 4; i++) here[i * GROUP + l] = p[i];
        MEET
        if (l / LANES >= step) {
            CLA_UNROLL for (int i = 0; i < 4; i += 2) {
                const cla_lane x = p[i], y = p[i + 1];
                CLA_UNROLL for (int j = 0; j < 2; j++)
                    p[i + j] = cla_lane_fma(x, here[j * GROUP + other],
                                            cla_lane_mul(y, here[(2 + j) * GROUP + other]));
            }
            normalize(p);
        }
    }
    return neighbour(0, l, cla_lane_is_zero(p[0]) ? p[2] : cla_lane_mul(p[2], cla_lane_recip(p[0])), room);
}

/* inverse <- reciprocals of the pivots of this member, of which that before is known. Returns 1 + the first row of which
 * the pivot counts as zero, or a large number. */
CLA_INLINE int pivots(int l, cla_lane last, cla_lane before, const cla_lane *low, const cla_lane *diag,
                      const cla_lane *up, cla_lane *inverse)
{
    int info = INT_MAX;
    EACH_ROW
    {
        const cla_lane pivot = cla_lane_fnma(cla_lane_mul(low[e], last), e ? up[e - 1] : before, diag[e]);
        const int zero = cla_lane_is_zero(pivot);
        if (SOURCE >= 3 ? !(cla_lane_re(pivot) > 0) : zero) info = min(info, l / LANES * DEEP + e + 1);
        inverse[e] = last = zero ? cla_lane_real(1) : cla_lane_recip(pivot);
    }
    return info;
}

/* From rows of the matrix those of the factors: low <- multiples, diag <- reciprocals of pivots, up <- those of U.
 * Returns what `pivots` does. */
CLA_INLINE int eliminate(int l, cla_lane *low, cla_lane *diag, cla_lane *up, CLA_LOCAL cla_lane *room,
                         CLA_LOCAL int *flags)
{
    cla_lane inverse[DEEP];
    const cla_lane before = neighbour(0, l, up[DEEP - 1], room);
    cla_lane begin = pivot_before(l, before, low, diag, up, room);
    int info = pivots(l, begin, before, low, diag, up, inverse);
    const CLA_REAL size = cla_lane_abs1(inverse[DEEP - 1]);
    const CLA_REAL error = TOLERANCE * size * fmax((CLA_REAL)1, size * cla_lane_abs1(diag[DEEP - 1]));
    const int state = distrusted(0, l, begin, inverse[DEEP - 1], error, room, flags);
    IN_TURN(0, state, begin, inverse[DEEP - 1], info = pivots(l, begin, before, low, diag, up, inverse))
    EACH_ROW
    {
        low[e] = cla_lane_mul(low[e], e ? inverse[e - 1] : begin);
        diag[e] = inverse[e];
        up[e] = cla_lane_mul(up[e], inverse[e]);
    }
    return info;
}


/* info of each system from that of all members. */
CLA_INLINE void report(int l, int own, CLA_LOCAL int *first, __global int *info)
{
    MEET
    if (l < LANES) first[l] = INT_MAX;
    MEET
    if (own < INT_MAX) atomic_min(first + l % LANES, own);
    MEET
    if (l < LANES) info[FIRST + l] = first[l] < INT_MAX ? first[l] : 0;
}
#endif

#if defined(SOLVE_PARTED) || defined(BOTH_PARTED)

/* The last x - factor (the x before), row by row, and the size of the largest. */
CLA_INLINE cla_lane chain(int back, cla_lane value, const cla_lane *factor, const cla_lane *x, CLA_REAL *size)
{
    *size = 0;
    EACH_ROW
    {
        const int k = back ? DEEP - 1 - e : e;
        value = cla_lane_fnma(factor[k], value, x[k]);
        *size = fmax(*size, cla_lane_abs1(value));
    }
    return value;
}

/* What a member begins such a chain with. */
CLA_INLINE cla_lane chain_begun(int back, int l, const cla_lane *factor, const cla_lane *x, CLA_LOCAL cla_lane *room,
                                CLA_LOCAL int *flags)
{
    CLA_REAL size;
    cla_lane all = cla_lane_real(1);
    EACH_ROW all = cla_lane_mul(CLA_MINUS(factor[back ? DEEP - 1 - e : e]), all);
    cla_lane begin = begun(back, l, all, chain(back, cla_lane_real(0), factor, x, &size), room);
    cla_lane end = chain(back, begin, factor, x, &size);
    const int state = distrusted(back, l, begin, end, TOLERANCE * size, room, flags);
    IN_TURN(back, state, begin, end, end = chain(back, begin, factor, x, &size))
    return begin;
}

/* x <- the solution, by the factors; the multiple of row 0 is 0. */
CLA_INLINE void substitute(int l, const cla_lane *low, const cla_lane *diag, const cla_lane *up, cla_lane *x,
                           CLA_LOCAL cla_lane *room, CLA_LOCAL int *flags)
{
    cla_lane value = chain_begun(0, l, low, x, room, flags);
    EACH_ROW
    {
        value = cla_lane_fnma(low[e], value, x[e]);
        x[e] = cla_lane_mul(value, diag[e]);
    }
    value = chain_begun(1, l, up, x, room, flags);
    CLA_UNROLL for (int e = DEEP - 1; e >= 0; e--) x[e] = value = cla_lane_fnma(up[e], value, x[e]);
}

/* Solve for all right-hand sides, of which the first are there; they are R and solutions X. */
#define SOLVE_ALL(columns) \
    for (long j = 0; j < (columns); j++) { \
        substitute(l, low, diag, up, y, room, flags); \
        write_solution(n, 0, j, l, nsys - FIRST, X, place, y, room); \
        if (j + 1 < (columns)) { \
            read_right(n, 0, j + 1, l, R, place, y); \
            share(ALONG_B, l, y, room); \
        } \
    }
#endif

#define FACTORS cla_matrix_of_batch(factors, COMMON ? 0 : FIRST + l % LANES, n, 3)

#ifdef FACTOR_PARTED
__kernel CLA_GROUP_OF(GROUP) void factor_parted(long nsys, long size, long inner, ORDINARY(a), ORDINARY(b), ORDINARY(c),
                                                __global CLA_REAL *factors, __global int *info)
{
    __local cla_lane room[ROOM];
    __local int flags[LANES + 1];
    __local long place[3][LANES];
    const int n = size, l = get_local_id(0), k0 = l / LANES * DEEP;
    const ordinary A = AS_ORDINARY(a), B = AS_ORDINARY(b), C = AS_ORDINARY(c);
    const cla_matrix F = FACTORS;
    cla_lane low[DEEP], diag[DEEP], up[DEEP];
    FIND_MATRICES
    MEET
    read_rows(n, 0, l, A, B, C, place, low, diag, up);
    share(ALONG_A, l, low, room);
    share(ALONG_A, l, diag, room);
    share(ALONG_A, l, up, room);
    report(l, eliminate(l, low, diag, up, room, flags), flags, info);
    EACH_ROW
        if (k0 + e < n) {
            cla_set(F, k0 + e, 0, diag[e]);
            cla_set(F, k0 + e, 1, up[e]);
            if (k0 + e) cla_set(F, k0 + e - 1, 2, low[e]);
        }
}
#endif

#ifdef SOLVE_PARTED
__kernel CLA_GROUP_OF(GROUP) void solve_parted(long nsys, long size, long inner, long columns, ORDINARY(r), ORDINARY(x),
                                               __global CLA_REAL *factors)
{
    __local cla_lane room[ROOM];
    __local int flags[LANES + 1];
    __local long place[5][LANES];
    const int n = size, l = get_local_id(0), k0 = l / LANES * DEEP;
    const ordinary R = AS_ORDINARY(r), X = AS_ORDINARY(x);
    const cla_matrix F = FACTORS;
    cla_lane low[DEEP], diag[DEEP], up[DEEP], y[DEEP];
    FIND_VECTORS
    MEET
    read_right(n, 0, 0, l, R, place, y);
    EACH_ROW
    {
        const int k = k0 + e;
        const cla_lane zero = cla_lane_real(0);
        diag[e] = k < n ? cla_get(F, k, 0) : zero;
        up[e] = k < n ? cla_get(F, k, 1) : zero;
        low[e] = k && k < n ? cla_get(F, k - 1, 2) : zero;
    }
    share(ALONG_B, l, y, room);
    SOLVE_ALL(columns)
}
#endif

#ifdef BOTH_PARTED
__kernel CLA_GROUP_OF(GROUP) void both_parted(long nsys, long size, long inner, long columns, ORDINARY(a), ORDINARY(b),
                                              ORDINARY(c), ORDINARY(r), ORDINARY(x), __global int *info)
{
    __local cla_lane room[ROOM];
    __local int flags[LANES + 1];
    __local long place[5][LANES];
    const int n = size, l = get_local_id(0);
    const ordinary A = AS_ORDINARY(a), B = AS_ORDINARY(b), C = AS_ORDINARY(c), R = AS_ORDINARY(r), X = AS_ORDINARY(x);
    cla_lane low[DEEP], diag[DEEP], up[DEEP], y[DEEP];
    FIND_MATRICES
    FIND_VECTORS
    MEET
    read_rows(n, 0, l, A, B, C, place, low, diag, up);
    read_right(n, 0, 0, l, R, place, y);
    share_all(l, low, diag, up, y, room);
    report(l, eliminate(l, low, diag, up, room, flags), flags, info);
    SOLVE_ALL(columns)
}
#endif
