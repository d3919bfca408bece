/* LU factorizations with partial pivoting of stacks of ordinary matrices, and what follows from them, in one pass: a team
 * of work-items a matrix, all of it in registers, with right-hand sides as further columns.
 *
 * Arguments are those of ordinary.h, macros those and the ones of grid.h. Define GRID_NAME; P >= Q; STAGED, 1 if
 * matrices go through local memory, so that neighbours read and write neighbours; and TURNS, 0 or, where teams are parts of
 * a warp, Q is 1, so that members have whole rows, and matrices are staged, the steps of grid_lu_block_step.h in a block.
 */
#include "determinant.h"

#ifndef STAGED
#define STAGED 1
#endif
#ifndef TURNS
#define TURNS 0
#endif
#if TURNS
#define BESIDE ((N + TURNS - 1) / TURNS * TURNS) /* where right-hand sides begin */
#else
#define BESIDE N
#endif
#ifdef GRID_SOLVE
#define HELD (BESIDE + R)
#else
#define HELD BESIDE
#endif
#include "grid.h"

#ifdef GRID_INV
#define INV 1
#define FIRST 0
#else
#define INV 0
#define FIRST STEP /* of the columns that a step changes */
#endif
#ifdef GRID_LU_FACTOR
#define KEEP 1 /* L */
#else
#define KEEP 0
#endif
#if defined(GRID_SOLVE) || defined(GRID_INV)
#define RECIPROCALS 1 /* of pivots are kept, not these */
#else
#define RECIPROCALS 0
#endif

#if TURNS
#define STEPS_FILE "grid_lu_block_step.h"
#else
#define STEPS_FILE "grid_lu_step.h"
#endif
#if KEEP || defined(GRID_SOLVE)
#define SAVED 1 /* what is eliminated */
#else
#define SAVED 0
#endif
#include "grid_lu_rows.h"
#if !TURNS
#define TILE_LINE (N | 1)
#if STAGED
#define TILE (M * TILE_LINE > M * (HELD - N) ? M * TILE_LINE : M * (HELD - N))
#else
#define TILE (M * (HELD - N) > 0 ? M * (HELD - N) : 1)
#endif
#endif

#include "grid_lu.h"

#define GET(i, j) CLA_NUMBER_AT(A, A0 + q_read * Astep + (i) * ARS + (j) * ACS)
/* Matrices without gaps are copied by the warp that has them. */
#if TURNS && CLA_WARP == 2 && ASAME && ARS == N * APARTS && ACS == APARTS
#include "async_copy.h"
#define RUN (N * CLA_PARTS) /* numbers of a row */
#define MOST_AT_ONCE (16 / (int)sizeof(CLA_REAL))
#define AT_ONCE (RUN % MOST_AT_ONCE == 0 ? MOST_AT_ONCE : MOST_AT_ONCE == 4 && RUN % 2 == 0 ? 2 : 1)
#define LU_COPY(n) \
    CLA_UNROLL_SOME for (int e0 = 0; e0 < 32 / MEMBERS * (M * RUN / (n)); e0 += 32) { \
        const int e = e0 + get_local_id(0) % 32, i = e % (M * RUN / (n)) * (n); \
        const int its = get_local_id(0) / 32 * (32 / MEMBERS) + e / (M * RUN / (n)); \
        if (32 / MEMBERS * (M * RUN / (n)) % 32 == 0 || e < 32 / MEMBERS * (M * RUN / (n))) \
            cla_copy_numbers((CLA_LOCAL CLA_REAL *)(tiles + its * TILE + i / RUN * TILE_LINE) + i % RUN, \
                             A + A0 + min(get_group_id(0) * (long)TEAMS + its, nm - 1) * Astep + i, n); \
    }
#define LU_READ \
    if (((size_t)(A + A0) | (size_t)Astep * sizeof(CLA_REAL)) % (AT_ONCE * sizeof(CLA_REAL)) == 0) { LU_COPY(AT_ONCE) } \
    else { LU_COPY(1) } \
    cla_copies_wait(); \
    CLA_TOGETHER \
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) \
        CLA_UNROLL for (int j = 0; j < BESIDE; j++) \
            a[u][j] = j < N && (M % P == 0 || u * P + p < M) ? tile[(u * P + p) * TILE_LINE + j] : cla_lane_real(0);
#elif STAGED
#define LU_READ \
    CLA_GRID_STAGED_READ(a, M, 0, N, ARS < ACS, tile, TILE_LINE, GET) \
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) \
        CLA_UNROLL for (int j = N; j < BESIDE; j++) a[u][j] = cla_lane_real(0);
#else
#define LU_READ CLA_GRID_READ(a, M, N, 1, GET)
#endif
#define PUT(e, x) cla_put(X, q * (M * N) + (e), x);
#define PUT_CHECKED(e, x) cla_put(X, q * (M * N) + (e), CLA_CHECKED(x));

#if defined(GRID_DET) || defined(GRID_SLOGDET)
#define PARTS (MEMBERS < 128 ? MEMBERS : 128) /* members that have a pivot */
__kernel CLA_GROUP_OF(MEMBERS * TEAMS) void
#ifdef GRID_DET
grid_det(long nm, long told, __global int *failed CLA_ARGUMENT(A), __global TARGET *restrict X)
#else
grid_slogdet(long nm, long told, __global int *failed CLA_ARGUMENT(A), __global TARGET *restrict X,
             __global TARGET *restrict logarithm)
#endif
{
    __local cla_determinant parts[TEAMS * PARTS];
    LU_HEAD
    LU_BEGIN
    LU_READ
#define STEP 0
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#undef STEP
    LU_END
    cla_determinant d = cla_determinant_of(0);
    for (int k = t; k < N; k += MEMBERS) {
        const int swap = swaps[team * N + k];
        int odd = !TURNS && swap != k;
        for (int other = 0; TURNS && other < k; other++) odd ^= swaps[team * N + other] > swap; /* rows, not places */
        const cla_lane pivot = pivots[team * N + k], u = odd ? CLA_MINUS(pivot) : pivot;
#ifdef GRID_DET
        cla_determinant_times(&d, u);
#else
        cla_determinant_times_sign(&d, u);
#endif
    }
    CLA_LOCAL cla_determinant *part = parts + team * PARTS;
    if (t < PARTS) part[t] = d;
    for (int rest = PARTS / 2; rest > 0; rest /= 2) {
        CLA_TOGETHER
        if (t < rest) {
            cla_determinant_join(&d, part[t + rest]);
            part[t] = d;
        }
    }
    if (t == 0 && q < nm) {
        cla_put(X, q, cla_determinant_value(d));
#ifdef GRID_SLOGDET
        logarithm[q] = (TARGET)d.sum;
#endif
    }
}
#endif

#ifdef GRID_LU_FACTOR
__kernel CLA_GROUP_OF(MEMBERS * TEAMS) void grid_lu_factor(long nm, long told, __global int *failed CLA_ARGUMENT(A),
                                                           __global TARGET *restrict X, __global int *restrict piv)
{
#if TURNS
    __local int order[TEAMS * M]; /* the row that has become each row */
#endif
    LU_HEAD
    LU_BEGIN
    LU_READ
#define STEP 0
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#undef STEP
    LU_END
    const int bad = singular[team];
    for (int k = t; k < LU_STEPS && q < nm; k += MEMBERS) piv[q * LU_STEPS + k] = swaps[team * LU_STEPS + k];
#if TURNS
#define PUT_FACTOR(e, x) PUT(e, tile[order[team * M + (e) / N] * TILE_LINE + (e) % N])
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
        if (place[u] >= 0) {
            order[team * M + place[u]] = u * P + p;
            CLA_UNROLL for (int j = (LU_STEPS + TURNS - 1) / TURNS * TURNS; j < N; j++)
                tile[(u * P + p) * TILE_LINE + j] = a[u][j - (LU_STEPS + TURNS - 1) / TURNS * TURNS];
        }
    CLA_TOGETHER
    CLA_GRID_STAGED_WRITE(M, N, tile, TILE_LINE, PUT_FACTOR)
#else
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) {
            const int j = v * Q + c;
            if (place[u] >= 0 && CLA_GRID_HAS(j, N, Q)) {
#if STAGED
                tile[place[u] * TILE_LINE + j] = a[u][v];
#else
                if (q < nm) PUT(place[u] * N + j, a[u][v])
#endif
            }
        }
#if STAGED
    CLA_TOGETHER
    CLA_GRID_STAGED_WRITE(M, N, tile, TILE_LINE, PUT)
#endif
#endif
    if (t == 0) CLA_REPORT
}
#endif

#ifdef GRID_INV
__kernel CLA_GROUP_OF(MEMBERS * TEAMS) void grid_inv(long nm, long told, __global int *failed CLA_ARGUMENT(A),
                                                     __global TARGET *restrict X)
{
    LU_HEAD
    LU_BEGIN
    LU_READ
#define STEP 0
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#undef STEP
    LU_END
    const int bad = singular[team];
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
        const cla_lane r = pivots[team * N + max(place[u], 0)];
        CLA_UNROLL for (int v = 0; v < (N + Q - 1) / Q; v++) {
            const int j = v * Q + c;
            if (place[u] >= 0 && CLA_GRID_HAS(j, N, Q)) {
                const int column = swaps[team * N + j]; /* the row that became row j */
#if STAGED
                tile[place[u] * TILE_LINE + column] = cla_lane_mul(r, a[u][v]);
#else
                if (q < nm) PUT_CHECKED(place[u] * N + column, cla_lane_mul(r, a[u][v]))
#endif
            }
        }
    }
#if STAGED
    CLA_TOGETHER
    CLA_GRID_STAGED_WRITE(N, N, tile, TILE_LINE, PUT_CHECKED)
#endif
    if (t == 0) CLA_REPORT
}
#endif

#ifdef GRID_SOLVE
#define GET_B(i, j) CLA_NUMBER_AT(B, B0 + q_read * Bstep + (i) * BRS + ((j) - BESIDE) * BCS)
#define PUT_SOLUTION(e, x) cla_put(X, q * (N * R) + (e), CLA_CHECKED(x));
#if TURNS
#define SOLUTIONS \
    __local cla_lane solutions[TEAMS * N * R]; \
    CLA_LOCAL cla_lane *solution = solutions + team * (N * R);
#else
#define SOLUTIONS CLA_LOCAL cla_lane *solution = tile;
#endif

__kernel CLA_GROUP_OF(MEMBERS * TEAMS) void grid_solve(long nm, long told, __global int *failed
                                                       CLA_ARGUMENT(A) CLA_ARGUMENT(B), __global TARGET *restrict X)
{
    LU_HEAD
    LU_BEGIN
    SOLUTIONS
    LU_READ
    CLA_TOGETHER
    CLA_GRID_STAGED_READ(a, N, BESIDE, HELD, BRS < BCS, tile, R, GET_B)
    CLA_TOGETHER
#define STEP 0
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#undef STEP
    LU_END
    const int bad = singular[team];
#if TURNS
    CLA_ROLLED for (int k = N - 1; k >= 0; k--) { /* row place[u] of U is line u P + p of the tile */
        cla_lane x[OWN_ROWS];
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
            if (place[u] == k)
                CLA_UNROLL for (int j = 0; j < R; j++) {
                    a[u][BESIDE + j] = cla_lane_mul(pivots[team * N + k], a[u][BESIDE + j]);
                    solution[k * R + j] = a[u][BESIDE + j];
                }
            x[u] = cla_lane_real(0);
            if (place[u] >= 0 && place[u] < k) x[u] = tile[(u * P + p) * TILE_LINE + k];
        }
        CLA_TOGETHER
        CLA_UNROLL for (int j = 0; j < R; j++) {
            const cla_lane y = solution[k * R + j];
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) a[u][BESIDE + j] = cla_lane_fnma(x[u], y, a[u][BESIDE + j]);
        }
    }
    CLA_GRID_STAGED_WRITE(N, R, solution, R, PUT_SOLUTION)
#else
#define STEP 0
#define BACK 1
#define UNIT 0
#include "grid_substitution_step.h"
#include "grid_substitution_step.h"
#include "grid_substitution_step.h"
#include "grid_substitution_step.h"
#undef STEP
    CLA_GRID_STAGED_WRITE(N, R, solution, R, PUT_SOLUTION)
#endif
    if (t == 0) CLA_REPORT
}
#endif
