/* getrf and gesv on packs by teams whose members have whole rows of a matrix, of sizes and strides that are known when
 * this is compiled: macros and arguments are those of getrf.cl and gesv.cl. Tunables:
 *
 * GETRF_ROWS, GESV_ROWS  one work-group for LANES matrices of a pack, P work-items for each, as rows.h says; steps are
 *                        those of grid_lu_block_step.h
 *   LANES        matrices of a work-group, a divisor of V
 *   P            work-items of a matrix, a power of 2, at most 32
 *   COLUMNS      of gesv: the columns of right-hand sides that a work-item then solves for at once
 *   CLA_GROUPS   of gesv: as cuda.h has it
 */
#include "known.h"

#ifdef GESV_ROWS
#undef M
#define M N
#endif
#ifndef P
#define P 8
#endif
#define Q 1
#define TEAMS LANES
#define TURNS 4
#define BESIDE ((N + TURNS - 1) / TURNS * TURNS)
#define HELD BESIDE
#define ROWS
#if defined(GETRF_ROWS) && THRESHOLD
#define LIMIT threshold
#undef CLA_WARP
#define CLA_WARP 0
#endif
#include "grid.h"

#define INV 0
#define FIRST STEP
#define KEEP 1
#define RECIPROCALS 1
#define SAVED 1
#include "grid_lu_rows.h"
#include "grid_lu.h"
#include "rows.h"

/* A <- L\U, and which row of a tile comes to be each row; `q0` is the first matrix of the work-group. */
#define PUT_FACTOR(l, i, j) \
    cla_lane_store(A, (l) + (long)(i) * ARS + (long)(j) * ACS, tiles[(l) * TILE + order[(l) * M + (i)] * TILE_LINE + (j)]);
#define ROWS_FACTOR \
    const long q0 = get_group_id(0) * (long)LANES; \
    A += a0 + q0 / CLA_VLEN * aps + CLA_GROUP_LANE(q0); \
    CLA_ROWS_READ \
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) \
        CLA_UNROLL for (int j = 0; j < BESIDE; j++) \
            a[u][j] = j < N && (M % P == 0 || u * P + p < M) ? tile[(u * P + p) * TILE_LINE + j] : cla_lane_real(0); \
    CLA_TOGETHER
#define ROWS_LEFT ((LU_STEPS + TURNS - 1) / TURNS * TURNS) /* the first column that no step has saved */
#define ROWS_WRITE \
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) \
        if (place[u] >= 0) { \
            order[team * M + place[u]] = u * P + p; \
            CLA_UNROLL for (int j = ROWS_LEFT; j < N; j++) tile[(u * P + p) * TILE_LINE + j] = a[u][j - ROWS_LEFT]; \
            CLA_UNROLL for (int j = N; j < TURNED; j++) tile[(u * P + p) * TILE_LINE + j] = cla_lane_real(0); \
        } \
    barrier(CLK_LOCAL_MEM_FENCE); \
    CLA_STRIP(M, N, ARS < ACS, PUT_FACTOR) \
    if (t == 0 && q < nm) info[q] = singular[team];

#ifdef GETRF_ROWS
#define PUT_SWAP(l, k, unused) cla_int_store(ipiv, k, swaps[(l) * LU_STEPS + (k)]);

__kernel CLA_GROUP_OF(ITEMS) void getrf_rows(long lanes, long nm, CLA_SCALAR(threshold),
                                             __global CLA_REAL *A, long a0, long aps,
                                             __global int *ipiv, long ipiv0, long ipivps, __global int *info)
{
    __local int order[LANES * M];
#ifdef LIMIT
    __local CLA_REAL diagonal[LANES];
#endif
    LU_HEAD
    ROWS_FACTOR
    LU_BEGIN
#define STEP 0
#include "grid_lu_block_step.h"
#include "grid_lu_block_step.h"
#include "grid_lu_block_step.h"
#include "grid_lu_block_step.h"
#undef STEP
    LU_END
    ROWS_WRITE
    ipiv += ipiv0 + q0 / CLA_VLEN * ipivps + CLA_GROUP_LANE(q0) + get_local_id(0) % LANES;
    CLA_STRIP(LU_STEPS, 1, 0, PUT_SWAP)
}
#endif

#ifdef GESV_ROWS
#define inverses pivots
#define GET_COLUMN(i, c) cla_lane_load(B, (long)own_order[i] * BRS + (long)(c) * BCS)
#define PUT_COLUMN(i, c, x) cla_lane_store(B, (long)(i) * BRS + (long)(c) * BCS, x);

__kernel CLA_GROUP_OF(ITEMS) void gesv_rows(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                            __global CLA_REAL *B, long b0, long bps, __global int *info)
{
    __local int order[LANES * M];
    LU_HEAD
    ROWS_FACTOR
    LU_BEGIN
#define STEP 0
#include "grid_lu_block_step.h"
#include "grid_lu_block_step.h"
#include "grid_lu_block_step.h"
#include "grid_lu_block_step.h"
#undef STEP
    LU_END
    ROWS_WRITE
    B += b0 + q0 / CLA_VLEN * bps + CLA_GROUP_LANE(q0) + OWN_MATRIX;
    CLA_ROWS_SOLVE(R, GET_COLUMN, CLA_ROWS_LU, PUT_COLUMN)
}
#endif
