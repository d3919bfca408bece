/* tbsv: x <- inv(A) x or inv(A^T) x, A triangular with k diagonals beside the main one, for one lane. */
#ifndef CLA_TBSV_CL
#define CLA_TBSV_CL

#include "tile.h"

/* A is (k + 1) x n, the diagonals: element (i, j) is element (i - j, j) of that, of an `upper` triangle (k + i - j, j).
 * What is outside of the matrix, in a corner, is not read. trans: 1 for A^T, which with cla_conjugated(A) is A^H.
 * diag: CLA_NONUNIT, or CLA_UNIT for a diagonal of ones, which is not read. x is n x 1. */
CLA_INLINE void cla_tbsv(int n, int k, int upper, int trans, int diag, cla_matrix A, cla_matrix x)
{
    const int down = upper == trans, main = upper ? k : 0, away = upper ? -1 : 1;
    for (int step = 0; step < n; step++) {
        const int i = down ? step : n - 1 - step;
        cla_lane y = cla_get(x, i, 0);
        for (int t = min(k, step); t > 0; t--) {
            const int j = down ? i - t : i + t;
            y = cla_lane_fnma(cla_get(A, main + away * t, trans ? i : j), cla_get(x, j, 0), y);
        }
        if (diag == CLA_NONUNIT) y = cla_lane_mul(y, cla_lane_recip(cla_get(A, main, i)));
        cla_set(x, i, 0, y);
    }
}
#endif
