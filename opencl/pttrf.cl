/* pttrf: L D L^H of a positive definite tridiagonal matrix, for one lane. */
#ifndef CLA_PTTRF_CL
#define CLA_PTTRF_CL

#include "pbtrf.cl"

/* diag, lower: n x 1, of which the real parts are read, and (n - 1) x 1. F: n x 3, which gets what cla_pbtrf leaves.
 * Returns 0 or 1 + the index of the first pivot that is not positive. */
CLA_INLINE int cla_pttrf(int n, cla_matrix diag, cla_matrix lower, cla_matrix F)
{
    for (int k = 0; k < n; k++) {
        cla_set(F, k, 0, k > 0 ? cla_get(lower, k - 1, 0) : cla_lane_real(0));
        cla_set(F, k, 1, cla_lane_real(cla_lane_re(cla_get(diag, k, 0))));
        cla_set(F, k, 2, k < n - 1 ? cla_lane_conj(cla_get(lower, k, 0)) : cla_lane_real(0));
    }
    return cla_pbtrf(n, 1, F);
}
#endif
