/* pttrs: B <- inv(A) B with the factors of pttrf, for one lane. */
#ifndef CLA_PTTRS_CL
#define CLA_PTTRS_CL

#include "pbtrs.cl"

/* B is n x r. */
CLA_INLINE void cla_pttrs(int n, int r, cla_matrix F, cla_matrix B) { cla_pbtrs(n, r, 1, F, B); }
#endif
