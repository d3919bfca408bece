/* Cholesky factors of stacks of ordinary matrices in one pass: a team of work-items a matrix, all of it in registers.
 *
 * Arguments are those of ordinary.h, macros those and the ones of grid.h. Define UPLO, 0 for X with A = X X^H, of which
 * the lower triangle is read, 1 for A = X^H X; and CLEAN, 1 for zeros in the other triangle of X, 0 for what A has there.
 */
#include "potrf.cl"
#include "grid.h"

#ifndef UPLO
#define UPLO 0
#endif
#ifndef CLEAN
#define CLEAN 1
#endif

#define PLACE(i, j, rs, cs) (UPLO ? (j) * (rs) + (i) * (cs) : (i) * (rs) + (j) * (cs)) /* of (i, j) of L */
#define AS_READ(x) (UPLO ? cla_lane_conj(x) : x)
#define GET(i, j) AS_READ(CLA_NUMBER_AT(A, A0 + q_read * Astep + PLACE(i, j, ARS, ACS)))
#define PUT(i, j, x) { \
        cla_lane y = AS_READ(x); \
        if (i < j) y = CLEAN ? cla_lane_real(0) : AS_READ(GET(i, j)); \
        cla_put(X, q * (N * N) + PLACE(i, j, N, 1), CLA_CHECKED(y)); \
    }

__kernel CLA_GROUP_OF(MEMBERS * TEAMS) void grid_cholesky(long nm, long told, __global int *failed CLA_ARGUMENT(A),
                                                       __global TARGET *restrict X)
{
    __local cla_lane columns[TEAMS * 2 * LINE];
    CLA_GRID_HEAD
    cla_lane a[OWN_ROWS][OWN_COLUMNS];
    int bad = 0;
    CLA_GRID_READ(a, N, N, i >= j, GET)
#define STEP 0
#include "grid_cholesky_step.h"
#include "grid_cholesky_step.h"
#include "grid_cholesky_step.h"
#include "grid_cholesky_step.h"
#undef STEP
    CLA_GRID_WRITE(a, N, N, PUT)
    if (t == 0) CLA_REPORT
}
