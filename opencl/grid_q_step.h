/* Reflectors of a block of steps, from the last block on, applied to what will be columns of Q, in grid_qr.cl: those of
 * steps k + 1 and k together, where blocks have so many and there are registers for both. Their own columns are those of
 * the identity before. */
#if STEP * BLOCK_STEPS < K
#define BLOCK ((K - 1) / BLOCK_STEPS - STEP)
#define FIRST_U ROW_OF(BLOCK)
#define FIRST_V COLUMN_OF(BLOCK)
#define TWO (BLOCK_STEPS > 1 && !LONG)
{
    CLA_ROLLED for (int k = (min((BLOCK + 1) * BLOCK_STEPS, K) - 1) / (1 + TWO) * (1 + TWO); k >= BLOCK * BLOCK_STEPS;
                    k -= 1 + TWO) {
        CLA_LOCAL cla_lane *column = lines + team * ROOM + (TWO ? k / 2 : k) % 2 * LINES, *next = column + OWN_ROWS * P;
        const int own = c == k % Q, own_next = TWO && c == (k + 1) % Q;
        if (own || own_next)
            CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++) {
                (own ? column : next)[u * P + p] = a[u][FIRST_V];
                a[u][FIRST_V] = cla_lane_real(u * P + p == k + own_next);
            }
        CLA_TOGETHER
        const int exists = TWO && k + 1 < K;
        const cla_lane tau = taus[team * K + k], tau_next = exists ? taus[team * K + k + 1] : cla_lane_real(0);
        const cla_lane top = tops[team * K + k], top_next = exists ? tops[team * K + k + 1] : cla_lane_real(0);
        cla_lane y[OWN_ROWS], z[OWN_ROWS], w[2 * OWN_OF_Q + 1];
        w[2 * OWN_OF_Q] = cla_lane_real(0);
        CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++) {
            const int i = u * P + p;
            y[u] = cla_lane_select(i == k, top, cla_lane_real(0));
            y[u] = cla_lane_select(u >= FIRST_U + SPAN || i > k, column[i], y[u]);
            z[u] = cla_lane_real(0);
            if (TWO) {
                const int below = exists && (u >= FIRST_U + SPAN || i > k + 1);
                z[u] = cla_lane_select(below, next[i], cla_lane_select(i == k + 1, top_next, cla_lane_real(0)));
                w[2 * OWN_OF_Q] = cla_lane_fma(cla_lane_conj(y[u]), z[u], w[2 * OWN_OF_Q]);
            }
        }
        CLA_UNROLL for (int v = FIRST_V; v < OWN_OF_Q; v++) {
            w[2 * v] = w[2 * v + 1] = cla_lane_real(0);
            CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++) {
                w[2 * v] = cla_lane_fma(cla_lane_conj(y[u]), a[u][v], w[2 * v]);
                if (TWO) w[2 * v + 1] = cla_lane_fma(cla_lane_conj(z[u]), a[u][v], w[2 * v + 1]);
            }
        }
        CLA_GRID_SUM(w, 2 * FIRST_V, 2 * OWN_OF_Q + 1)
        CLA_UNROLL for (int v = FIRST_V; v < OWN_OF_Q; v++) {
            const int right = v > FIRST_V || v * Q + c >= k;
            const cla_lane first = TWO ? cla_lane_mul(tau_next, w[2 * v + 1]) : cla_lane_real(0);
            cla_lane second = cla_lane_mul(tau, cla_lane_fnma(w[2 * OWN_OF_Q], first, w[2 * v]));
            second = cla_lane_select(right, second, cla_lane_real(0));
            const cla_lane x = cla_lane_select(right, first, cla_lane_real(0));
            CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++) {
                if (TWO) a[u][v] = cla_lane_fnma(z[u], x, a[u][v]);
                a[u][v] = cla_lane_fnma(y[u], second, a[u][v]);
            }
        }
    }
}
#undef BLOCK
#undef FIRST_U
#undef FIRST_V
#undef TWO
#include "next_step.h"
#if STEP % 8
#include "grid_q_step.h"
#endif
#endif
