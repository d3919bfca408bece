/* potrf, posv and potrs on packs by teams of work-items, which hold a matrix in registers, of sizes and strides that
 * are known when this is compiled: macros and arguments are those of potrf.cl, posv.cl and potrs.cl. Tunables:
 *
 * POTRF_GRID, POSV_GRID, POTRS_GRID  one work-group for LANES matrices of a pack, each in a grid of P x Q work-items,
 *                                    as grid.h says; right-hand sides are rows B^H below the triangle
 *   LANES  matrices of a work-group, a divisor of V
 *   P, Q   rows and columns of the grid, powers of 2
 */
#include "potrf.cl"
#include "known.h"

#define PACKED 1
#define DOWN (ARS < ACS)
#define GET_A(i, j) cla_lane_load_as(ACONJ, A, (long)(i) * ARS + (long)(j) * ACS)
#define PUT_A(i, j, x) if (i >= j) cla_lane_store_as(ACONJ, A, (long)(i) * ARS + (long)(j) * ACS, x);

#ifdef POTRF_GRID
#undef M
#define M N
#include "grid.h"

__kernel CLA_GROUP_OF(MEMBERS * LANES) void potrf_grid(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                       __global int *info)
{
    __local cla_lane columns[2 * TEAMS * LINE];
    CLA_GRID_HEAD
    A += a0 + cla_lane_place(q, aps);
    cla_lane a[OWN_ROWS][OWN_COLUMNS];
    int bad = 0;
    CLA_GRID_READ(a, N, N, i >= j, GET_A)
#define STEP 0
#include "grid_cholesky_step.h"
#include "grid_cholesky_step.h"
#include "grid_cholesky_step.h"
#include "grid_cholesky_step.h"
#undef STEP
    CLA_GRID_WRITE(a, N, N, PUT_A)
    if (t == 0 && q < nm) info[q] = bad;
}
#endif

#if defined(POSV_GRID) || defined(POTRS_GRID)
#include "grid_solve.h"

#define X (&a[BELOW])
#define GET_B(i, j) cla_lane_conj(cla_lane_load(B, (long)(j) * BRS + (long)(i) * BCS))
#define PUT_B(i, j, x) cla_lane_store(B, (long)(j) * BRS + (long)(i) * BCS, cla_lane_conj(x));
#define INVERSE(x) cla_lane_real(1 / cla_lane_re(x))
#define UNIT 0
#endif

#ifdef POSV_GRID
__kernel CLA_GROUP_OF(MEMBERS * LANES) void posv_grid(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                      __global CLA_REAL *restrict B, long b0, long bps,
                                                      __global int *info)
{
    __local cla_lane columns[2 * TEAMS * LINE];
    CLA_GRID_HEAD
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    cla_lane a[OWN_ROWS][OWN_COLUMNS];
    int bad = 0;
    CLA_GRID_READ(a, N, N, i >= j, GET_A)
    CLA_GRID_READ(X, R, N, 1, GET_B)
#define STEP 0
#include "grid_cholesky_step.h"
#include "grid_cholesky_step.h"
#include "grid_cholesky_step.h"
#include "grid_cholesky_step.h"
#undef STEP
    CLA_GRID_WRITE(a, N, N, PUT_A)
    CLA_GRID_INVERT(a, INVERSE)
    CLA_TOGETHER
#define DESCENDING 1
#define ALONG 1
#define CONJUGATED 0
#define STEP 0
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#undef STEP
    CLA_GRID_WRITE(X, R, N, PUT_B)
    if (t == 0 && q < nm) info[q] = bad;
}
#endif

#ifdef POTRS_GRID
__kernel CLA_GROUP_OF(MEMBERS * LANES) void potrs_grid(long lanes, long nm,
                                                       __global const CLA_REAL *restrict A, long a0, long aps,
                                                       __global CLA_REAL *restrict B, long b0, long bps)
{
    __local cla_lane columns[2 * TEAMS * LINE];
    CLA_GRID_HEAD
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    cla_lane a[OWN_ROWS][OWN_COLUMNS];
    CLA_GRID_READ(a, N, N, i >= j, GET_A)
    CLA_GRID_READ(X, R, N, 1, GET_B)
    CLA_GRID_INVERT(a, INVERSE)
#define DESCENDING 0
#define ALONG 0
#define CONJUGATED 1
#define STEP 0
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#undef STEP
#undef DESCENDING
#undef ALONG
#undef CONJUGATED
    CLA_TOGETHER
#define DESCENDING 1
#define ALONG 1
#define CONJUGATED 0
#define STEP 0
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#include "grid_solve_step.h"
#undef STEP
    CLA_GRID_WRITE(X, R, N, PUT_B)
}
#endif
