/* A block of steps of a substitution with the triangle R of strip_geqp3.cl, whose columns know their places, for right-hand
 * sides beside it: from its last block on. */
#if STEP * BLOCK_STEPS < N
#define BLOCK ((N - 1) / BLOCK_STEPS - STEP)
#define FIRST_U (BLOCK * BLOCK_STEPS)
#define LAST_U ((BLOCK + 1) * BLOCK_STEPS < M ? (BLOCK + 1) * BLOCK_STEPS : M)
{
    CLA_ROLLED for (int k = min((BLOCK + 1) * BLOCK_STEPS, N) - 1; k >= FIRST_U; k--) {
        CLA_LOCAL cla_lane *part = line + k % 2 * COLUMN_LINE;
        CLA_UNROLL for (int v = 0; v < OWN_OF_A; v++)
            if (place[v] == k)
                CLA_UNROLL for (int u = 0; u < LAST_U; u++) part[u] = a[u][v];
        CLA_TOGETHER
        const CLA_REAL pivot = cla_lane_re(part[k]);
        CLA_UNROLL for (int v = FIRST_OF_B; v < OWN_COLUMNS; v++) {
            cla_lane top = a[FIRST_U][v];
            CLA_UNROLL for (int u = FIRST_U + 1; u < LAST_U; u++) top = cla_lane_select(u == k, a[u][v], top);
            const cla_lane x = cla_lane_select(IS_OF_B(v), top / pivot, cla_lane_real(0));
            CLA_UNROLL for (int u = 0; u < LAST_U; u++) {
                const cla_lane e = cla_lane_select(u < FIRST_U || u < k, part[u], cla_lane_real(0));
                a[u][v] = cla_lane_fnma(e, x, a[u][v]);
                if (u >= FIRST_U) a[u][v] = cla_lane_select(IS_OF_B(v) && u == k, x, a[u][v]);
            }
        }
    }
}
#undef BLOCK
#undef FIRST_U
#undef LAST_U
#include "next_step.h"
#if STEP % 8
#include "strip_solve_step.h"
#endif
#endif
