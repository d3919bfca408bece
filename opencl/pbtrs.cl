/* pbtrs: B <- inv(A) B with the factors of pbtrf, for one lane. */
#ifndef CLA_PBTRS_CL
#define CLA_PBTRS_CL

#include "gbtrs.cl"

/* B is n x r. */
CLA_INLINE void cla_pbtrs(int n, int r, int ku, cla_matrix F, cla_matrix B)
{
    cla_gbtrs(n, r, ku, ku, 0, 0, F, 0, B);
}
#endif
