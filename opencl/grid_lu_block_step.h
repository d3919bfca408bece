/* Blocks of TURNS steps each of an LU factorization with partial pivoting, BLOCKS of them from number STEP BLOCKS on, where
 * teams are parts of a warp and members have whole rows, in grid_lu.cl: the steps change the columns of the block alone,
 * and all others change when it ends.
 *
 * What a step eliminates takes its place in w: after the steps row i is to be less w[.][s] times the row that was taken
 * in step s, for all s, where rows are what they were before the block. These go through local memory all at once, as a
 * store takes as long for one member as for a warp. Columns move left as steps and blocks go, so that these need not be
 * written out: instructions that each warp runs once come too slowly. For SAVED the tile gets column k of all rows in
 * step k. place[u] is ~k for a row that was taken in step k.
 */
#if STEP * BLOCKS * TURNS < LU_STEPS
{
    CLA_ROLLED for (int block = STEP * BLOCKS; block < STEP * BLOCKS + BLOCKS && block * TURNS < LU_STEPS; block++) {
        cla_lane w[OWN_ROWS][TURNS];
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
            CLA_UNROLL for (int j = 0; j < TURNS; j++) w[u][j] = a[u][j];
        CLA_UNROLL for (int s = 0; s < TURNS; s++) {
            const int k = block * TURNS + s;
            if (LU_STEPS % TURNS == 0 || k < LU_STEPS) {
                int found[OWN_ROWS];
                cla_lane row[TURNS];
                LU_FIND
                CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
                    place[u] = found[u] ? ~k : KEEP && place[u] == k ? at : place[u];
                    dead[u] = found[u] ? -1 : dead[u];
                    const cla_lane e = cla_lane_mul(w[u][s], row[s]);
                    const cla_lane x = cla_lane_select(INV ? !found[u] : dead[u] == 0, e, cla_lane_real(0));
                    if ((SAVED > 0) & (place[u] != INT_MIN))
                        tile[(u * P + p) * TILE_LINE + k] = KEEP ? cla_lane_select(dead[u] == 0, e, w[u][s]) : w[u][s];
                    CLA_UNROLL for (int j = 0; j < TURNS; j++)
                        if (j != s) w[u][j] = cla_lane_fnma(x, row[j], w[u][j]);
                    w[u][s] = INV ? cla_lane_select(found[u], cla_lane_real(-1), x) : x;
                }
            } else
                CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
                    if ((SAVED > 0) & (k < N) & (place[u] != INT_MIN)) tile[(u * P + p) * TILE_LINE + k] = w[u][s];
                    if (!INV) w[u][s] = cla_lane_real(0);
                }
        }
        CLA_TOGETHER
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
            const int s = ~place[u] - block * TURNS;
            if (s >= 0 && s < TURNS) {
                CLA_UNROLL for (int v = TURNS; v < LEFT; v++) lines[s * LU_LINE + v] = a[u][v];
                CLA_UNROLL for (int v = BESIDE; v < HELD; v++) lines[s * LU_LINE + v] = a[u][v];
            }
        }
        CLA_TOGETHER
#define LINES_OF(v) (LU_STEPS % TURNS == 0 || block * TURNS + s < LU_STEPS ? lines[s * LU_LINE + (v)] : cla_lane_real(0))
#if INV
        cla_lane inverse[OWN_ROWS][TURNS];
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
            CLA_UNROLL for (int j = 0; j < TURNS; j++) {
                inverse[u][j] = CLA_MINUS(w[u][j]);
                w[u][j] = w[u][j] + cla_lane_real(~place[u] == block * TURNS + j);
            }
#endif
        CLA_UNROLL for (int v = TURNS; v < LEFT; v++) {
            cla_lane x[OWN_ROWS];
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) x[u] = a[u][v];
            CLA_UNROLL for (int s = 0; s < TURNS; s++) {
                const cla_lane y = LINES_OF(v);
                CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) x[u] = cla_lane_fnma(w[u][s], y, x[u]);
            }
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) a[u][v - TURNS] = x[u];
        }
        CLA_UNROLL for (int v = BESIDE; v < HELD; v++)
            CLA_UNROLL for (int s = 0; s < TURNS; s++) {
                const cla_lane y = LINES_OF(v);
                CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) a[u][v] = cla_lane_fnma(w[u][s], y, a[u][v]);
            }
#if INV
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
            CLA_UNROLL for (int j = 0; j < TURNS; j++) a[u][BESIDE - TURNS + j] = inverse[u][j];
#endif
#undef LINES_OF
    }
}
#include "next_step.h"
#if STEP % 8
#include "grid_lu_block_step.h"
#endif
#endif
