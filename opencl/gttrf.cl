/* gttrf: the LU factors of a tridiagonal matrix, for one lane: as gbtrf of a band of one diagonal on either side. */
#ifndef CLA_GTTRF_CL
#define CLA_GTTRF_CL

#include "gbtrf.cl"

/* lower, diag, upper: (n - 1) x 1, n x 1 and (n - 1) x 1, which are read only. F: n x (pivoting ? 4 : 3), which gets what
 * cla_gbtrf leaves: row k is the multiple of row k - 1 that was subtracted from it, the reciprocal of pivot k, and the
 * rest of U. swaps: n ints, with `pivoting` only. Returns 0 or 1 + the index of the first pivot that is zero, for which
 * 1 counts. */
CLA_INLINE int cla_gttrf(int n, int pivoting, cla_matrix lower, cla_matrix diag, cla_matrix upper, cla_matrix F,
                         __global int *swaps)
{
    for (int k = 0; k < n; k++) {
        cla_set(F, k, 0, k > 0 ? cla_get(lower, k - 1, 0) : cla_lane_real(0));
        cla_set(F, k, 1, cla_get(diag, k, 0));
        cla_set(F, k, 2, k < n - 1 ? cla_get(upper, k, 0) : cla_lane_real(0));
        if (pivoting) cla_set(F, k, 3, cla_lane_real(0));
    }
    return cla_gbtrf(n, 1, 1 + pivoting, pivoting, 0, F, swaps);
}
#endif
