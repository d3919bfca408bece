/* geqp3 and gelsy on packs by teams of work-items, each of which holds whole columns of a matrix in registers, of sizes and
 * strides that are known when this is compiled: macros and arguments are those of geqp3.cl and gelsy.cl. Tunables:
 *
 * GEQP3_STRIPS, GELSY_STRIPS  one work-group for LANES matrices of a pack, each in a grid of one row and Q columns, as
 *                             grid.h says; right-hand sides are columns beside the matrix. Columns are not moved: each
 *                             knows its place, to which it goes by way of local memory when it is written
 *   LANES  matrices of a work-group, a divisor of V
 *   P, Q   1, and columns of the grid, a power of 2, at most 32
 *
 * gelsy, M >= N: A keeps what it held. Where pivots are zero, R^H is factored, whose reflectors Z are then those of the
 * complete orthogonal factorization, by all of the work-group; matrices beside such have the same bits as without.
 */
#include "known.h"

#ifndef P
#define P 1
#define Q 2
#endif
#define PACKED 1
#ifdef GELSY_STRIPS
#define HELD (N + R)
#endif
#undef K
#define K (M < N ? M : N)
#include "grid_reflectors.h"
#undef SPAN
#ifdef CLA_CPU
#define SPAN Q
#else
#define LARGEST_SPAN (M > 16 ? 8 : 4)
#define SPAN (LARGEST_SPAN < Q ? LARGEST_SPAN : Q) /* rows, and columns, in a block of steps */
#endif

#define CHAINS 2         /* of sums, which need not wait for each other */
#define ROWS_AT_ONCE 4   /* that are written together */
#define NO_COLUMN (-2)   /* lengths of columns that are not to be chosen, and of those with NaN */
#define NO_NUMBER (-1)
#define VECTOR (sizeof(cla_lane) < 16 ? 16 / (int)sizeof(cla_lane) : 1) /* elements that are read together */
#define WHOLE ((M + VECTOR - 1) / VECTOR * VECTOR)
#define COLUMN_LINE (WHOLE + (WHOLE / VECTOR % 2 ? 0 : VECTOR)) /* those of neighbours are in other banks */

#define LOWERED(v) (lift[v] > 1 ? 1 / CLA_RANGE : 1)

/* size[u], at[u] <- the other length and place, if that is longer, or as long and in front */
#define CLA_IF_LONGER(u, other, other_at) { \
        const int is_longer = other > size[u] || (other == size[u] && other_at < at[u]); \
        size[u] = is_longer ? other : size[u]; \
        at[u] = is_longer ? other_at : at[u]; \
    }
#define CLA_LONGEST_OF(half) \
    CLA_UNROLL for (int u = 0; u < half; u++) \
        if (u + half < Q) CLA_IF_LONGER(u, size[u + half], at[u + half])

#define GET_A(i, j) cla_lane_load(A, (long)(i) * ARS + (long)(j) * ACS)
#define PIVOTED_HEAD \
    CLA_GRID_HEAD \
    CLA_LOCAL cla_lane *line = lines + team * (2 * COLUMN_LINE); \
    cla_lane a[M][OWN_COLUMNS]; \
    CLA_REAL back[OWN_COLUMNS]; \
    int place[OWN_COLUMNS]; \
    A += a0 + cla_lane_place(q, aps);

/* Columns by powers of 2, so that squares neither overflow nor underflow: `back` has the reciprocals. */
#define PIVOTED_SCALE \
    CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) { \
        CLA_REAL sum = 0; \
        CLA_UNROLL for (int u = 0; u < M; u++) sum += cla_lane_abs1(a[u][v]); \
        const CLA_REAL scale = ldexp((CLA_REAL)1, -max(-LARGEST_POWER, min(LARGEST_POWER, ilogb(sum)))); \
        CLA_UNROLL for (int u = 0; u < M; u++) a[u][v] = a[u][v] * scale; \
        back[v] = 1 / scale; \
        place[v] = v * Q + c; \
    }

#ifdef GEQP3_STRIPS
#define KEEP(k, v, h) \
    taus[(k) * TEAMS + team] = h.tau; \
    inverses[(k) * TEAMS + team] = h.inverse * lift[v];

__kernel CLA_GROUP_OF(MEMBERS * LANES) void geqp3_strips(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                       __global int *jpvt, long jpvt0, long jpvtps,
                                                       __global CLA_REAL *tau, long tau0, long taups)
{
    __local cla_lane lines[2 * TEAMS * COLUMN_LINE] __attribute__((aligned(16)));
    __local cla_lane taus[TEAMS * K], inverses[TEAMS * K], tile[TEAMS * ROWS_AT_ONCE * N];
    __local CLA_REAL sizes[TEAMS * Q];
    __local int places[TEAMS * Q], order[TEAMS * N];
    PIVOTED_HEAD
    CLA_GRID_READ(a, M, N, 1, GET_A)
    PIVOTED_SCALE
#define STEP 0
#include "strip_geqp3_step.h"
#include "strip_geqp3_step.h"
#include "strip_geqp3_step.h"
#include "strip_geqp3_step.h"
#undef STEP
    CLA_GRID_FENCE
    CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) {
        if (!CLA_GRID_HAS(v * Q + c, N, Q)) continue;
        order[place[v] * TEAMS + team] = v * Q + c;
        const cla_lane inverse = inverses[min(place[v], K - 1) * TEAMS + team];
        CLA_UNROLL for (int u = 0; u < M; u++)
            a[u][v] = cla_lane_select(u > place[v], cla_lane_mul(a[u][v], inverse), a[u][v] * back[v]);
    }
    CLA_UNROLL for (int first = 0; first < M; first += ROWS_AT_ONCE) {
        CLA_TOGETHER
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++)
            CLA_UNROLL for (int u = first; u < first + ROWS_AT_ONCE; u++)
                if (u < M && CLA_GRID_HAS(v * Q + c, N, Q)) tile[((u - first) * N + place[v]) * TEAMS + team] = a[u][v];
        CLA_TOGETHER
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++)
            CLA_UNROLL for (int u = first; u < first + ROWS_AT_ONCE; u++) {
                const int j = v * Q + c;
                if (u < M && CLA_GRID_HAS(j, N, Q))
                    cla_lane_store(A, (long)u * ARS + (long)j * ACS, tile[((u - first) * N + j) * TEAMS + team]);
            }
    }
    jpvt += jpvt0 + cla_lane_place(q, jpvtps);
    tau += tau0 + cla_lane_place(q, taups);
    for (int j = t; j < N; j += MEMBERS) cla_int_store(jpvt, j, order[j * TEAMS + team]);
    for (int k = t; k < K; k += MEMBERS) cla_lane_store(tau, k * TAURS, taus[k * TEAMS + team]);
}
#endif

#ifdef GELSY_STRIPS
#define B_AT(i, j) ((long)(i) * BRS + (long)((j) - N) * BCS)
#define GET(i, j) ((j) < N ? GET_A(i, j) : cla_lane_load(B, B_AT(i, j)))
#define EACH_OF_B(code) \
    CLA_UNROLL for (int v = FIRST_OF_B; v < OWN_COLUMNS; v++) { \
        const int j = v * Q + c; \
        if (j >= N && CLA_GRID_HAS(j, HELD, Q)) { code } \
    }
#define EACH_ROW(first, end) CLA_UNROLL for (int u = first; u < end; u++)
#define TILE (N > Q ? N : Q) /* a line of the tile */

/* The solution in the first n rows of right-hand sides, times `back` and FACTOR(u), to where its rows belong, by
 * way of the places in local memory that a work-item has for itself; what is below, times `back`. */
#define WRITE_SOLUTION(FACTOR) \
    EACH_OF_B( \
        EACH_ROW(0, N) \
            tile[(order[u * TEAMS + team] * Q + c) * TEAMS + team] = a[u][v] * back[v] * FACTOR(u); \
        EACH_ROW(0, M) \
            cla_lane_store(B, B_AT(u, j), u < N ? tile[(min(u, N - 1) * Q + c) * TEAMS + team] : a[u][v] * back[v]);)
#ifdef CLA_CPU
#define IF_DEFICIENT /* PoCL takes minutes for the barriers of a condition */
#else
#define IF_DEFICIENT if (more)
#endif
#define COLUMN_SCALE(u) scales[(u) * TEAMS + team]
#define MATRIX_SCALE(u) (1 / largest)

__kernel CLA_GROUP_OF(MEMBERS * LANES) void gelsy_strips(long lanes, long nm, CLA_SCALAR(rcond),
                                                       __global const CLA_REAL *restrict A, long a0, long aps,
                                                       __global CLA_REAL *B, long b0, long bps,
                                                       __global int *jpvt, long jpvt0, long jpvtps,
                                                       __global CLA_REAL *room, long tau0, long taups, __global int *rank)
{
    __local cla_lane lines[TEAMS * (2 * COLUMN_LINE > ROOM ? 2 * COLUMN_LINE : ROOM)] __attribute__((aligned(16)));
    __local cla_lane taus[TEAMS * N], tops[TEAMS * N], tile[TEAMS * TILE * N];
    __local CLA_REAL sizes[TEAMS * Q], pivots[TEAMS * N], scales[TEAMS * N];
    __local int places[TEAMS * Q], order[TEAMS * N], deficient;
    __local cla_lane sums[1]; /* of which there are none in one row */
    PIVOTED_HEAD
    B += b0 + cla_lane_place(q, bps);
    CLA_GRID_READ(a, M, HELD, 1, GET)
    PIVOTED_SCALE
    if (get_local_id(0) == 0) deficient = 0;
#define KEEP(k, v, h) pivots[(k) * TEAMS + team] = fabs(h.beta) * LOWERED(v) * back[v];
#define STEP 0
#include "strip_geqp3_step.h"
#include "strip_geqp3_step.h"
#include "strip_geqp3_step.h"
#include "strip_geqp3_step.h"
#undef STEP
#undef KEEP
    CLA_UNROLL for (int v = 0; v < OWN_OF_A; v++) {
        if (v * Q + c >= N) continue;
        order[place[v] * TEAMS + team] = v * Q + c;
        scales[place[v] * TEAMS + team] = 1 / back[v];
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); /* of all teams, as B is read */
    int found = 0, counts = 1;
    for (int k = 0; k < N; k++) {
        const CLA_REAL pivot = pivots[k * TEAMS + team];
        counts &= !(pivot == 0 || pivot < rcond * pivots[team]);
        found += counts;
    }
    if (found < N) deficient = 1;
    if (t == 0 && q < nm) rank[q] = found;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int more = deficient;
    if (found < N) { EACH_OF_B(EACH_ROW(0, M) cla_lane_store(B, B_AT(u, j), a[u][v]);) }
#define STEP 0
#include "strip_solve_step.h"
#include "strip_solve_step.h"
#include "strip_solve_step.h"
#include "strip_solve_step.h"
#undef STEP
    if (found == N) { WRITE_SOLUTION(COLUMN_SCALE) }
    IF_DEFICIENT {
        CLA_TOGETHER
        const CLA_REAL largest = ldexp((CLA_REAL)1, max(-LARGEST_POWER, min(LARGEST_POWER, ilogb(pivots[team]))));
        CLA_UNROLL for (int v = 0; v < OWN_OF_A; v++) {
            if (v * Q + c >= N) continue;
            const CLA_REAL scale = back[v] / largest;
            CLA_UNROLL for (int u = 0; u < N; u++)
                tile[(u * N + place[v]) * TEAMS + team] =
                    cla_lane_select(u <= place[v] && u < found, cla_lane_conj(a[u][v] * scale), cla_lane_real(0));
        }
        CLA_TOGETHER
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) {
            const int j = v * Q + c;
            CLA_UNROLL for (int u = 0; u < M; u++) {
                a[u][v] = cla_lane_real(0);
                if (u < N && j < N) a[u][v] = tile[(j * N + u) * TEAMS + team];
            }
        }
        CLA_TOGETHER
#undef SPAN
#define SPAN Q /* blocks of few matrices are large, which compile fast */
#define LINES_OF(k) ((k) % 2 * LINES)
#define KEEP(k, h) \
    taus[team * N + k] = h.tau * cla_add_square(h.inverse, 0); \
    tops[team * N + k] = h.top;
#define STEP 0
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#undef STEP
        CLA_TOGETHER
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) {
            const int j = v * Q + c;
            CLA_UNROLL for (int u = 0; u < N; u++)
                if (j < N) a[u][v] = cla_lane_select(u == j && j >= found, cla_lane_real(1), a[u][v]);
        }
        if (found < N) { EACH_OF_B(EACH_ROW(0, N) if (u < found) a[u][v] = cla_lane_load(B, B_AT(u, j));) }
#undef TRANS
#define TRANS 1
#define STEP 0
#include "grid_triangle_step.h"
#include "grid_triangle_step.h"
#include "grid_triangle_step.h"
#include "grid_triangle_step.h"
#undef STEP
        CLA_TOGETHER
#define ALONG 0
#define STEP 0
#include "grid_reflect_step.h"
#include "grid_reflect_step.h"
#include "grid_reflect_step.h"
#include "grid_reflect_step.h"
#undef STEP
        if (found < N) { WRITE_SOLUTION(MATRIX_SCALE) }
    }
}
#endif
