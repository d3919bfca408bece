/* pbtrf: L D L^H of a positive definite band matrix, for one lane. */
#ifndef CLA_PBTRF_CL
#define CLA_PBTRF_CL

#include "gbtrf.cl"

/* F: as of cla_gbtrf for ku diagonals on either side, both triangles. Returns 0 or 1 + the index of the first pivot
 * that is not positive. */
CLA_INLINE int cla_pbtrf(int n, int ku, cla_matrix F) { return cla_gbtrf(n, ku, ku, 0, 1, F, 0); }
#endif
