/* Solutions of triangular systems, and of those with a Cholesky factor or those of LU, for stacks of ordinary matrices in
 * one pass: a team of work-items a matrix, right-hand sides in registers, triangles in local memory.
 *
 * Arguments are those of ordinary.h, macros those and the ones of grid.h, where the grid is that of B, of N rows. A
 * triangle is read as a lower one, L, whatever UPLO says. Define GRID_CHO_SOLVE for L L^H x = b; else TRANS, 0 for a
 * solution with A, 1 with A^T, 2 with A^H; and GRID_LU_SOLVE for a matrix of which A has the factors, its pivots PTYPE,
 * PRS apart, or DIAG, 1 for a diagonal of ones, which is not read. P rows at a time go through local memory; all members
 * solve for them, and each subtracts what they bring from its own other rows.
 *
 * CHUNK  columns of B that a member has at a time
 * PANEL  columns or rows of triangles that are in local memory at a time: N, or a multiple of P
 * COPIED 1: numbers of A are of the computation's type, so that NVIDIA's GPUs copy them while nobody waits
 */
#include "async_copy.h"
#include "grid.h"

#ifndef UPLO
#define UPLO 0
#endif
#ifndef TRANS
#define TRANS 0
#define DIAG 0
#endif
#ifndef PANEL
#define CHUNK 1
#define PANEL N
#define COPIED 0
#endif

/* Triangles: whether there is a lower one for a solution downwards and an upper one for the way back, in columns of
 * which elements are BACK, or the first again; and whether they have ones on the diagonal. */
#if defined(GRID_CHO_SOLVE)
#define CONJUGATED UPLO /* L is the conjugate of what is in memory */
#define FORWARD 1
#define BACKWARD 1
#define FORWARD_UNIT 0
#define BACKWARD_UNIT 0
#define BACK_AT(i, k) (CONJUGATED ? ROW_OF_L_AT(first, k, i) : cla_lane_conj(ROW_OF_L_AT(first, k, i)))
#elif defined(GRID_LU_SOLVE)
#undef UPLO
#define UPLO (TRANS > 0)
#define CONJUGATED (TRANS == 2)
#define FORWARD 1
#define BACKWARD 1
#define FORWARD_UNIT (TRANS == 0)
#define BACKWARD_UNIT (TRANS > 0)
#define BACK_AT(i, k) AHEAD(L_AT(first, i, k))
#else
#define CONJUGATED (TRANS == 2)
#define FORWARD ((UPLO == 0) == (TRANS == 0))
#define BACKWARD (!FORWARD)
#define FORWARD_UNIT DIAG
#define BACKWARD_UNIT DIAG
#define BACK_AT(i, k) AHEAD(ROW_OF_L_AT(first, k, i))
#endif
#ifdef GRID_LU_SOLVE
#define ROWS_BACK 0 /* panels of rows for the way back, not columns */
#define READ(i, j, back) (PANEL == N || ((back) ? (i) <= (j) : (i) >= (j)))
#else
#define ROWS_BACK 1
#define READ(i, j, back) (UNIT ? (j) < (i) : (j) <= (i))
#endif
#ifndef PTYPE
#define PTYPE int
#define PRS 1
#endif

#define AHEAD(x) (CONJUGATED ? cla_lane_conj(x) : x) /* element of L */

#define BLOCKS ((N + P - 1) / P) /* of P rows */
#define GROUP_SIZE (MEMBERS * TEAMS)
#define WIDE (N | 1)
#define NARROW (PANEL | 1)
/* L in local memory, in turns of its banks; or panels of columns, for FORWARD, or of rows */
#define TILE (PANEL == N ? N * WIDE + ((P - N) * WIDE & 31) : N * NARROW > PANEL * WIDE ? N * NARROW : PANEL * WIDE)
#define HAS(i, j) ((N % P == 0 || (i) < N) && (R % (Q * CHUNK) == 0 || (j) < R)) /* B has that element */
#define IN_N(i) (N % P == 0 || (i) < N)
#define OF_N(i) (N % P == 0 ? (i) : min(i, N - 1))
#define SIZE(a) ((a) < 0 ? -(a) : (a))
#define ALONG_J ((UPLO == 0) == (SIZE(ACS) <= SIZE(ARS))) /* neighbours in memory have the same i */
#define L_AT(first, i, j) tile[(i) * NARROW + (j) - (first)]
#define ROW_OF_L_AT(first, i, j) tile[((i) - (first)) * WIDE + (j)]

#if CLA_WARP && COPIED
#define CLA_TO(to, place) cla_copy_apart(&(to), (__global const CLA_REAL *)A, place, 1);
#else
#define CLA_TO(to, place) to = CLA_NUMBER_AT(A, place);
#endif

/* tile <- PANEL columns of L from `first` on, or for !columns rows, for all matrices of the work-group; of LU the columns
 * of U for the way `back` */
#define CLA_BEGIN_PANEL(columns, AT, first, back) { \
        const int rows = (columns) ? N : PANEL, width = (columns) ? PANEL : N; \
        _Pragma("unroll 2") for (int other = 0; other < TEAMS; other++) { \
            const long begin = A0 + min((long)get_group_id(0) * TEAMS + other, nm - 1) * Astep; \
            CLA_LOCAL cla_lane *tile = tiles + other * TILE; \
            _Pragma("unroll 8") for (int e0 = 0; e0 < rows * width; e0 += GROUP_SIZE) { \
                const int e = e0 + l; \
                const int i = ((columns) ? 0 : (first)) + (ALONG_J ? e / width : e % rows); \
                const int j = ((columns) ? (first) : 0) + (ALONG_J ? e % width : e / rows); \
                if (e < rows * width && i < N && j < N && READ(i, j, back)) \
                    CLA_TO(AT(first, i, j), begin + (UPLO ? j * ARS + i * ACS : i * ARS + j * ACS)) \
            } \
        } \
    }

/* They are there, with reciprocals on the diagonal. */
#define CLA_END_PANEL(AT, first) { \
        if (CLA_WARP && COPIED) cla_copies_wait(); \
        CLA_TOGETHER \
        if (!UNIT) { \
            for (int e = l; e < TEAMS * PANEL; e += GROUP_SIZE) { \
                const int other = e / PANEL, k = (first) + e % PANEL; \
                CLA_LOCAL cla_lane *tile = tiles + other * TILE; \
                if (k < N) { \
                    const cla_lane d = AT(first, k, k); \
                    if (REPORTED && cla_lane_is_zero(d)) failures[other] = 1; \
                    AT(first, k, k) = cla_lane_recip(d); \
                } \
            } \
            CLA_TOGETHER \
        } \
    }

#if defined(GRID_CHO_SOLVE)
#define NAME grid_cho_solve
#elif defined(GRID_LU_SOLVE)
#define NAME grid_lu_solve
#define PIVOTS , __global const PTYPE *restrict piv, long piv0, long pivstep
#define ROW_OF_B(i) (TRANS ? (i) : order[i])
#define ROW_OF_X(i) (TRANS ? order[i] : (i))
#else
#define NAME grid_solve_triangular
#define REPORTED 1
#endif
#ifndef PIVOTS
#define PIVOTS
#define ROW_OF_B(i) (i)
#define ROW_OF_X(i) (i)
#endif
#ifndef REPORTED
#define REPORTED 0 /* zeros on the diagonal */
#endif

__kernel CLA_GROUP_OF(GROUP_SIZE) void NAME(long nm, long told, __global int *failed CLA_ARGUMENT(A) PIVOTS
                                            CLA_ARGUMENT(B), __global TARGET *restrict X)
{
    __local cla_lane tiles[TEAMS * TILE];
    __local cla_lane blocks[TEAMS * 2 * CHUNK * Q * P];
    __local int failures[TEAMS];
    CLA_GRID_HEAD
    const int l = get_local_id(0);
    CLA_LOCAL cla_lane *tile = tiles + team * TILE;
    if (l < TEAMS) failures[l] = 0;
#define UNIT FORWARD_UNIT
    if (PANEL == N) CLA_BEGIN_PANEL(1, L_AT, 0, 0)
#undef UNIT
#ifdef GRID_LU_SOLVE
    __local int swaps[TEAMS * N], orders[TEAMS * N];
    CLA_LOCAL int *swap = swaps + team * N, *order = orders + team * N; /* the row that becomes each row */
    CLA_TOGETHER
    for (int k = t; k < N; k += MEMBERS) {
        const long row = (long)piv[piv0 + q_read * pivstep + k * PRS];
        if (row < 0 || row >= N) failures[team] = 1;
        swap[k] = (int)max(min(row, (long)N - 1), 0L);
    }
    CLA_TOGETHER
    for (int i0 = 0; i0 < N; i0 += MEMBERS) { /* as often for all members: else PoCL 3.0 leaves out some */
        int at = i0 + t;
        for (int k = 0; k < N; k++) {
            const int other = swap[k];
            at = at == k ? other : at == other ? k : at;
        }
        if (i0 + t < N) order[at] = i0 + t;
    }
    CLA_TOGETHER
#endif
    CLA_ROLLED for (int r0 = 0; r0 < R; r0 += Q * CHUNK) {
        cla_lane x[BLOCKS][CHUNK];
        CLA_UNROLL for (int u = 0; u < BLOCKS; u++)
            CLA_UNROLL for (int v = 0; v < CHUNK; v++) {
                const int i = u * P + p, j = r0 + v * Q + c;
                x[u][v] = cla_lane_real(0);
                if (HAS(i, j))
                    x[u][v] = CLA_NUMBER_AT(B, B0 + q_read * Bstep + ROW_OF_B(i) * BRS + j * BCS);
            }
#define UNIT (FORWARD_UNIT && BACKWARD_UNIT)
        if (PANEL == N && r0 == 0) CLA_END_PANEL(L_AT, 0)
#undef UNIT
        if (r0 > 0) CLA_TOGETHER
#if FORWARD
#define UP 0
#define UNIT FORWARD_UNIT
#define T_AT(i, k) AHEAD(L_AT(first, i, k))
#define NEXT_PANEL CLA_BEGIN_PANEL(1, L_AT, first, 0) CLA_END_PANEL(L_AT, first)
#include "grid_triangular_step.h"
#endif
#if BACKWARD
#define UP 1
#define UNIT BACKWARD_UNIT
#define T_AT(i, k) BACK_AT(i, k)
#if ROWS_BACK
#define NEXT_PANEL CLA_BEGIN_PANEL(0, ROW_OF_L_AT, first, 1) CLA_END_PANEL(ROW_OF_L_AT, first)
#else
#define NEXT_PANEL CLA_BEGIN_PANEL(1, L_AT, first, 1) CLA_END_PANEL(L_AT, first)
#endif
#include "grid_triangular_step.h"
#endif
        const int bad = failures[team];
        CLA_UNROLL for (int u = 0; u < BLOCKS; u++)
            CLA_UNROLL for (int v = 0; v < CHUNK; v++) {
                const int i = u * P + p, j = r0 + v * Q + c;
                if (q < nm && HAS(i, j))
                    cla_put(X, q * (N * R) + ROW_OF_X(i) * R + j, CLA_CHECKED(x[u][v]));
            }
        if (t == 0 && r0 == 0) CLA_REPORT
    }
}
