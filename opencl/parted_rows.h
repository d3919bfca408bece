/* Rows of band matrices with three diagonals and vectors in ordinary arrays, in the registers of teams: parted_bands.cl
 * and pivoted_bands.cl. A work-group has teams of
 *
 * MEMBERS, DEEP  work-items, and rows that each of them has: n is at most their product
 * LANES          for so many systems, a divisor of the vector length
 * SPREAD         1, or a divisor of MEMBERS: so many members that are next to each other as work-items are far from each
 *                other in a system
 * ALONG_A, ALONG_B, ALONG_X  what neighbouring work-items follow in the arrays: 0 the unknowns, 1 the systems
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

#define GROUP (LANES * MEMBERS)
#define SPAN (MEMBERS * DEEP)
#define BANKS (128 / (int)sizeof(cla_lane)) /* numbers that local memory gives at a time */
#define PITCH ((SPAN + MEMBERS + SPREAD * SKEW + BANKS - 1) / BANKS * BANKS + (BANKS > LANES ? BANKS / LANES : 1))
#define SKEW (SPREAD > 1 ? (BANKS + 1 - MEMBERS / SPREAD * (DEEP + 1) % BANKS) % BANKS : 0)
#define FIRST ((long)get_group_id(0) * LANES) /* system of a work-group */
#define EACH_ROW CLA_UNROLL for (int e = 0; e < DEEP; e++)
#define MEET barrier(CLK_LOCAL_MEM_FENCE);
#define TILE(v, k) tile[(v) * PITCH + (k) + (k) / DEEP + (SPREAD > 1 ? (k) / (SPAN / SPREAD) * SKEW : 0)]

/* place[i] <- where the systems of a work-group begin in array a. */
#define FIND(i, a) \
    if (l < LANES) place[i][l] = system_place(a, min(FIRST + l, nsys - 1), inner);

/* Which member of its team a work-item is. */
CLA_INLINE int member_of(int l) { return l / LANES % SPREAD * (MEMBERS / SPREAD) + l / LANES / SPREAD; }

/* Of element e of those that work-item l moves: which system and row it is of. */
CLA_INLINE int moved_lane(int along, int l, int e) { return along ? l % LANES : (e * GROUP + l) / SPAN; }
CLA_INLINE int moved_row(int along, int l, int e) { return along ? member_of(l) * DEEP + e : (e * GROUP + l) % SPAN; }

/* What was moved becomes that of rows of each work-item, and back. */
CLA_INLINE void share(int along, int l, cla_lane *own, CLA_LOCAL cla_lane *tile)
{
    if (along) return;
    MEET
    EACH_ROW TILE(moved_lane(0, l, e), moved_row(0, l, e)) = own[e];
    MEET
    EACH_ROW own[e] = TILE(l % LANES, member_of(l) * DEEP + e);
}
CLA_INLINE void share_back(int along, int l, cla_lane *own, CLA_LOCAL cla_lane *tile)
{
    if (along) return;
    MEET
    EACH_ROW TILE(l % LANES, member_of(l) * DEEP + e) = own[e];
    MEET
    EACH_ROW own[e] = TILE(moved_lane(0, l, e), moved_row(0, l, e));
}

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
    EACH_ROW
    {
        const int k = first + moved_row(ALONG_A, l, e);
        cla_lane row[WIDTH];
        read_row(n, k, moved_lane(ALONG_A, l, e), A, B, C, place, row);
        low[e] = row[0];
        diag[e] = k < n ? row[1] : cla_lane_real(1);
        up[e] = row[2];
    }
}

/* y <- right-hand sides j since row `first`, and back. */
#define READ_RIGHT(first, j) \
    EACH_ROW \
    { \
        const int v = moved_lane(ALONG_B, l, e), k = first + moved_row(ALONG_B, l, e); \
        y[e] = k < n ? cla_lane_load_apart(R.p, place[3][v] + k * R.rs + (j) * R.cs, 1) : cla_lane_real(0); \
    }

#define WRITE_SOLUTION(first, j) \
    share_back(ALONG_X, l, y, room); \
    EACH_ROW \
    { \
        const int v = moved_lane(ALONG_X, l, e), k = first + moved_row(ALONG_X, l, e); \
        if (k < n && FIRST + v < nsys) \
            cla_lane_store_apart(X.p, place[4][v] + k * X.rs + (j) * X.cs, 1, y[e]); \
    }
