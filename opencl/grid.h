/* A matrix in the registers of a team of work-items, which are a grid of P rows and Q columns.
 *
 * Element (i, j) is that of member (i % P, j % Q), as a[i / P][j / Q]: every member has some of all parts of the matrix,
 * so that work shrinks for all of them alike. Steps of a factorization pass a column and a row of the matrix through
 * local memory; a member reads of it what belongs to its own rows and columns, and keeps everything else in registers.
 *
 * Define M, N, or N alone for square matrices; P and Q, powers of 2; TEAMS, the matrices of a work-group; CLA_WARP as
 * warp.h has it, where work-groups are whole warps. Steps go in blocks of STEPS, in which all
 * indices of registers are numbers: a file writes them out by inclusion, as next_step.h explains.
 *
 * For packs, define PACKED, 1, and LANES instead of TEAMS: a work-group has so many matrices of a pack, which are neighbours in
 * memory, and those of their members that have the same place in the grid are neighbours. CLA_WARP is 1 where that is a
 * warp, and 2 only for one lane.
 */
#include "ordinary.h"
#include "unroll.h"

#ifndef PACKED
#define PACKED 0
#endif
#ifndef P
#define P 2
#define Q 2
#define TEAMS 2
#endif
#ifndef M
#define M N
#endif
#ifndef HELD
#define HELD N /* of what a team holds, if there are some beside those of the matrix */
#endif

#define MEMBERS (P * Q)
#define STEPS (P < Q ? P : Q) /* steps for which indices of registers stay as they are */
#define OWN_ROWS ((M + P - 1) / P) /* of a member */
#define OWN_COLUMNS ((HELD + Q - 1) / Q)
#define LONGEST (OWN_ROWS * P > OWN_COLUMNS * Q ? OWN_ROWS * P : OWN_COLUMNS * Q)
#define FIRST_ROW (STEP * STEPS / P) /* the first of them that has a part in the steps of a block */
#define FIRST_COLUMN (STEP * STEPS / Q)

#if P * Q > 32
#define CLA_WARPS (P * Q / 32)
#endif
#include "warp.h"

/* The matrix of this work-item, or the last where there is none, and its place in the grid. Neighbours are in a row of
 * it, or for DOWN in a column: as they are in memory. */
#ifndef DOWN
#define DOWN 0
#endif
#if PACKED
#undef TEAMS
#define TEAMS LANES
#define SIDE_BY_SIDE (LANES < 32 ? 32 / LANES : 1) /* members of a matrix in a warp */
#define CLA_GRID_PLACE const int team = get_local_id(0) % LANES, t = get_local_id(0) / LANES;
#define CLA_GRID_EXISTS 1
#else
#define SIDE_BY_SIDE 32
#define CLA_GRID_PLACE const int team = get_local_id(0) / MEMBERS, t = get_local_id(0) % MEMBERS;
#define CLA_GRID_EXISTS (q < nm)
#endif
#define CLA_GRID_HEAD \
    CLA_GRID_PLACE \
    const int p = DOWN ? t % P : t / Q, c = DOWN ? t / P : t % Q; \
    const long q = get_group_id(0) * (long)TEAMS + team, q_read = min(q, nm - 1);

/* Elements of a row or column in local memory: so many that what a warp reads of those of several matrices, SPREAD
 * neighbours of each, is in different banks. */
#define BANKS (128 / (int)sizeof(cla_lane))
#define SPREAD (SIDE_BY_SIDE < Q ? SIDE_BY_SIDE : Q)
#define CLA_GRID_APART(n, spread) ((n) + (BANKS + (spread) % BANKS - (n) % BANKS) % BANKS)
#define LINE CLA_GRID_APART(LONGEST, SPREAD)

/* Whether there is a row, or column, i of n, of a grid with so many; which is known where all members have the same. */
#define CLA_GRID_HAS(i, n, parts) ((n) % (parts) == 0 || (i) < (n))

/* a[u][v] <- get(i, j), for what is in row i = u P + p and column j = v Q + c, 0 for what is outside of m x n or not `read` */
#define CLA_GRID_READ(a, m, n, read, get) \
    CLA_UNROLL for (int u = 0; u < ((m) + P - 1) / P; u++) \
        CLA_UNROLL for (int v = 0; v < ((n) + Q - 1) / Q; v++) { \
            const int i = u * P + p, j = v * Q + c; \
            a[u][v] = cla_lane_real(0); \
            if (CLA_GRID_HAS(i, m, P) && CLA_GRID_HAS(j, n, Q) && (read)) a[u][v] = get(i, j); \
        }

/* What members have read of memory, others may write after it. */
#define CLA_GRID_FENCE barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

/* put(i, j, x) for elements x of m x n, of matrices that exist */
#define CLA_GRID_WRITE(a, m, n, put) \
    CLA_UNROLL for (int u = 0; u < ((m) + P - 1) / P; u++) \
        CLA_UNROLL for (int v = 0; v < ((n) + Q - 1) / Q; v++) { \
            const int i = u * P + p, j = v * Q + c; \
            if (CLA_GRID_EXISTS && CLA_GRID_HAS(i, m, P) && CLA_GRID_HAS(j, n, Q)) put(i, j, a[u][v]) \
        }

/* CLA_GRID_READ of columns `from` to `to` by way of local memory: neighbours read what is next to each other, in a column
 * of get(i, from + j) for `down`, and leave it at tile[i * line + j]. All of the team come here. */
#define CLA_GRID_STAGED_READ(a, m, from, to, down, tile, line, get) \
    CLA_UNROLL for (int e0 = 0; e0 < (m) * ((to) - (from)); e0 += MEMBERS) { \
        const int e = e0 + t, i = (down) ? e % (m) : e / ((to) - (from)), j = (down) ? e / (m) : e % ((to) - (from)); \
        if ((m) * ((to) - (from)) % MEMBERS == 0 || e < (m) * ((to) - (from))) (tile)[i * (line) + j] = get(i, (from) + j); \
    } \
    CLA_TOGETHER \
    CLA_UNROLL for (int u = 0; u < ((m) + P - 1) / P; u++) \
        CLA_UNROLL for (int v = (from) / Q; v < ((to) + Q - 1) / Q; v++) { \
            const int i = u * P + p, j = v * Q + c; \
            if ((from) % Q == 0 || j >= (from)) a[u][v] = cla_lane_real(0); \
            if (CLA_GRID_HAS(i, m, P) && ((from) % Q == 0 || j >= (from)) && CLA_GRID_HAS(j, to, Q)) \
                a[u][v] = (tile)[i * (line) + j - (from)]; \
        }

/* put(e, tile[i * line + j]) for elements e = i n + j of m x n, of matrices that exist. */
#define CLA_GRID_STAGED_WRITE(m, n, tile, line, put) \
    if (CLA_GRID_EXISTS) \
        CLA_UNROLL for (int e0 = 0; e0 < (m) * (n); e0 += MEMBERS) { \
            const int e = e0 + t; \
            if ((m) * (n) % MEMBERS == 0 || e < (m) * (n)) put(e, (tile)[e / (n) * (line) + e % (n)]) \
        }
