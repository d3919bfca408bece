/* STEPS steps of a substitution, from the STEP-th block of columns on, in grid_lu.cl: define BACK, 1 for an upper
 * triangle, from its last block on, and UNIT, 1 for a diagonal of ones, else `pivots` has reciprocals.
 *
 * Right-hand sides are columns from N on; solutions go through local memory, where they stay, n x R.
 */
#if STEP * STEPS < N
{
    CLA_ROLLED for (int turn = 0; turn < IN_BLOCK; turn++) {
        const int s = BACK ? IN_BLOCK - 1 - turn : turn, k = BLOCK * Q + s;
        cla_lane x[OWN_ROWS]; /* column k */
#if CLA_WARP == 2
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
            x[u] = Q > 1 ? cla_taken(a[u][BLOCK], get_local_id(0) % 32 / Q * Q + s) : a[u][BLOCK];
#else
        CLA_LOCAL cla_lane *column = columns + (team * 2 + k % 2) * LINE;
        if (c == s)
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) column[u * P + p] = a[u][BLOCK];
#endif
        const cla_lane r = UNIT ? cla_lane_real(1) : pivots[team * N + k];
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
            if (place[u] == k)
                CLA_UNROLL for (int v = N / Q; v < OWN_COLUMNS; v++) {
                    const int j = v * Q + c - N;
                    if (!UNIT && j >= 0) a[u][v] = cla_lane_mul(r, a[u][v]);
                    if (j >= 0 && j < R) tile[k * R + j] = a[u][v];
                }
        CLA_TOGETHER
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
#if CLA_WARP != 2
            x[u] = column[u * P + p];
#endif
            x[u] = cla_lane_select(BACK ? place[u] < k : place[u] > k, x[u], cla_lane_real(0));
        }
        CLA_UNROLL for (int v = N / Q; v < OWN_COLUMNS; v++) {
            const int j = v * Q + c - N;
            const cla_lane y = cla_lane_select(j >= 0, tile[k * R + min(max(j, 0), R - 1)], cla_lane_real(0));
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) a[u][v] = cla_lane_fnma(x[u], y, a[u][v]);
        }
    }
}
#include "next_step.h"
#if STEP % 8
#include "grid_substitution_step.h"
#endif
#endif
