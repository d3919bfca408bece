/* STEPS steps of the solution of X L = X with a Cholesky factor, from the last ones on, in grid_posv.cl: their rows of L, and
 * what X has there, go through local memory.
 */
#if STEP * STEPS < N
#define BACK_BLOCK ((N - 1) / STEPS - STEP)
#define BEGIN (BACK_BLOCK * STEPS)
#define BACK_ROW (BEGIN / P)
#define BACK_COLUMN (BEGIN / Q)
{
    if (p >= BEGIN % P && p < BEGIN % P + STEPS)
        CLA_UNROLL for (int v = 0; v <= BACK_COLUMN; v++) tile[(p - BEGIN % P) * LINE + v * Q + c] = a[BACK_ROW][v];
    if (p == 0 && c >= BEGIN % Q && c < BEGIN % Q + STEPS)
        CLA_UNROLL for (int s = 0; s < R; s++)
            if (BEGIN + c - BEGIN % Q < N) solution[(BEGIN + c - BEGIN % Q) * R + s] = x[s][BACK_COLUMN];
    CLA_TOGETHER
    cla_lane z[R][STEPS];
    CLA_UNROLL for (int s = 0; s < R; s++)
        CLA_UNROLL for (int i = STEPS - 1; i >= 0; i--) {
            const int k = BEGIN + i;
            if (k < N) {
                z[s][i] = solution[k * R + s];
                CLA_UNROLL for (int h = i + 1; h < STEPS; h++)
                    if (BEGIN + h < N) z[s][i] = cla_lane_fnma(z[s][h], tile[h * LINE + k], z[s][i]);
                z[s][i] = z[s][i] * (1 / cla_lane_re(tile[i * LINE + k]));
            } else {
                z[s][i] = cla_lane_real(0);
            }
        }
    CLA_UNROLL for (int s = 0; s < R; s++)
        CLA_UNROLL for (int v = 0; v < BACK_COLUMN + (BEGIN % Q > 0); v++)
            CLA_UNROLL for (int i = 0; i < STEPS; i++)
                if (BEGIN + i < N) x[s][v] = cla_lane_fnma(z[s][i], tile[i * LINE + v * Q + c], x[s][v]);
    CLA_TOGETHER
    if (t == 0)
        CLA_UNROLL for (int s = 0; s < R; s++)
            CLA_UNROLL for (int i = 0; i < STEPS; i++)
                if (BEGIN + i < N) solution[(BEGIN + i) * R + s] = z[s][i];
    CLA_TOGETHER
}
#undef BACK_BLOCK
#undef BEGIN
#undef BACK_ROW
#undef BACK_COLUMN
#include "next_step.h"
#if STEP % 8
#include "grid_back_step.h"
#endif
#endif
