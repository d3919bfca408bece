/* A block of steps of a substitution with the triangle R of a factorization, for right-hand sides beside it: by R from its
 * last block on, or for TRANS by R^H. */
#if STEP * BLOCK_STEPS < N
#define BLOCK (TRANS ? STEP : (N - 1) / BLOCK_STEPS - STEP)
#define FIRST_U ROW_OF(BLOCK)
#define FIRST_V COLUMN_OF(BLOCK)
#define LAST_U (FIRST_U + SPAN < OWN_ROWS ? FIRST_U + SPAN : OWN_ROWS)
#define BEGIN_U (TRANS ? FIRST_U : 0)
#define END_U (TRANS ? OWN_ROWS : LAST_U)
{
    const int begin = BLOCK * BLOCK_STEPS, end = min((BLOCK + 1) * BLOCK_STEPS, N);
    CLA_ROLLED for (int turn = 0; turn < end - begin; turn++) {
        const int k = TRANS ? begin + turn : end - 1 - turn;
        CLA_LOCAL cla_lane *line = lines + team * ROOM + k % 2 * LINES, *row = line + OWN_ROWS * P;
        if (TRANS && p == k % P)
            CLA_UNROLL for (int v = FIRST_V; v < OWN_OF_A; v++) {
                cla_lane x;
                CLA_TAKE_ROW(x, k, v)
                if (v * Q + c < OWN_ROWS * P) line[v * Q + c] = cla_lane_conj(x);
            }
        if (!TRANS && c == k % Q)
            CLA_UNROLL for (int u = 0; u < LAST_U; u++) line[u * P + p] = a[u][FIRST_V];
        if (p == k % P)
            CLA_UNROLL for (int v = FIRST_OF_B; v < OWN_COLUMNS; v++) { CLA_TAKE_ROW(row[v * Q + c], k, v) }
        CLA_TOGETHER
        const CLA_REAL pivot = cla_lane_re(line[k]);
        cla_lane e[OWN_ROWS];
        CLA_UNROLL for (int u = BEGIN_U; u < END_U; u++) {
            const int i = u * P + p;
            e[u] = cla_lane_select(TRANS ? i > k && i < N : i < k, line[i], cla_lane_real(0));
        }
        CLA_UNROLL for (int v = FIRST_OF_B; v < OWN_COLUMNS; v++) {
            const cla_lane x = cla_lane_select(IS_OF_B(v), row[v * Q + c] / pivot, cla_lane_real(0));
            CLA_UNROLL for (int u = BEGIN_U; u < END_U; u++) {
                a[u][v] = cla_lane_fnma(e[u], x, a[u][v]);
                if (u >= FIRST_U && u < LAST_U) a[u][v] = cla_lane_select(IS_OF_B(v) && u * P + p == k, x, a[u][v]);
            }
        }
    }
}
#undef BLOCK
#undef FIRST_U
#undef FIRST_V
#undef LAST_U
#undef BEGIN_U
#undef END_U
#include "next_step.h"
#if STEP % 8
#include "grid_triangle_step.h"
#endif
#endif
