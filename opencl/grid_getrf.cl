/* getrf and gesv on packs by teams of work-items, which hold a matrix in registers, of sizes and strides that are known
 * when this is compiled: macros and arguments are those of getrf.cl and gesv.cl. Tunables:
 *
 * GETRF_GRID, GESV_GRID  one work-group for LANES matrices of a pack, each in a grid of P x Q work-items, as grid.h
 *                        says; right-hand sides are columns beside the matrix
 *   LANES  matrices of a work-group, a divisor of V
 *   P, Q   rows and columns of the grid, powers of 2, P >= Q
 *   STAGED  1: matrices of one lane go through local memory as a whole
 */
#include "known.h"

#define PACKED 1
#ifdef GESV_GRID
#undef M
#define M N
#define HELD (N + R)
#endif
#if defined(GETRF_GRID) && THRESHOLD
#define LIMIT threshold
#if CLA_WARP == 2
#undef CLA_WARP
#define CLA_WARP 0
#endif
#endif
#include "grid.h"

#define INV 0
#define FIRST STEP
#define KEEP 1
#define RECIPROCALS 1

/* A, and A <- L\U with rows where they belong. What packs write goes through local memory, one block of columns after
 * the other, so that neighbours write the same row of neighbouring matrices; what ordinary matrices read and write, as
 * a whole where there is room. */
#define TILE_LINE (N | 1)
#ifndef STAGED
#define STAGED 0
#endif
#if LANES == 1
#define FACTORS (STAGED ? M * TILE_LINE : 1)
#define LU_READ \
    if (STAGED) { CLA_GRID_STAGED_READ(a, M, 0, N, ARS < ACS, tile, TILE_LINE, GET) } \
    else { CLA_GRID_READ(a, M, N, 1, GET) }
#define PUT(i, j, x) { \
        if (STAGED) tile[(i) * TILE_LINE + (j)] = x; \
        else cla_lane_store(A, (long)(i) * ARS + (long)(j) * ACS, x); \
    }
#define PUT_STAGED(e, x) cla_lane_store(A, (long)((e) / N) * ARS + (long)((e) % N) * ACS, x);
#define LU_WRITE \
    CLA_GRID_FENCE \
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) \
        CLA_UNROLL for (int v = 0; v < (N + Q - 1) / Q; v++) \
            if (place[u] >= 0 && CLA_GRID_HAS(v * Q + c, N, Q)) PUT(place[u], v * Q + c, a[u][v]) \
    CLA_TOGETHER \
    if (STAGED) CLA_GRID_STAGED_WRITE(M, N, tile, TILE_LINE, PUT_STAGED)
#else
#define FACTORS CLA_GRID_APART(OWN_ROWS *P *Q, SIDE_BY_SIDE)
#define LU_READ CLA_GRID_READ(a, M, N, 1, GET)
#define LU_WRITE \
    CLA_GRID_FENCE \
    CLA_UNROLL for (int v = 0; v < (N + Q - 1) / Q; v++) { \
        CLA_TOGETHER \
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) \
            if (place[u] >= 0) tile[place[u] * Q + c] = a[u][v]; \
        CLA_TOGETHER \
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) { \
            const int i = u * P + p, j = v * Q + c; \
            if (CLA_GRID_HAS(i, M, P) && CLA_GRID_HAS(j, N, Q)) \
                cla_lane_store(A, (long)i * ARS + (long)j * ACS, tile[i * Q + c]); \
        } \
    }
#endif
#define GET(i, j) cla_lane_load(A, (long)(i) * ARS + (long)(j) * ACS)

#ifdef GETRF_GRID
#define TILE FACTORS
#include "grid_lu.h"

__kernel CLA_GROUP_OF(MEMBERS * LANES) void getrf_grid(long lanes, long nm, CLA_SCALAR(threshold),
                                                       __global CLA_REAL *A, long a0, long aps,
                                                       __global int *ipiv, long ipiv0, long ipivps, __global int *info)
{
#ifdef LIMIT
    __local CLA_REAL diagonal[TEAMS];
#endif
    LU_HEAD
    A += a0 + cla_lane_place(q, aps);
    ipiv += ipiv0 + cla_lane_place(q, ipivps);
    LU_READ
#define STEP 0
#include "grid_lu_step.h"
#include "grid_lu_step.h"
#include "grid_lu_step.h"
#include "grid_lu_step.h"
#undef STEP
    LU_WRITE
    for (int k = t; k < LU_STEPS; k += MEMBERS) cla_int_store(ipiv, k, swaps[team * LU_STEPS + k]);
    if (t == 0 && q < nm) info[q] = singular[team];
}
#endif

#ifdef GESV_GRID
#define SOLUTION CLA_GRID_APART(N *R, SPREAD)
#define TILE (SOLUTION > FACTORS ? SOLUTION : FACTORS)
#include "grid_lu.h"
#define GET_B(i, j) cla_lane_load(B, (long)(i) * BRS + (long)(j) * BCS)

__kernel CLA_GROUP_OF(MEMBERS * LANES) void gesv_grid(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                      __global CLA_REAL *B, long b0, long bps, __global int *info)
{
    LU_HEAD
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    LU_READ
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
        CLA_UNROLL for (int v = N / Q; v < OWN_COLUMNS; v++) {
            const int i = u * P + p, j = v * Q + c;
            if (j < N) continue;
            a[u][v] = cla_lane_real(0);
            if (CLA_GRID_HAS(i, N, P) && CLA_GRID_HAS(j, HELD, Q)) a[u][v] = GET_B(i, j - N);
        }
#define STEP 0
#include "grid_lu_step.h"
#include "grid_lu_step.h"
#include "grid_lu_step.h"
#include "grid_lu_step.h"
#undef STEP
    LU_WRITE
    CLA_TOGETHER
#define STEP 0
#define BACK 1
#define UNIT 0
#include "grid_substitution_step.h"
#include "grid_substitution_step.h"
#include "grid_substitution_step.h"
#include "grid_substitution_step.h"
#undef STEP
    CLA_GRID_FENCE
    for (int e = t; e < N * R; e += MEMBERS) cla_lane_store(B, (long)(e / R) * BRS + (long)(e % R) * BCS, tile[e]);
    if (t == 0 && q < nm) info[q] = singular[team];
}
#endif
