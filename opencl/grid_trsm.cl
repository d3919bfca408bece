/* trsm and trtri on packs by teams of work-items, which hold a matrix in registers, of sizes and strides that are known
 * when this is compiled: macros and arguments are those of trsm.cl and trtri.cl. Tunables:
 *
 * TRSM_GRID, TRTRI_GRID  one work-group for LANES matrices of a pack, each in a grid of P x Q work-items, as grid.h
 *            says; right-hand sides are rows B^T below the triangle
 *   LANES    matrices of a work-group, a divisor of V
 *   P, Q     rows and columns of the grid, powers of 2
 */
#include "trsm.cl"
#include "known.h"

#define PACKED 1
#ifdef TRTRI_GRID
#undef R
#define R N
#endif
#define DOWN (ARS < ACS)
#include "grid_solve.h"

#define X (&a[BELOW])
#define GET_A(i, j) cla_lane_load_of(ACOMMON, ACONJ, A, 0, (long)(i) * ARS + (long)(j) * ACS)
#define SCALED(b) (ALPHA ? cla_lane_scale(CLA_VALUE(alpha), b) : (b))
#define GET_B(i, j) SCALED(cla_lane_load(B, (long)(j) * BRS + (long)(i) * BCS))
#define PUT_B(i, j, x) cla_lane_store(B, (long)(j) * BRS + (long)(i) * BCS, x);
#define UNIT (DIAG == CLA_UNIT)

#ifdef TRSM_GRID
__kernel CLA_GROUP_OF(MEMBERS * LANES) void trsm_grid(long lanes, long nm, CLA_SCALAR(alpha),
                                                      __global const CLA_REAL *restrict A, long a0, long aps,
                                                      __global CLA_REAL *restrict B, long b0, long bps)
{
    __local cla_lane columns[2 * TEAMS * LINE];
    CLA_GRID_HEAD
    A += a0 + (ACOMMON ? 0 : cla_lane_place(q, aps));
    B += b0 + cla_lane_place(q, bps);
    cla_lane a[OWN_ROWS][OWN_COLUMNS];
    CLA_GRID_READ(a, N, N, i > j || (!UNIT && i == j), GET_A)
    CLA_GRID_READ(X, R, N, 1, GET_B)
    if (DIAG == CLA_NONUNIT) CLA_GRID_INVERT(a, cla_lane_recip)
#define DESCENDING 0
#define ALONG 0
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

#ifdef TRTRI_GRID
#define GET(i, j) cla_lane_load(A, (long)(i) * ARS + (long)(j) * ACS)
#define PUT(i, j, x) if (j > i || (!UNIT && i == j)) cla_lane_store(A, (long)(j) * ARS + (long)(i) * ACS, x);

__kernel CLA_GROUP_OF(MEMBERS * LANES) void trtri_grid(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                       __global int *info)
{
    __local cla_lane columns[2 * TEAMS * LINE];
    __local int singular[TEAMS];
    CLA_GRID_HEAD
    A += a0 + cla_lane_place(q, aps);
    cla_lane a[OWN_ROWS][OWN_COLUMNS];
    if (t == 0) singular[team] = N;
    CLA_TOGETHER
    CLA_GRID_READ(a, N, N, i > j || (!UNIT && i == j), GET)
    CLA_GRID_READ(X, N, N, 1, CLA_IS_IDENTITY)
    if (!UNIT) CLA_GRID_INVERT(a, CLA_GRID_CHECKED)
#define DESCENDING 0
#define ALONG 0
#define CONJUGATED 0
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
