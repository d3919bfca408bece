/* Rows of band matrices with three diagonals and vectors in ordinary arrays, in the registers of teams: parted_bands.cl
 * and pivoted_bands.cl. A work-group has teams of
 *
 * MEMBERS, DEEP  work-items, and rows that each of them has: n is at most their product
 * LANES          for so many systems, a divisor of the vector length
 * SPREAD         1, or a divisor of MEMBERS: so many members that are next to each other as work-items are far from each
 *                other in a system
 * ALONG_A, ALONG_B, ALONG_X  what neighbouring work-items follow in the arrays: 0 the unknowns, 1 the systems
 * DENSE          1 if unknowns that work-items follow have nothing between them
 *
 * DEEP divides LANES times MEMBERS, and LANES or DEEP the other.
 *
 * What lies along the unknowns goes through local memory.
 */
#include "band_rows.h"

#ifndef COMMON
#define COMMON 0
#endif
#ifndef MEMBERS
#define MEMBERS 4
#define DEEP 8
#define LANES 8
#endif
#ifndef ALONG_A
#define ALONG_A 0
#endif
#ifndef ALONG_B
#define ALONG_B 0
#define ALONG_X 0
#endif
#ifndef SPREAD
#define SPREAD 1
#endif
#ifndef DENSE
#define DENSE 0
#endif

#define GROUP (LANES * MEMBERS)
#define SPAN (MEMBERS * DEEP)
#define BANKS (128 / (int)sizeof(cla_lane)) /* numbers that local memory gives at a time */
#define PITCH ((SPAN + MEMBERS + SPREAD * SKEW + BANKS - 1) / BANKS * BANKS + (BANKS > LANES ? BANKS / LANES : 1))
#define TILES (LANES * PITCH * (int)sizeof(cla_lane) <= 16384 ? 2 : 1) /* which take turns, and spare barriers */
#define SKEW (SPREAD > 1 ? (BANKS + 1 - MEMBERS / SPREAD * (DEEP + 1) % BANKS) % BANKS : 0)
#define FIRST ((long)get_group_id(0) * LANES) /* system of a work-group */
#define EACH_ROW CLA_UNROLL for (int e = 0; e < DEEP; e++)
#define MEET barrier(CLK_LOCAL_MEM_FENCE);
#define TILE_PLACE(v, k) ((v) * PITCH + (k) + (k) / DEEP + (SPREAD > 1 ? (k) / (SPAN / SPREAD) * SKEW : 0))
#define STEP(along, rs) (DENSE && !(along) ? (long)(sizeof(cla_lane) / sizeof(CLA_REAL)) : (rs))

/* place[i] <- where the systems of a work-group begin in array a. */
#define FIND(i, a) \
    if (l < LANES) place[i][l] = system_place(a, min(FIRST + l, nsys - 1), inner);

/* Which member of its team a work-item is. */
CLA_INLINE int member_of(int l) { return l / LANES % SPREAD * (MEMBERS / SPREAD) + l / LANES / SPREAD; }

/* Of element e of those that work-item l moves: which system and row it is of, and where that is in a tile. Behind the
 * first these follow from constants. */
CLA_INLINE int moved_lane(int along, int l, int e) { return along ? l % LANES : e * GROUP / SPAN + l / SPAN; }
CLA_INLINE int moved_row(int along, int l, int e) { return along ? member_of(l) * DEEP + e : e * GROUP % SPAN + l % SPAN; }
#define MOVED(e) tile[moved + TILE_PLACE((e) * GROUP / SPAN, (e) * GROUP % SPAN)]
#define OWN(e) tile[own_place + (e)]
#define FIND_TILE(l) \
    const int moved = TILE_PLACE((l) / SPAN, (l) % SPAN), own_place = TILE_PLACE((l) % LANES, member_of(l) * DEEP);

/* What was moved becomes that of rows of each work-item, and back. */
CLA_INLINE void share_apart(int along, int l, cla_lane *own, CLA_LOCAL cla_lane *tile)
{
    if (along) return;
    FIND_TILE(l)
    EACH_ROW MOVED(e) = own[e];
    MEET
    EACH_ROW own[e] = OWN(e);
}
CLA_INLINE void share(int along, int l, cla_lane *own, CLA_LOCAL cla_lane *tile)
{
    if (along) return;
    MEET
    share_apart(along, l, own, tile);
}
CLA_INLINE void share_back(int along, int l, cla_lane *own, CLA_LOCAL cla_lane *tile)
{
    if (along) return;
    FIND_TILE(l)
    MEET
    EACH_ROW OWN(e) = own[e];
    MEET
    EACH_ROW own[e] = MOVED(e);
}

/* from <- where in an array element e is of those that a work-item moves, rows beginning `shift` further on: as it was
 * with element 0 of the same system, from which steps lead on. */
#define FIND_MOVED(from, D, along, which, e, shift) \
    if ((along) ? (e) == 0 : (e) * GROUP % SPAN == 0) \
        from = D.p + place[which][moved_lane(along, l, e)] + (first + moved_row(along, l, 0) + (shift)) * STEP(along, D.rs);
#define STEPS(D, along, e) (((along) ? (e) : (e) * GROUP % SPAN) * STEP(along, D.rs))

/* row <- row k of system v of a work-group. */
CLA_INLINE void read_row(int n, int k, int v, ordinary A, ordinary B, ordinary C, CLA_LOCAL const long (*place)[LANES],
                         cla_lane *row)
{
    cla_lane number[WIDTH];
    CLA_UNROLL for (int s = 0; s < WIDTH; s++) {
        const int which = APART ? s : 0, i = band_place(s, k, n);
        const ordinary D = which == 0 ? A : which == 1 ? B : C;
        number[s] = cla_lane_real(0);
        if (i >= 0) number[s] = cla_lane_load_apart(D.p, place[which][v] + i * D.rs + band_diagonal(s) * D.cs, 1);
    }
    band_row(number, k, n, row);
}

/* low, diag, up <- the rows of each member, since row `first`; those that there are not are of the identity. */
CLA_INLINE void read_rows(int n, int first, int l, ordinary A, ordinary B, ordinary C, CLA_LOCAL const long (*place)[LANES],
                          cla_lane *low, cla_lane *diag, cla_lane *up)
{
    __global CLA_REAL *from[WIDTH];
    EACH_ROW
    {
        const int k = first + moved_row(ALONG_A, l, e);
        cla_lane number[WIDTH], row[WIDTH];
        CLA_UNROLL for (int s = 0; s < WIDTH; s++) {
            const int which = APART ? s : 0;
            const ordinary D = which == 0 ? A : which == 1 ? B : C;
            FIND_MOVED(from[s], D, ALONG_A, which, e, band_shift(s))
            number[s] = cla_lane_real(0);
            if (k < n - max(s - 1, 0) && (s > 0 || k > 0))
                number[s] = cla_lane_load_apart(from[s], STEPS(D, ALONG_A, e) + band_diagonal(s) * D.cs, 1);
        }
        band_row(number, k, n, row);
        low[e] = row[0];
        diag[e] = k < n ? row[1] : cla_lane_real(1);
        up[e] = row[2];
    }
}

/* y <- right-hand sides j since row `first`, and back. */
CLA_INLINE void read_right(int n, int first, long j, int l, ordinary R, CLA_LOCAL const long (*place)[LANES], cla_lane *y)
{
    __global CLA_REAL *from;
    EACH_ROW
    {
        FIND_MOVED(from, R, ALONG_B, 3, e, 0)
        y[e] = cla_lane_real(0);
        if (first + moved_row(ALONG_B, l, e) < n) y[e] = cla_lane_load_apart(from, STEPS(R, ALONG_B, e) + j * R.cs, 1);
    }
}
/* Rows and right-hand sides that were read become those of each work-item. Where they are so as they were read, all wait
 * nevertheless: compilers put off reading to where numbers are needed. */
CLA_INLINE void share_all(int l, cla_lane *low, cla_lane *diag, cla_lane *up, cla_lane *y, CLA_LOCAL cla_lane *tile)
{
    CLA_LOCAL cla_lane *const other = tile + (TILES - 1) * LANES * PITCH;
    MEET
    share_apart(ALONG_A, l, low, tile);
    if (TILES == 1) MEET
    share_apart(ALONG_A, l, diag, other);
    if (TILES == 1) MEET
    share_apart(ALONG_A, l, up, tile);
    if (TILES == 1 || ALONG_A) MEET
    share_apart(ALONG_B, l, y, other);
}

CLA_INLINE void write_solution(int n, int first, long j, int l, long systems, ordinary X,
                               CLA_LOCAL const long (*place)[LANES], cla_lane *y, CLA_LOCAL cla_lane *tile)
{
    __global CLA_REAL *to;
    share_back(ALONG_X, l, y, tile);
    EACH_ROW
    {
        FIND_MOVED(to, X, ALONG_X, 4, e, 0)
        if (first + moved_row(ALONG_X, l, e) < n && moved_lane(ALONG_X, l, e) < systems)
            cla_lane_store_apart(to, STEPS(X, ALONG_X, e) + j * X.cs, 1, y[e]);
    }
}
