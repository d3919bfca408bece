/* LU factorizations with partial pivoting of stacks of ordinary matrices, and what follows from them, in one pass: a team
 * of work-items a matrix, all of it in registers, with right-hand sides as further columns.
 *
 * Arguments are those of ordinary.h, macros those and the ones of grid.h. Define GRID_NAME; P >= Q; STAGED, 1 if
 * matrices go through local memory, so that neighbours read and write neighbours; and TURNS, 0 or, where the members of a
 * team, a warp at most, have a row each, M <= P and Q is 1, and matrices are staged, the steps that take columns for as
 * many.
 */
#include "determinant.h"

#ifdef GRID_SOLVE
#define HELD (N + R)
#endif
#ifndef STAGED
#define STAGED 1
#endif
#ifndef TURNS
#define TURNS 0
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
#define STEPS_FILE "grid_lu_moving_step.h"
#else
#define STEPS_FILE "grid_lu_step.h"
#endif

#define LAST_MULTIPLE (N + TURNS - 1)
#if TURNS && (KEEP || defined(GRID_SOLVE)) /* lines of the tile are rows of U, and multiples and right-hand sides beside */
#define WHOLE(n) (((n) + VECTOR - 1) / VECTOR * VECTOR)
#define BESIDE WHOLE(KEEP ? LAST_MULTIPLE + 1 : N)
#define TILE_LINE (WHOLE(BESIDE + HELD - N) + (WHOLE(BESIDE + HELD - N) / VECTOR % 2 == 0 ? VECTOR : 0))
#define LINE_OF(winner) (tile + (winner) * TILE_LINE)
#else
#define BESIDE N
#define TILE_LINE (N | 1)
#define LINE_OF(winner) (rows + (team * 2 + k % 2) * WIDTH)
#endif
#define LU_TURNS (INV ? N : TURNS)
#define WIDTH_LEFT (N - STEP * LU_TURNS)
#if STAGED
#define TILE (M * TILE_LINE > M * (HELD - N) ? M * TILE_LINE : M * (HELD - N))
#else
#define TILE (M * (HELD - N) > 0 ? M * (HELD - N) : 1)
#endif

#include "grid_lu.h"

#define GET(i, j) CLA_NUMBER_AT(A, A0 + q_read * Astep + (i) * ARS + (j) * ACS)
#if STAGED
#define LU_READ CLA_GRID_STAGED_READ(a, M, 0, N, ARS < ACS, tile, TILE_LINE, GET)
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
    LU_READ
#define STEP 0
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#undef STEP
    CLA_TOGETHER
    cla_determinant d = cla_determinant_of(0);
    for (int k = t; k < N; k += MEMBERS) {
        const cla_lane pivot = pivots[team * N + k], u = swaps[team * N + k] == k ? pivot : CLA_MINUS(pivot);
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
#define PUT_FACTOR(e, x) { \
        const int i = (e) / N, j = (e) % N; \
        const CLA_LOCAL cla_lane *line = tile + order[team * M + i] * TILE_LINE; \
        PUT(e, j < i ? line[LAST_MULTIPLE - j] : j > i ? line[j - i] : pivots[team * LU_STEPS + i]) \
    }
__kernel CLA_GROUP_OF(MEMBERS * TEAMS) void grid_lu_factor(long nm, long told, __global int *failed CLA_ARGUMENT(A),
                                                           __global TARGET *restrict X, __global int *restrict piv)
{
#if TURNS
    __local int order[TEAMS * M]; /* the row that has become each row */
#endif
    LU_HEAD
    LU_READ
#define STEP 0
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#undef STEP
    CLA_TOGETHER
    const int bad = singular[team];
    for (int k = t; k < LU_STEPS && q < nm; k += MEMBERS) piv[q * LU_STEPS + k] = swaps[team * LU_STEPS + k];
#if TURNS
    if (p < M) order[team * M + place[0]] = p;
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
    LU_READ
#define STEP 0
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#undef STEP
    CLA_TOGETHER
    const int bad = singular[team];
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
        const cla_lane r = pivots[team * N + max(place[u], 0)];
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) {
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
#define GET_B(i, j) CLA_NUMBER_AT(B, B0 + q_read * Bstep + (i) * BRS + ((j) - N) * BCS)
#define PUT_SOLUTION(e, x) cla_put(X, q * (N * R) + (e), CLA_CHECKED(x));
#if TURNS
#define SOLUTIONS \
    __local cla_lane solutions[TEAMS * N * R]; \
    CLA_LOCAL cla_lane *solution = solutions + team * (N * R);
/* A substitution, for an upper triangle if `back`, which has ones on the diagonal if `unit`. Element (i, j) of it is in the
 * line of the tile of the member whose row has become row i, at j - before. */
#define SUBSTITUTE(back, unit, before) \
    CLA_ROLLED for (int turn = 0; turn < N; turn++) { \
        const int k = (back) ? N - 1 - turn : turn; \
        cla_lane x = cla_lane_real(0); /* of column k */ \
        if (place[0] == k) \
            CLA_UNROLL for (int j = 0; j < R; j++) { \
                if (!(unit)) a[0][N + j] = cla_lane_mul(pivots[team * N + k], a[0][N + j]); \
                solution[k * R + j] = a[0][N + j]; \
            } \
        if ((back) ? place[0] >= 0 && place[0] < k : place[0] > k) x = tile[p * TILE_LINE + k - (before)]; \
        CLA_TOGETHER \
        CLA_UNROLL for (int j = 0; j < R; j++) a[0][N + j] = cla_lane_fnma(x, solution[k * R + j], a[0][N + j]); \
    }
#else
#define SOLUTIONS CLA_LOCAL cla_lane *solution = tile;
#endif

__kernel CLA_GROUP_OF(MEMBERS * TEAMS) void grid_solve(long nm, long told, __global int *failed
                                                       CLA_ARGUMENT(A) CLA_ARGUMENT(B), __global TARGET *restrict X)
{
    LU_HEAD
    SOLUTIONS
    LU_READ
    CLA_TOGETHER
    CLA_GRID_STAGED_READ(a, N, N, HELD, BRS < BCS, tile, R, GET_B)
    CLA_TOGETHER
#define STEP 0
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#include STEPS_FILE
#undef STEP
    CLA_TOGETHER
    const int bad = singular[team];
#if TURNS
    SUBSTITUTE(1, 0, place[0])
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
