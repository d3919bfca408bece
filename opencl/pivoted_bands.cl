/* Tridiagonal systems in ordinary arrays with row interchanges, a team of work-items for each, x <- inv(A) rhs. Define
 *
 * BOTH_PIVOTED    where n is at most MEMBERS times DEEP
 *
 * or, for longer ones, of which a team has some rows, one after the other
 *
 * REDUCE_PIVOTED  what is left of the rows of each team
 * JOIN_PIVOTED    the unknowns where these begin and end; each member of a team stands for one of those
 * EXPAND_PIVOTED  all others
 *
 * and SOURCE, which band_rows.h explains, but for 2, KL = KU = 1, and what parted_rows.h has, DEEP at least 2.
 *
 * Unknowns between the second and the last but one of a member are in its own rows alone. It eliminates them, each by the
 * largest of the three rows that it is in, until two equations are left, of the pairs of unknowns where its rows begin and
 * end: the last before them and their first, their last and the next behind. Two neighbours have four such equations of
 * three pairs, of which the one in the middle is eliminated likewise, and so on by doubling. This is an LU factorization
 * with partial pivoting in another order: structured elimination by S. J. Wright, SIAM J. Sci. Stat. Comput. 13 (1992),
 * 742-764. Multiples are at most 1 in modulus. Where a pivot is zero, elimination is made again, row by row, to tell which.
 */
#include "parted_rows.h"

#define KEPT 11 /* numbers in local memory for each member: two equations, or what is needed to go back */
/* Number t of member k of system v, which has the pair where its rows begin; behind them all is one that has only a pair.
 * Members that are a power of 2 apart are in different banks. */
#define APART_BY(k) ((k) * LANES + (k) * LANES / 16)
#define EACH_KEPT (APART_BY(MEMBERS) + LANES)
#define ROOM (TILES * LANES * PITCH > KEPT * EACH_KEPT ? TILES * LANES * PITCH : KEPT * EACH_KEPT)
#define SLOT_OF(t, k, v) room[(t) * EACH_KEPT + APART_BY(k) + (v)]
#define SLOT(t, k) SLOT_OF(t, k, l % LANES)

/* An equation of the pairs a, b and c of unknowns. */
typedef struct {
    cla_lane a0, a1, b0, b1, c0, c1, y;
} equation;

CLA_INLINE equation either(int first, equation p, equation q)
{
    const equation one = {cla_lane_select(first, p.a0, q.a0), cla_lane_select(first, p.a1, q.a1),
                          cla_lane_select(first, p.b0, q.b0), cla_lane_select(first, p.b1, q.b1),
                          cla_lane_select(first, p.c0, q.c0), cla_lane_select(first, p.c1, q.c1),
                          cla_lane_select(first, p.y, q.y)};
    return one;
}

/* p <- that of two equations where b0 is larger in modulus, q <- the other one. */
CLA_INLINE void order(equation *p, equation *q)
{
    const int swapped = cla_lane_abs1(q->b0) > cla_lane_abs1(p->b0);
    const equation larger = either(swapped, *q, *p);
    *q = either(swapped, *p, *q);
    *p = larger;
}

/* An equation without b0, by one that is divided by its own; b1 takes its place. */
CLA_INLINE equation without(equation q, equation p)
{
    const cla_lane m = q.b0;
    const equation rest = {cla_lane_fnma(m, p.a0, q.a0), cla_lane_fnma(m, p.a1, q.a1),
                           cla_lane_fnma(m, p.b1, q.b1), cla_lane_real(0),
                           cla_lane_fnma(m, p.c0, q.c0), cla_lane_fnma(m, p.c1, q.c1), cla_lane_fnma(m, p.y, q.y)};
    return rest;
}

/* Divide an equation by b0. Returns whether that is zero, which counts as 1. */
CLA_INLINE int divide(equation *p)
{
    const int zero = cla_lane_is_zero(p->b0);
    const cla_lane inverse = zero ? cla_lane_real(1) : cla_lane_recip(p->b0);
    p->a0 = cla_lane_mul(p->a0, inverse);
    p->a1 = cla_lane_mul(p->a1, inverse);
    p->b1 = cla_lane_mul(p->b1, inverse);
    p->c0 = cla_lane_mul(p->c0, inverse);
    p->c1 = cla_lane_mul(p->c1, inverse);
    p->y = cla_lane_mul(p->y, inverse);
    return zero;
}

/* An equation of a and c as numbers t and following of member k, and back, as one of two pairs that are neighbours. */
CLA_INLINE void keep(int t, int k, int v, equation p, CLA_LOCAL cla_lane *room)
{
    SLOT_OF(t, k, v) = p.a0;
    SLOT_OF(t + 1, k, v) = p.a1;
    SLOT_OF(t + 2, k, v) = p.c0;
    SLOT_OF(t + 3, k, v) = p.c1;
    SLOT_OF(t + 4, k, v) = p.y;
}
CLA_INLINE equation kept_before(int t, int k, int v, CLA_LOCAL const cla_lane *room)
{
    const cla_lane zero = cla_lane_real(0);
    const equation p = {SLOT_OF(t, k, v), SLOT_OF(t + 1, k, v), SLOT_OF(t + 2, k, v), SLOT_OF(t + 3, k, v), zero, zero,
                        SLOT_OF(t + 4, k, v)};
    return p;
}
CLA_INLINE equation kept_behind(int t, int k, int v, CLA_LOCAL const cla_lane *room)
{
    const cla_lane zero = cla_lane_real(0);
    const equation p = {zero, zero, SLOT_OF(t, k, v), SLOT_OF(t + 1, k, v), SLOT_OF(t + 2, k, v), SLOT_OF(t + 3, k, v),
                        SLOT_OF(t + 4, k, v)};
    return p;
}

/* Eliminate the pair where the rows of member k begin, from equations of those before, since `before`, and of its own. */
CLA_INLINE int join(int before, int k, int v, CLA_LOCAL cla_lane *room)
{
    equation p = kept_before(0, before, v, room), q = kept_before(5, before, v, room);
    equation r = kept_behind(0, k, v, room), s = kept_behind(5, k, v, room);
    order(&p, &q);
    order(&p, &r);
    order(&p, &s);
    int singular = divide(&p);
    q = without(q, p);
    r = without(r, p);
    s = without(s, p);
    order(&q, &r);
    order(&q, &s);
    singular |= divide(&q);
    keep(0, before, v, without(r, q), room);
    keep(5, before, v, without(s, q), room);
    keep(0, k, v, p, room);
    keep(5, k, v, q, room);
    SLOT_OF(10, k, v) = p.b1;
    return singular;
}

/* The pair where the rows of member k begin, by those of members `before` and `behind`. */
CLA_INLINE void part(int before, int k, int behind, int v, CLA_LOCAL cla_lane *room)
{
    cla_lane x[2];
    CLA_UNROLL for (int i = 0; i < 2; i++) {
        x[i] = cla_lane_fnma(SLOT_OF(5 * i, k, v), SLOT_OF(0, before, v), SLOT_OF(5 * i + 4, k, v));
        x[i] = cla_lane_fnma(SLOT_OF(5 * i + 1, k, v), SLOT_OF(1, before, v), x[i]);
        x[i] = cla_lane_fnma(SLOT_OF(5 * i + 2, k, v), SLOT_OF(0, behind, v), x[i]);
        x[i] = cla_lane_fnma(SLOT_OF(5 * i + 3, k, v), SLOT_OF(1, behind, v), x[i]);
    }
    SLOT_OF(0, k, v) = cla_lane_fnma(SLOT_OF(10, k, v), x[1], x[0]);
    SLOT_OF(1, k, v) = x[1];
}

/* From equations of all members those of the whole team, which its first member has then, and back: from the pairs where
 * the team begins and ends all others. The first work-items do it, whichever member that is of.
 * `flags` notes of which systems a pivot was zero. */
CLA_INLINE void join_all(int l, CLA_LOCAL cla_lane *room, CLA_LOCAL int *flags)
{
    for (int step = 1; step < MEMBERS; step *= 2) {
        const int k = step * (2 * (l / LANES) + 1), v = l % LANES;
        MEET
        if (k < MEMBERS && join(k - step, k, v, room)) flags[v] = 1;
    }
    MEET
}
CLA_INLINE void part_all(int l, CLA_LOCAL cla_lane *room)
{
    int step = 1;
    while (step < MEMBERS) step *= 2;
    for (step /= 2; step; step /= 2) {
        const int k = step * (2 * (l / LANES) + 1), v = l % LANES;
        MEET
        if (k < MEMBERS) part(k - step, k, min(k + step, MEMBERS), v, room);
    }
    MEET
}

#ifndef JOIN_PIVOTED
/* The unknown before row e is eliminated from p, q and that row, which it is in alone; two equations are left. Of the
 * unknowns its coefficients are b0 and those of the next two b1 and c0; a are those of the pair before. Row e becomes
 * what it is by the others. */
#define ELIMINATE(e) \
    if (e > 1) { \
        equation next = {zero, zero, low[e], diag[e], up[e], zero, y[e]}; \
        order(&p, &q); \
        order(&p, &next); \
        singular |= divide(&p); \
        low[e] = p.b1; \
        diag[e] = p.c0; \
        up[e] = p.a0; \
        left[e] = p.a1; \
        y[e] = p.y; \
        q = without(q, p); \
        q.b1 = q.c0; \
        q.c0 = zero; \
        p = without(next, p); \
        p.b1 = p.c0; \
        p.c0 = zero; \
    }

/* Each member eliminates in its rows, which are overwritten. Returns whether a pivot was zero. */
CLA_INLINE int eliminate(int l, cla_lane *low, cla_lane *diag, cla_lane *up, cla_lane *left, cla_lane *y,
                         CLA_LOCAL cla_lane *room)
{
    const cla_lane zero = cla_lane_real(0);
    int singular = 0;
    equation p = {low[0], diag[0], up[0], zero, zero, zero, y[0]};
    equation q = {zero, low[1], diag[1], up[1], zero, zero, y[1]};
    CLA_UNROLL1(DEEP, ELIMINATE)
    const equation first = {p.a0, p.a1, zero, zero, p.b0, p.b1, p.y}, second = {q.a0, q.a1, zero, zero, q.b0, q.b1, q.y};
    MEET
    keep(0, member_of(l), l % LANES, first, room);
    keep(5, member_of(l), l % LANES, second, room);
    return singular;
}

/* y <- the solution, by what rows have become and the pairs where they begin and end. */
CLA_INLINE void substitute(int l, const cla_lane *low, const cla_lane *diag, const cla_lane *up, const cla_lane *left,
                           cla_lane *y, CLA_LOCAL const cla_lane *room)
{
    const int k = member_of(l);
    const cla_lane before = SLOT(0, k), own = SLOT(1, k);
    cla_lane x = SLOT(0, k + 1), next = SLOT(1, k + 1); /* of this row, and of that behind it */
    CLA_UNROLL for (int e = DEEP - 1; e > 1; e--) {
        const cla_lane rest = cla_lane_fnma(left[e], own, cla_lane_fnma(up[e], before, y[e]));
        const cla_lane found = cla_lane_fnma(low[e], x, cla_lane_fnma(diag[e], next, rest));
        y[e] = x;
        next = x;
        x = found;
    }
    y[1] = x;
    y[0] = own;
}
#endif

#if defined(BOTH_PIVOTED) || defined(JOIN_PIVOTED)
/* The first unknown of a system and the last one, in the pairs before the first member and behind the last. */
CLA_INLINE int finish(int l, CLA_LOCAL cla_lane *room)
{
    const cla_lane zero = cla_lane_real(0);
    equation p = {zero, zero, SLOT(1, 0), SLOT(2, 0), zero, zero, SLOT(4, 0)};
    equation q = {zero, zero, SLOT(6, 0), SLOT(7, 0), zero, zero, SLOT(9, 0)};
    order(&p, &q);
    int singular = divide(&p);
    q = without(q, p);
    singular |= divide(&q);
    SLOT(0, 0) = SLOT(1, MEMBERS) = zero;
    SLOT(0, MEMBERS) = q.y;
    SLOT(1, 0) = cla_lane_fnma(p.b1, q.y, p.y);
    return singular;
}

/* 1 + the first row of which the pivot is zero if rows are eliminated one after the other; n if there is none. */
CLA_INLINE int first_zero(int n, int v, ordinary A, ordinary B, ordinary C, CLA_LOCAL const long (*place)[LANES])
{
    cla_lane row[WIDTH], pivot, above;
    read_row(n, 0, v, A, B, C, place, row);
    pivot = row[1];
    above = row[2];
    for (int k = 1; k < n; k++) {
        read_row(n, k, v, A, B, C, place, row);
        if (cla_lane_is_zero(pivot) && cla_lane_is_zero(row[0])) return k;
        const int swapped = cla_lane_abs1(row[0]) > cla_lane_abs1(pivot);
        const cla_lane m = swapped ? cla_lane_mul(pivot, cla_lane_recip(row[0]))
                                   : cla_lane_mul(row[0], cla_lane_recip(pivot));
        pivot = swapped ? cla_lane_fnma(m, row[1], above) : cla_lane_fnma(m, above, row[1]);
        above = swapped ? CLA_MINUS(cla_lane_mul(m, row[2])) : row[2];
    }
    return n;
}
#endif

#ifdef BOTH_PIVOTED
__kernel CLA_GROUP_OF(GROUP) void both_pivoted(long nsys, long size, long inner, long columns, ORDINARY(a), ORDINARY(b),
                                               ORDINARY(c), ORDINARY(r), ORDINARY(x), __global int *info)
{
    __local cla_lane room[ROOM];
    __local int flags[LANES];
    __local long place[5][LANES];
    const int n = size, l = get_local_id(0);
    const ordinary A = AS_ORDINARY(a), B = AS_ORDINARY(b), C = AS_ORDINARY(c), R = AS_ORDINARY(r), X = AS_ORDINARY(x);
    cla_lane low[DEEP], diag[DEEP], up[DEEP], left[DEEP], y[DEEP];
    int singular = 0;
    if (l < LANES) flags[l] = 0;
    FIND_MATRICES
    FIND_VECTORS
    MEET
    for (long j = 0; j < columns; j++) {
        read_rows(n, 0, l, A, B, C, place, low, diag, up);
        read_right(n, 0, j, l, R, place, y);
        share_all(l, low, diag, up, y, room);
        singular |= eliminate(l, low, diag, up, left, y, room);
        join_all(l, room, flags);
        if (member_of(l) == 0) singular |= finish(l, room);
        part_all(l, room);
        substitute(l, low, diag, up, left, y, room);
        write_solution(n, 0, j, l, nsys - FIRST, X, place, y, room);
    }
    if (singular) flags[l % LANES] = 1;
    MEET
    if (l < LANES) info[FIRST + l] = flags[l] ? first_zero(n, l, A, B, C, place) : 0;
}
#endif

/* Number t of what is left of the rows of team `part`, and of the pairs where these begin. */
#define END(t, part) ends[((t) * parts + (part)) * lanes + FIRST + l % LANES]

#if defined(REDUCE_PIVOTED) || defined(EXPAND_PIVOTED)
__kernel CLA_GROUP_OF(GROUP) void
#ifdef REDUCE_PIVOTED
reduce_pivoted(
#else
expand_pivoted(
#endif
    long nsys, long size, long inner, long column, long lanes, ORDINARY(a), ORDINARY(b), ORDINARY(c), ORDINARY(r),
    ORDINARY(x), __global CLA_REAL *places)
{
    __local cla_lane room[ROOM];
    __local int flags[LANES];
    __local long place[5][LANES];
    __global cla_lane *const ends = (__global cla_lane *)places;
    const int n = size, l = get_local_id(0), own = get_group_id(1), first = own * SPAN;
    const long parts = get_num_groups(1) + 1;
    const ordinary A = AS_ORDINARY(a), B = AS_ORDINARY(b), C = AS_ORDINARY(c), R = AS_ORDINARY(r), X = AS_ORDINARY(x);
    cla_lane low[DEEP], diag[DEEP], up[DEEP], left[DEEP], y[DEEP];
    if (l < LANES) flags[l] = 0;
    FIND_MATRICES
    FIND_VECTORS
    MEET
    read_rows(n, first, l, A, B, C, place, low, diag, up);
    read_right(n, first, column, l, R, place, y);
    share_all(l, low, diag, up, y, room);
    int singular = eliminate(l, low, diag, up, left, y, room);
    join_all(l, room, flags);
#ifdef REDUCE_PIVOTED
    if (singular) flags[l % LANES] = 1;
    MEET
    if (l < LANES) {
        for (int t = 0; t < KEPT - 1; t++) END(t, own) = SLOT(t, 0);
        END(KEPT - 1, own) = cla_lane_real(flags[l]);
    }
#else
    if (l < LANES)
        for (int t = 0; t < 2; t++) {
            SLOT(t, 0) = END(t, own);
            SLOT(t, MEMBERS) = END(t, own + 1);
        }
    part_all(l, room);
    substitute(l, low, diag, up, left, y, room);
    write_solution(n, first, column, l, nsys - FIRST, X, place, y, room);
#endif
}
#endif

#ifdef JOIN_PIVOTED
__kernel CLA_GROUP_OF(GROUP) void join_pivoted(long nsys, long size, long inner, long count, long lanes, ORDINARY(a),
                                               ORDINARY(b), ORDINARY(c), __global CLA_REAL *places, __global int *info)
{
    __local cla_lane room[ROOM];
    __local int flags[LANES];
    __local long place[3][LANES];
    __global cla_lane *const ends = (__global cla_lane *)places;
    const int n = size, l = get_local_id(0), k = member_of(l);
    const long parts = count + 1;
    const ordinary A = AS_ORDINARY(a), B = AS_ORDINARY(b), C = AS_ORDINARY(c);
    if (l < LANES) flags[l] = 0;
    FIND_MATRICES
    const int exists = k < count && FIRST + l % LANES < nsys;
    int singular = 0;
    if (exists) singular = !cla_lane_is_zero(END(KEPT - 1, k));
    for (int t = 0; t < KEPT - 1; t++) /* where there is nothing, rows are those of the identity */
        SLOT(t, k) = exists ? END(t, k) : cla_lane_real(t == 1 || t == 7);
    join_all(l, room, flags);
    if (k == 0) singular |= finish(l, room);
    part_all(l, room);
    if (singular) flags[l % LANES] = 1;
    MEET
    for (int t = 0; t < 2; t++) { /* the pairs */
        if (k < count) END(t, k) = SLOT(t, k);
        if (k + 1 == count) END(t, count) = SLOT(t, count);
    }
    if (l < LANES) info[FIRST + l] = flags[l] ? first_zero(n, l, A, B, C, place) : 0;
}
#endif
