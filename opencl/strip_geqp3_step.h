/* A block of steps of a QR factorization with column interchanges, in strip_geqp3.cl: in each, the column with the largest
 * norm of what is left, of several the first, goes through local memory. */
#if STEP * BLOCK_STEPS < K
#define FIRST_U (STEP * BLOCK_STEPS)
#define LAST_U ((STEP + 1) * BLOCK_STEPS < M ? (STEP + 1) * BLOCK_STEPS : M)
{
    CLA_ROLLED for (int k = FIRST_U; k < (STEP + 1) * BLOCK_STEPS && k < K; k++) {
        CLA_REAL size[Q], lift[OWN_COLUMNS]; /* what columns of tiny numbers are multiplied by */
        int at[Q];
        size[0] = NO_COLUMN;
        at[0] = INT_MAX;
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) {
            CLA_REAL squares[CHAINS] = {0, 0};
            CLA_UNROLL for (int u = FIRST_U; u < M; u++)
                squares[u % CHAINS] = cla_add_square(
                    cla_lane_select(u >= LAST_U || u >= k, a[u][v], cla_lane_real(0)), squares[u % CHAINS]);
            CLA_REAL total = squares[0] + squares[1];
            lift[v] = total < 1 / CLA_RANGE ? CLA_RANGE : 1;
            if (lift[v] > 1) {
                total = 0;
                CLA_UNROLL for (int u = FIRST_U; u < M; u++)
                    total = cla_add_square(
                        cla_lane_select(u >= LAST_U || u >= k, a[u][v] * CLA_RANGE, cla_lane_real(0)), total);
            }
            const CLA_REAL length = cla_lane_sqrt(total) * LOWERED(v) * back[v];
            const CLA_REAL known = place[v] < k || place[v] >= N ? NO_COLUMN : length >= 0 ? length : NO_NUMBER;
            CLA_IF_LONGER(0, known, place[v])
        }
        if (Q > 1) {
            sizes[c * TEAMS + team] = size[0];
            places[c * TEAMS + team] = at[0];
            CLA_TOGETHER
            CLA_UNROLL for (int other = 0; other < Q; other++) {
                size[other] = sizes[other * TEAMS + team];
                at[other] = places[other * TEAMS + team];
            }
            CLA_LONGEST_OF(16)
            CLA_LONGEST_OF(8)
            CLA_LONGEST_OF(4)
            CLA_LONGEST_OF(2)
            CLA_LONGEST_OF(1)
        }
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) {
            place[v] = place[v] == at[0] ? k : place[v] == k ? at[0] : place[v];
            if (place[v] == k)
                CLA_UNROLL for (int u = FIRST_U; u < M; u++) line[u] = a[u][v] * lift[v];
        }
        CLA_TOGETHER
        cla_lane y[M], w[OWN_COLUMNS];
        CLA_REAL squares[CHAINS] = {0, 0};
        CLA_UNROLL for (int u = FIRST_U; u < M; u++) {
            y[u] = cla_lane_select(u >= LAST_U || u > k, line[u], cla_lane_real(0));
            squares[u % CHAINS] = cla_add_square(y[u], squares[u % CHAINS]);
        }
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) {
            w[v] = cla_lane_real(0);
            CLA_UNROLL for (int u = FIRST_U; u < M; u++) w[v] = cla_lane_fma(cla_lane_conj(y[u]), a[u][v], w[v]);
        }
        const cla_reflection h = cla_reflection_of(line[k], squares[0] + squares[1]);
        const cla_lane multiple = cla_lane_mul(h.inverse, cla_lane_conj(h.tau));
        CLA_UNROLL for (int u = FIRST_U; u < LAST_U; u++) y[u] = cla_lane_select(u == k, h.top, y[u]);
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) {
            cla_lane top = a[FIRST_U][v];
            CLA_UNROLL for (int u = FIRST_U + 1; u < LAST_U; u++) top = cla_lane_select(u == k, a[u][v], top);
            const cla_lane all = cla_lane_fma(cla_lane_conj(h.inverse), w[v], top);
            const cla_lane x = cla_lane_select(place[v] > k, cla_lane_mul(multiple, all), cla_lane_real(0));
            CLA_UNROLL for (int u = FIRST_U; u < M; u++) a[u][v] = cla_lane_fnma(y[u], x, a[u][v]);
            CLA_UNROLL for (int u = FIRST_U; u < LAST_U; u++)
                a[u][v] = cla_lane_select(place[v] == k && u == k, cla_lane_real(h.beta * LOWERED(v)), a[u][v]);
            if (place[v] == k) { KEEP(k, v, h) }
        }
    }
}
#undef FIRST_U
#undef LAST_U
#include "next_step.h"
#if STEP % 8
#include "strip_geqp3_step.h"
#endif
#endif
