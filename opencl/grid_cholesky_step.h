/* STEPS steps of a Cholesky factorization, from step STEP STEPS on, in kernels on grids. Rows below the first N get what
 * the factor makes of them: those of B^H become those of (inv(L) B)^H; and if BESIDE is defined, so do the R rows x, of which
 * all members of a column of the grid have the same. */
#if STEP * STEPS < N
{
    CLA_ROLLED for (int t = 0; t < STEPS && STEP * STEPS + t < N; t++) {
        const int k = STEP * STEPS + t;
        CLA_LOCAL cla_lane *column = columns + (k % 2 * TEAMS + team) * LINE;
        if (c == k % Q)
            CLA_UNROLL for (int u = FIRST_ROW; u < OWN_ROWS; u++) column[u * P + p] = a[u][FIRST_COLUMN];
#ifdef BESIDE
        CLA_LOCAL cla_lane *head = heads + (k % 2 * TEAMS + team) * R;
        if (p == 0 && c == k % Q)
            CLA_UNROLL for (int s = 0; s < R; s++) head[s] = x[s][FIRST_COLUMN];
#endif
        CLA_TOGETHER
        CLA_REAL r;
        const CLA_REAL root = cla_root(cla_lane_re(column[k]), k, &bad, &r);
        cla_lane l[OWN_ROWS];
        CLA_UNROLL for (int u = FIRST_ROW; u < OWN_ROWS; u++) l[u] = column[u * P + p] * r;
        CLA_UNROLL for (int v = FIRST_COLUMN; v < OWN_COLUMNS; v++) {
            const int right = v > FIRST_COLUMN || v * Q + c > k; /* columns that are done stay as they are */
            const cla_lane row = cla_lane_select(right, cla_lane_conj(column[v * Q + c] * r), cla_lane_real(0));
            CLA_UNROLL for (int u = FIRST_ROW; u < OWN_ROWS; u++)
                if (u * P + P > v * Q) a[u][v] = cla_lane_fnma(l[u], row, a[u][v]);
#ifdef BESIDE
            CLA_UNROLL for (int s = 0; s < R; s++) {
                x[s][v] = cla_lane_fnma(head[s] * r, row, x[s][v]);
                if (v == FIRST_COLUMN && c == k % Q) x[s][v] = head[s] * r;
            }
#endif
        }
        const int own = c == k % Q;
        CLA_UNROLL for (int u = FIRST_ROW; u < OWN_ROWS; u++) {
            const cla_lane x = u * P + p == k ? cla_lane_real(root) : l[u];
            a[u][FIRST_COLUMN] = cla_lane_select(own && u * P + p >= k, x, a[u][FIRST_COLUMN]);
        }
    }
}
#include "next_step.h"
#if STEP % 8
#include "grid_cholesky_step.h"
#endif
#endif
