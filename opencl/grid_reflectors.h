/* Householder reflectors of matrices on a grid, whose columns pass through local memory: two lines of it, a column and a
 * row, of two steps, for each team. They stay as the columns that they come from, I - tau / |top|^2 y y^H with top in row k
 * of y; what is left of a column and below 1 / sqrt(CLA_RANGE) counts as zero.
 */
#include "grid_sums.h"
#include "householder.h"

#ifndef LONG
#define LONG (P == 1 && M > 16) /* columns of members: steps are in few blocks then, which compile fast */
#endif
#define SPAN (LONG && Q >= 4 ? 4 : Q >= 2 * P ? 2 : 1) /* rows of a member in a block of steps */
#define BLOCK_STEPS (STEPS * SPAN)
#define ROW_OF(block) ((block) * BLOCK_STEPS / P) /* the first of a member's rows, and columns, in a block */
#define COLUMN_OF(block) ((block) * BLOCK_STEPS / Q)
#define LINES (OWN_ROWS * P + (OWN_ROWS * P > OWN_COLUMNS * Q ? OWN_ROWS * P : OWN_COLUMNS * Q))
#define TURN ((MEMBERS * 4 - 1) / (int)sizeof(CLA_REAL) + 1) /* from team to team in the banks of local memory */
#define ROOM (2 * LINES + ((TURN - 2 * LINES) & 31))

/* Columns of a member that are of the matrix; the first of its columns that may be right-hand sides, from column N on, and
 * whether one is. */
#define OWN_OF_A ((N + Q - 1) / Q)
#define FIRST_OF_B (N / Q)
#define IS_OF_B(v) ((v) > FIRST_OF_B || (v) * Q + c >= N)

/* x <- element k of column v, by one that has a part in row k */
#define CLA_TAKE_ROW(x, k, v) \
    x = a[FIRST_U][v]; \
    CLA_UNROLL for (int u = FIRST_U + 1; u < LAST_U; u++) x = cla_lane_select((k) / P == u, a[u][v], x);

/* Columns are scaled by powers of 2, so that squares neither overflow nor underflow; scales[team][column] have the
 * reciprocals. */
#define LARGEST_POWER (sizeof(CLA_REAL) == 4 ? 126 : 1022)
#define CLA_GRID_SCALE_COLUMNS { \
        cla_lane size[OWN_COLUMNS]; \
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) { \
            CLA_REAL sum = 0; \
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) sum += cla_lane_abs1(a[u][v]); \
            size[v] = cla_lane_real(sum); \
        } \
        CLA_GRID_SUM(size, 0, OWN_COLUMNS) \
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) { \
            const int power = max(-LARGEST_POWER, min(LARGEST_POWER, ilogb(cla_lane_re(size[v])))); \
            const CLA_REAL scale = ldexp((CLA_REAL)1, -power); \
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) a[u][v] = a[u][v] * scale; \
            if (p == 0) scales[(team * OWN_COLUMNS + v) * Q + c] = 1 / scale; \
        } \
    }

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
