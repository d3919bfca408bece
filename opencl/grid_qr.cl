/* QR factorizations of stacks of ordinary matrices in one pass: a team of work-items a matrix, all of it in registers.
 *
 * Arguments are those of ordinary.h, macros those and the ones of qr_results.h and grid.h.
 *
 * Columns are scaled by powers of 2, so that squares neither overflow nor underflow: reflectors of A and of A D are the
 * same for a diagonal D.
 */
#include "grid_reflectors.h"
#include "qr_results.h"

#define OWN_OF_Q ((COLUMNS_OF_Q + Q - 1) / Q) /* columns of a member */
#define OWN (HAS_Q && OWN_OF_Q > OWN_COLUMNS ? OWN_OF_Q : OWN_COLUMNS)

#define GET(i, j) CLA_NUMBER_AT(A, A0 + q_read * Astep + (i) * ARS + (j) * ACS)
#define SCALED(i, j, x) ((x) * scales[team * (OWN_COLUMNS * Q) + (j)])
#define PUT_R(i, j, x) \
    cla_put(upper, q * (ROWS_OF_R * N) + (i) * N + (j), cla_lane_select(i > j, cla_lane_real(0), SCALED(i, j, x)));
#define PUT_Q(i, j, x) cla_put(orthogonal, q * (M * COLUMNS_OF_Q) + (i) * COLUMNS_OF_Q + (j), x);
#define DIVIDED(i, j, x) cla_lane_mul(x, tops[team * K + min(j, K - 1)])
#define PUT_H(i, j, x) \
    cla_put(h, q * (M * N) + (j) * M + (i), cla_lane_select(i > j, DIVIDED(i, j, x), SCALED(i, j, x)));

/* What the reflector of step k is kept as */
#define KEEP(k, h) \
    taus[team * K + k] = HAS_Q ? h.tau * cla_add_square(h.inverse, 0) : h.tau; \
    tops[team * K + k] = HAS_Q ? h.top : h.inverse;
#define LINES_OF(k) ((k) % 2 * LINES)

__kernel CLA_GROUP_OF(MEMBERS * TEAMS) void grid_qr(long nm, long told,
                                                    __global int *failed CLA_ARGUMENT(A) CLA_QR_RESULTS)
{
    __local cla_lane lines[TEAMS * ROOM] __attribute__((aligned(16)));
    __local cla_lane taus[TEAMS * K], tops[TEAMS * K];
    __local CLA_REAL scales[TEAMS * OWN_COLUMNS * Q];
    CLA_GRID_SUMS(2 * OWN + 1)
    CLA_GRID_HEAD
    cla_lane a[OWN_ROWS][OWN];
    CLA_GRID_READ(a, M, N, 1, GET)
    CLA_GRID_SCALE_COLUMNS
#define STEP 0
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#undef STEP
    CLA_TOGETHER
#if MODE == 3
    CLA_GRID_WRITE(a, M, N, PUT_H)
    if (q < nm)
        for (int k = t; k < K; k += MEMBERS) cla_put(scalars, q * K + k, taus[team * K + k]);
#else
    CLA_GRID_WRITE(a, ROWS_OF_R, N, PUT_R)
#endif
#if HAS_Q
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
        CLA_UNROLL for (int v = 0; v < OWN_OF_Q; v++) {
            const int i = u * P + p, j = v * Q + c;
            a[u][v] = cla_lane_select(j < K && i > j, a[u][v], cla_lane_real(i == j && j >= K));
        }
#define STEP 0
#include "grid_q_step.h"
#include "grid_q_step.h"
#include "grid_q_step.h"
#include "grid_q_step.h"
#undef STEP
    CLA_GRID_WRITE(a, M, COLUMNS_OF_Q, PUT_Q)
#endif
}
