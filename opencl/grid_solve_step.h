/* STEPS steps of X <- X inv(op(T)), in kernels on grids: T is a triangle in the first N rows, with the reciprocals of
 * its diagonal on it, and X are the rows from BELOW P on.
 *
 * Define, as 0 or 1, DESCENDING: from the last column of X to the first; ALONG: element (k, j) of op(T) is T(k, j),
 * else T(j, k); CONJUGATED: its conjugate; UNIT: the diagonal is 1.
 */
#if STEP * STEPS < N
{
    CLA_ROLLED for (int t = 0; t < STEPS; t++) {
        const int k = SOLVE_BLOCK * STEPS + (DESCENDING ? STEPS - 1 - t : t);
        if (k >= N) continue;
        CLA_LOCAL cla_lane *line = columns + (k % 2 * TEAMS + team) * LINE;
        if (c == k % Q)
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
                if ((!ALONG && (DESCENDING ? u <= SOLVE_ROW : u >= SOLVE_ROW)) || u >= BELOW)
                    line[u * P + p] = a[u][SOLVE_COLUMN];
        if (ALONG && p == k % P)
            CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++)
                if (v * Q + c < BELOW * P) line[v * Q + c] = a[SOLVE_ROW][v];
        CLA_TOGETHER
        const cla_lane inverse = UNIT ? cla_lane_real(1) : line[k];
        cla_lane x[OWN_ROWS - BELOW];
        CLA_UNROLL for (int u = BELOW; u < OWN_ROWS; u++) {
            x[u - BELOW] = UNIT ? line[u * P + p] : cla_lane_mul(inverse, line[u * P + p]);
            a[u][SOLVE_COLUMN] = cla_lane_select(c == k % Q, x[u - BELOW], a[u][SOLVE_COLUMN]);
        }
        CLA_UNROLL for (int v = DESCENDING ? 0 : SOLVE_COLUMN; v <= (DESCENDING ? SOLVE_COLUMN : OWN_COLUMNS - 1); v++) {
            const int left = v != SOLVE_COLUMN || (DESCENDING ? v * Q + c < k : v * Q + c > k); /* to be solved */
            const cla_lane e = CONJUGATED ? cla_lane_conj(line[v * Q + c]) : line[v * Q + c];
            const cla_lane factor = cla_lane_select(left, e, cla_lane_real(0));
            CLA_UNROLL for (int u = BELOW; u < OWN_ROWS; u++) a[u][v] = cla_lane_fnma(x[u - BELOW], factor, a[u][v]);
        }
    }
}
#include "next_step.h"
#if STEP % 8
#include "grid_solve_step.h"
#endif
#endif
