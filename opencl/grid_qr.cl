/* QR factorizations of stacks of ordinary matrices in one pass: a team of work-items a matrix, all of it in registers.
 *
 * Arguments are those of ordinary.h, macros those and the ones of qr_results.h and grid.h.
 *
 * Columns are scaled by powers of 2, so that squares neither overflow nor underflow: reflectors of A and of A D are the
 * same for a diagonal D. What is left of a column and below 1 / sqrt(CLA_RANGE) of it counts as zero. Reflectors stay
 * as the columns that they come from, I - tau / |top|^2 y y^H with top in row k of y.
 */
#include "grid_sums.h"
#include "householder.h"
#include "qr_results.h"


#define SPAN (Q >= 2 * P ? 2 : 1) /* rows of a member in a block of steps: code of two takes half the time to compile */
#define BLOCK_STEPS (STEPS * SPAN)
#define ROW_OF(block) ((block) * BLOCK_STEPS / P) /* the first of a member's rows, and columns, in a block */
#define COLUMN_OF(block) ((block) * BLOCK_STEPS / Q)
#define OWN_OF_Q ((COLUMNS_OF_Q + Q - 1) / Q) /* columns of a member */
#define OWN (HAS_Q && OWN_OF_Q > OWN_COLUMNS ? OWN_OF_Q : OWN_COLUMNS)
#define LINES (OWN_ROWS * P + (OWN_ROWS * P > OWN_COLUMNS * Q ? OWN_ROWS * P : OWN_COLUMNS * Q))
#define TURN (MEMBERS * 4 / (int)sizeof(CLA_REAL)) /* from team to team in the banks of local memory */
#define ROOM (2 * LINES + ((TURN - 2 * LINES) & 31))
#define LARGEST_POWER (sizeof(CLA_REAL) == 4 ? 126 : 1022)

#define GET(i, j) CLA_NUMBER_AT(A, A0 + q_read * Astep + (i) * ARS + (j) * ACS)
#define SCALED(i, j, x) ((x) * scales[team * (OWN_COLUMNS * Q) + (j)])
#define PUT_R(i, j, x) \
    cla_put(upper, q * (ROWS_OF_R * N) + (i) * N + (j), cla_lane_select(i > j, cla_lane_real(0), SCALED(i, j, x)));
#define PUT_Q(i, j, x) cla_put(orthogonal, q * (M * COLUMNS_OF_Q) + (i) * COLUMNS_OF_Q + (j), x);
#define DIVIDED(i, j, x) cla_lane_mul(x, tops[team * K + min(j, K - 1)])
#define PUT_H(i, j, x) \
    cla_put(h, q * (M * N) + (j) * M + (i), cla_lane_select(i > j, DIVIDED(i, j, x), SCALED(i, j, x)));

/* beta and tau of larfg, alpha - beta and its reciprocal; for a column that counts as zero beta is alpha, and tau and the
 * reciprocal are 0. */
typedef struct {
    CLA_REAL beta;
    cla_lane tau, top, inverse;
} cla_reflection;

CLA_INLINE cla_reflection cla_reflection_of(cla_lane alpha, CLA_REAL squares)
{
    const CLA_REAL sum = cla_add_square(alpha, squares);
    const int none = sum < 1 / CLA_RANGE || (squares == 0 && cla_lane_im(alpha) == 0);
    const CLA_REAL re = none ? 1 : cla_lane_re(alpha), im = none ? 0 : cla_lane_im(alpha);
    const CLA_REAL r = cla_lane_rsqrt(none ? 1 : sum), norm = cla_lane_copysign((none ? 1 : sum) * r, re);
    const CLA_REAL total = re + norm, factor = 1 / (CLA_COMPLEX ? fma(total, total, im * im) : total);
    cla_reflection h;
    h.beta = none ? cla_lane_re(alpha) : CLA_MINUS(norm);
    h.tau = cla_lane_select(none, cla_lane_real(0), cla_lane_of(fabs(total) * r, cla_lane_copysign(r, re) * im));
    h.top = cla_lane_of(total, im);
    h.inverse = CLA_COMPLEX ? cla_lane_of(total * factor, CLA_MINUS(im) * factor) : cla_lane_real(factor);
    h.inverse = cla_lane_select(none, cla_lane_real(0), h.inverse);
    return h;
}

__kernel CLA_GROUP_OF(MEMBERS * TEAMS) void grid_qr(long nm, long told,
                                                    __global int *failed CLA_ARGUMENT(A) CLA_QR_RESULTS)
{
    __local cla_lane lines[TEAMS * ROOM], taus[TEAMS * K], tops[TEAMS * K];
    __local CLA_REAL scales[TEAMS * OWN_COLUMNS * Q];
    CLA_GRID_SUMS(2 * OWN + 1)
    CLA_GRID_HEAD
    cla_lane a[OWN_ROWS][OWN];
    CLA_GRID_READ(a, M, N, 1, GET)
    {
        cla_lane size[OWN_COLUMNS];
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) {
            CLA_REAL sum = 0;
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) sum += cla_lane_abs1(a[u][v]);
            size[v] = cla_lane_real(sum);
        }
        CLA_GRID_SUM(size, 0, OWN_COLUMNS)
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) {
            const int power = max(-LARGEST_POWER, min(LARGEST_POWER, ilogb(cla_lane_re(size[v]))));
            const CLA_REAL scale = ldexp((CLA_REAL)1, -power);
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) a[u][v] = a[u][v] * scale;
            if (p == 0) scales[(team * OWN_COLUMNS + v) * Q + c] = 1 / scale;
        }
    }
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
