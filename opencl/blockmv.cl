/* blockmv: Y <- D X for block diagonal matrices, for one lane. */
#ifndef CLA_BLOCKMV_CL
#define CLA_BLOCKMV_CL

#include "lane.h"

/* D has b x b blocks, row by row in a matrix of one column; the last may reach beyond the n rows of X and Y, which are
 * not the same. Rows first, first + step, ... are computed: 0 and 1 for all. */
CLA_INLINE void cla_blockmv(int n, int nrhs, int b, cla_matrix blocks, cla_matrix X, cla_matrix Y, int first, int step)
{
    for (int i = first; i < n; i += step) {
        const int start = i / b * b, count = min(b, n - start);
        for (int j = 0; j < nrhs; j++) {
            cla_lane sum = cla_lane_real(0);
            for (int k = 0; k < count; k++)
                sum = cla_lane_fma(cla_matrix_load(blocks, ((long)i * b + k) * blocks.rs), cla_get(X, start + k, j), sum);
            cla_set(Y, i, j, sum);
        }
    }
}
#endif

#ifdef UNIT_BLOCKS
/* Blocks with an info that is not zero <- 1 */
__kernel void unit_blocks(long lanes, long b, __global const int *info, CLA_VIEW(CLA_REAL *blocks, d))
{
    const long q = get_global_id(0);
    if (q >= lanes || !info[q]) return;
    const cla_matrix D = CLA_MATRIX(blocks, d, q, 0);
    for (int i = 0; i < b; i++)
        for (int j = 0; j < b; j++) cla_set(D, i, j, cla_lane_real(i == j));
}
#endif
