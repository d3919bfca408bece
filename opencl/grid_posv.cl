/* Solutions of Hermitian positive definite systems of stacks of ordinary matrices in one pass: a team of work-items a
 * matrix, of which it has the lower triangle in registers.
 *
 * Arguments are those of ordinary.h, macros those and the ones of grid.h. Define UPLO, 0 or 1: the triangle of A that is
 * read. Each column of the grid has what is in its columns of the R rows B^H, which take part in the factorization A = L L^H
 * as rows below A: they become those of (inv(L) B)^H. Then rows of L go through local memory, STEPS at a time, and all members
 * solve for these.
 */
#include "potrf.cl"
#include "grid.h"

#ifndef UPLO
#define UPLO 0
#endif

#define PLACE(i, j) (UPLO ? (j) * ARS + (i) * ACS : (i) * ARS + (j) * ACS)
#define AS_READ(x) (UPLO ? cla_lane_conj(x) : x)
#define GET(i, j) AS_READ(CLA_NUMBER_AT(A, A0 + q_read * Astep + PLACE(i, j)))
#define BESIDE /* right-hand sides */

__kernel CLA_GROUP_OF(MEMBERS * TEAMS) void grid_solve_symmetric(long nm, long told, __global int *failed CLA_ARGUMENT(A)
                                                                     CLA_ARGUMENT(B), __global TARGET *restrict X)
{
    __local cla_lane columns[TEAMS * 2 * LINE], heads[TEAMS * 2 * R], tiles[TEAMS * STEPS * LINE], found[TEAMS * N * R];
    CLA_GRID_HEAD
    cla_lane a[OWN_ROWS][OWN_COLUMNS], x[R][OWN_COLUMNS];
    int bad = 0;
    CLA_GRID_READ(a, N, N, i >= j, GET)
    CLA_UNROLL for (int s = 0; s < R; s++)
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) {
            const int j = v * Q + c;
            x[s][v] = cla_lane_real(0);
            if (CLA_GRID_HAS(j, N, Q)) x[s][v] = cla_lane_conj(CLA_NUMBER_AT(B, B0 + q_read * Bstep + j * BRS + s * BCS));
        }
#define STEP 0
#include "grid_cholesky_step.h"
#include "grid_cholesky_step.h"
#include "grid_cholesky_step.h"
#include "grid_cholesky_step.h"
#undef STEP
    CLA_LOCAL cla_lane *tile = tiles + team * (STEPS * LINE), *solution = found + team * (N * R);
#define STEP 0
#include "grid_back_step.h"
#include "grid_back_step.h"
#include "grid_back_step.h"
#include "grid_back_step.h"
#undef STEP
    if (q < nm)
        for (int e = t; e < N * R; e += MEMBERS) cla_put(X, q * (N * R) + e, CLA_CHECKED(cla_lane_conj(solution[e])));
    if (t == 0) CLA_REPORT
}
