/* Reflectors from the rows or columns of a block of steps, from the last block on, applied to right-hand sides beside a
 * matrix: define ALONG, 1 for those in rows, where number k begins at column k + 1, and 0 for those in columns. */
#if STEP * BLOCK_STEPS < N
#define BLOCK ((N - 1) / BLOCK_STEPS - STEP)
#define FIRST_U ROW_OF(BLOCK)
#define FIRST_V COLUMN_OF(BLOCK)
#define LAST_U (FIRST_U + SPAN < OWN_ROWS ? FIRST_U + SPAN : OWN_ROWS)
{
    CLA_ROLLED for (int k = min((BLOCK + 1) * BLOCK_STEPS, N - ALONG) - 1; k >= BLOCK * BLOCK_STEPS; k--) {
        CLA_LOCAL cla_lane *line = lines + team * ROOM + k % 2 * LINES;
        if (ALONG && p == k % P)
            CLA_UNROLL for (int v = FIRST_V; v < OWN_OF_A; v++) {
                cla_lane x;
                CLA_TAKE_ROW(x, k, v)
                line[v * Q + c] = cla_lane_conj(x);
            }
        if (!ALONG && c == k % Q)
            CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++) line[u * P + p] = a[u][FIRST_V];
        CLA_TOGETHER
        cla_lane y[OWN_ROWS], w[OWN_COLUMNS];
        CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++) {
            const int i = u * P + p;
            y[u] = cla_lane_select(i == k + ALONG, tops[team * N + k], cla_lane_real(0));
            if ((i > k + ALONG) & (!ALONG | (i < N))) y[u] = line[i];
        }
        CLA_UNROLL for (int v = FIRST_OF_B; v < OWN_COLUMNS; v++) {
            w[v] = cla_lane_real(0);
            CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++) w[v] = cla_lane_fma(cla_lane_conj(y[u]), a[u][v], w[v]);
        }
        CLA_GRID_SUM(w, FIRST_OF_B, OWN_COLUMNS)
        CLA_UNROLL for (int v = FIRST_OF_B; v < OWN_COLUMNS; v++) {
            const cla_lane x = cla_lane_select(IS_OF_B(v), cla_lane_mul(taus[team * N + k], w[v]), cla_lane_real(0));
            CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++) a[u][v] = cla_lane_fnma(y[u], x, a[u][v]);
        }
    }
}
#undef BLOCK
#undef FIRST_U
#undef FIRST_V
#undef LAST_U
#include "next_step.h"
#if STEP % 8
#include "grid_reflect_step.h"
#endif
#endif
