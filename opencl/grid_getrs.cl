/* getrs, getrsnp and getri on packs by teams of work-items, which hold a matrix in registers, of sizes and strides that
 * are known when this is compiled: macros and arguments are those of getrs.cl, getrsnp.cl and getri.cl. Tunables:
 *
 * GETRS_GRID, GETRSNP_GRID, GETRI_GRID  one work-group for LANES matrices of a pack, each in a grid of P x Q
 *                           work-items, as grid.h says; right-hand sides are rows B^T below the factors
 *   LANES  matrices of a work-group, a divisor of V
 *   P, Q   rows and columns of the grid, powers of 2
 */
#include "known.h"

#define PACKED 1
#include "laswp.h"

#ifdef GETRI_GRID
#undef R
#undef TRANS
#undef ACONJ
#define R N
#define TRANS 0
#define ACONJ 0
#endif

#ifdef GETRS_GRID
#define SWAPS __global const int *restrict ipiv, long ipiv0, long ipivps,
#define NAME getrs_grid
#define FROM(i) (TRANS ? (i) : order[(i) * LANES])
#define TO(i) (TRANS ? order[(i) * LANES] : (i))
#else
#define SWAPS
#define NAME getrsnp_grid
#define FROM(i) (i)
#define TO(i) (i)
#endif

#define DOWN (TRANS ? ACS < ARS : ARS < ACS)
#include "grid_solve.h"

#define X (&a[BELOW])
#define GET_A(i, j) cla_lane_load_as(ACONJ, A, TRANS ? (long)(j) * ARS + (long)(i) * ACS : (long)(i) * ARS + (long)(j) * ACS)
#define GET_B(i, j) cla_lane_load(B, (long)FROM(j) * BRS + (long)(i) * BCS)
#define PUT_B(i, j, x) cla_lane_store(B, (long)TO(j) * BRS + (long)(i) * BCS, x);

#if defined(GETRS_GRID) || defined(GETRSNP_GRID)
__kernel CLA_GROUP_OF(MEMBERS * LANES) void NAME(long lanes, long nm,
                                                 __global const CLA_REAL *restrict A, long a0, long aps, SWAPS
                                                 __global CLA_REAL *B, long b0, long bps)
{
    __local cla_lane columns[2 * TEAMS * LINE];
#ifdef GETRS_GRID
    __local int orders[N * LANES];
#endif
    CLA_GRID_HEAD
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    cla_lane a[OWN_ROWS][OWN_COLUMNS];
    CLA_GRID_READ(a, N, N, 1, GET_A)
#ifdef GETRS_GRID
    CLA_LOCAL int *order = orders + team;
    if (t == 0) { CLA_ORDER(N, ipiv + ipiv0 + cla_lane_place(q, ipivps), order, LANES) }
    CLA_TOGETHER
#endif
    CLA_GRID_READ(X, R, N, 1, GET_B)
    CLA_GRID_INVERT(a, cla_lane_recip)
#define ALONG 0
#define CONJUGATED 0
#define DESCENDING 0
#define UNIT (!TRANS)
#define STEP 0
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#undef STEP
#undef DESCENDING
#undef UNIT
    CLA_TOGETHER
#define DESCENDING 1
#define UNIT TRANS
#define STEP 0
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#undef STEP
    CLA_GRID_FENCE
    CLA_GRID_WRITE(X, R, N, PUT_B)
}
#endif

#ifdef GETRI_GRID
#define GET_SWAPPED(i, j) cla_lane_real(order[(j) * LANES] == i) /* of P^T */
#define PUT(i, j, x) cla_lane_store(A, (long)(j) * ARS + (long)(i) * ACS, x);

__kernel CLA_GROUP_OF(MEMBERS * LANES) void getri_grid(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                       __global const int *restrict ipiv, long ipiv0, long ipivps,
                                                       __global int *info)
{
    __local cla_lane columns[2 * TEAMS * LINE];
    __local int orders[N * LANES], singular[TEAMS];
    CLA_GRID_HEAD
    A += a0 + cla_lane_place(q, aps);
    CLA_LOCAL int *order = orders + team;
    cla_lane a[OWN_ROWS][OWN_COLUMNS];
    CLA_GRID_READ(a, N, N, 1, GET_A)
    if (t == 0) {
        CLA_ORDER(N, ipiv + ipiv0 + cla_lane_place(q, ipivps), order, LANES)
        singular[team] = N;
    }
    CLA_TOGETHER
    CLA_GRID_READ(X, N, N, 1, GET_SWAPPED)
    CLA_GRID_INVERT(a, CLA_GRID_CHECKED)
#define ALONG 0
#define CONJUGATED 0
#define DESCENDING 0
#define UNIT (!TRANS)
#define STEP 0
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#undef STEP
#undef DESCENDING
#undef UNIT
    CLA_TOGETHER
#define DESCENDING 1
#define UNIT TRANS
#define STEP 0
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#undef STEP
    CLA_GRID_FENCE
    CLA_GRID_WRITE(X, N, N, PUT)
    if (t == 0 && q < nm) info[q] = CLA_GRID_INFO;
}
#endif
