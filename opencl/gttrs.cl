/* gttrs: B <- inv(A) B with the factors of gttrf, for one lane. */
#ifndef CLA_GTTRS_CL
#define CLA_GTTRS_CL

#include "gbtrs.cl"

/* B is n x r. */
CLA_INLINE void cla_gttrs(int n, int r, int pivoting, cla_matrix F, __global const int *swaps, cla_matrix B)
{
    cla_gbtrs(n, r, 1, 1 + pivoting, pivoting, 0, F, swaps, B);
}
#endif
