/* nrm2: the 2-norms of the columns of X, for one lane (pack level) and for a batch (define NRM2_BATCH).
 *
 * X is m x n. No square overflows or underflows.
 * Batch: matrix q of X begins at X[x0 + (q / V) * xps + q % V]; one work-item computes the norms of one lane, r of 1 x n.
 */
#ifndef CLA_NRM2_CL
#define CLA_NRM2_CL

#include "householder.h"

/* The sum of the squares of `scale` times column j. */
CLA_INLINE CLA_REAL cla_sum_of_squares(int m, int j, cla_matrix X, CLA_REAL scale)
{
    CLA_REAL even = 0, odd = 0;
    for (int i = 0; i + 1 < m; i += 2) {
        even = cla_add_square(cla_get(X, i, j) * scale, even);
        odd = cla_add_square(cla_get(X, i + 1, j) * scale, odd);
    }
    if (m % 2) even = cla_add_square(cla_get(X, m - 1, j) * scale, even);
    return even + odd;
}

/* Of column j. */
CLA_INLINE CLA_REAL cla_nrm2(int m, int j, cla_matrix X)
{
    const CLA_REAL squares = cla_sum_of_squares(m, j, X, 1), scale = cla_scale_of(cla_lane_real(0), squares);
    if (scale == 1) return cla_lane_sqrt(squares);
    return cla_lane_sqrt(cla_sum_of_squares(m, j, X, scale)) * (scale > 1 ? 1 / CLA_RANGE : CLA_RANGE);
}

#ifdef NRM2_BATCH
/* xconj and rconj are of no matter; r has real numbers */
__kernel void nrm2_batch(long lanes, long nm, long m, long n, CLA_OPERAND(const CLA_REAL *restrict X, x),
                         CLA_OPERAND(CLA_REAL *restrict r, r))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const cla_matrix x = CLA_MATRIX(X, x, q, 0);
    for (int j = 0; j < n; j++) r[r0 + cla_lane_place(q, rps) + j * rcs] = cla_nrm2(m, j, x);
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in numbers, XRS, XCS, RCS. Tunables:
 *
 * NRM2_ITEM  one work-item a matrix
 *   GROUP    work-items of a work-group
 */
#ifdef NRM2_ITEM
#include "known.h"

__kernel CLA_GROUP_OF(GROUP) void nrm2_item(long lanes, long nm,
                                            __global const CLA_REAL *restrict X, long x0, long xps,
                                            __global CLA_REAL *restrict r, long r0, long rps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    X += x0 + cla_lane_place(q, xps);
    r += r0 + cla_lane_place(q, rps);
    CLA_UNROLL for (int j = 0; j < N; j++) r[j * RCS] = cla_nrm2(M, j, cla_matrix_at(X, XRS, XCS));
}
#endif

#endif
