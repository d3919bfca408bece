/* A block of steps of a QR factorization, in grid_qr.cl and grid_bidiagonal.cl. A column and row k go through local memory;
 * products of the column with itself and all others are summed up together, and tell of the reflector afterwards. */
#if STEP * BLOCK_STEPS < K
#define FIRST_U ROW_OF(STEP)
#define FIRST_V COLUMN_OF(STEP)
#define LAST_U (FIRST_U + SPAN < OWN_ROWS ? FIRST_U + SPAN : OWN_ROWS)
{
    CLA_ROLLED for (int k = STEP * BLOCK_STEPS; k < (STEP + 1) * BLOCK_STEPS && k < K; k++) {
        CLA_LOCAL cla_lane *column = lines + team * ROOM + LINES_OF(k), *row = column + OWN_ROWS * P;
        const int own = c == k % Q;
        if (own)
            CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++) column[u * P + p] = a[u][FIRST_V];
        cla_lane own_row[OWN_COLUMNS]; /* row k */
        CLA_UNROLL for (int v = FIRST_V; v < OWN_COLUMNS; v++) { CLA_TAKE_ROW(own_row[v], k, v) }
        if (P > 1 && p == k % P)
            CLA_UNROLL for (int v = FIRST_V; v < OWN_COLUMNS; v++) row[v * Q + c] = own_row[v];
        CLA_TOGETHER
        if (P > 1)
            CLA_UNROLL for (int v = FIRST_V; v < OWN_COLUMNS; v++) own_row[v] = row[v * Q + c];
        cla_lane y[OWN_ROWS], w[OWN_COLUMNS + 1];
        CLA_REAL squares = 0;
        CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++) {
            const int below = u >= FIRST_U + SPAN || u * P + p > k;
            y[u] = cla_lane_select(below, column[u * P + p], cla_lane_real(0));
            squares = cla_add_square(y[u], squares);
        }
        CLA_UNROLL for (int v = FIRST_V; v < OWN_COLUMNS; v++) {
            w[v] = cla_lane_real(0);
            CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++) w[v] = cla_lane_fma(cla_lane_conj(y[u]), a[u][v], w[v]);
        }
        w[OWN_COLUMNS] = cla_lane_real(squares);
        CLA_GRID_SUM(w, FIRST_V, OWN_COLUMNS + 1)
        const cla_reflection h = cla_reflection_of(column[k], cla_lane_re(w[OWN_COLUMNS]));
        const cla_lane multiple = cla_lane_mul(h.inverse, cla_lane_conj(h.tau));
        CLA_UNROLL for (int u = FIRST_U; u < LAST_U; u++)
            y[u] = cla_lane_select(u * P + p == k, h.top, y[u]);
        CLA_UNROLL for (int v = FIRST_V; v < OWN_COLUMNS; v++) {
            const int right = v > FIRST_V || v * Q + c > k;
            const cla_lane all = cla_lane_fma(cla_lane_conj(h.inverse), w[v], own_row[v]);
            const cla_lane x = cla_lane_select(right, cla_lane_mul(multiple, all), cla_lane_real(0));
            CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++) a[u][v] = cla_lane_fnma(y[u], x, a[u][v]);
        }
        CLA_UNROLL for (int u = FIRST_U; u < LAST_U; u++)
            a[u][FIRST_V] = cla_lane_select(own && u * P + p == k, cla_lane_real(h.beta), a[u][FIRST_V]);
        if (t == 0) { KEEP(k, h) }
#ifdef ROWS_TOO
#include "grid_row_step.h"
#endif
    }
}
#undef FIRST_U
#undef FIRST_V
#undef LAST_U
#include "next_step.h"
#if STEP % 8
#include "grid_qr_step.h"
#endif
#endif
