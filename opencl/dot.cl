/* dot: the sums down the columns of X times Y, element by element, for one lane (pack level) and for a batch (define
 * DOT_BATCH).
 *
 * X and Y are m x n; what is conjugated is a flag of the matrix (lane.h).
 * Batch: matrix q of X begins at X[x0 + (q / V) * xps + q % V]; one work-item computes the sums of one lane, d of 1 x n.
 */
#ifndef CLA_DOT_CL
#define CLA_DOT_CL

#include "lane.h"

/* Of column j. */
CLA_INLINE cla_lane cla_dot(int m, int j, cla_matrix X, cla_matrix Y)
{
    cla_lane even = cla_lane_real(0), odd = even;
    for (int i = 0; i + 1 < m; i += 2) {
        even = cla_lane_fma(cla_get(X, i, j), cla_get(Y, i, j), even);
        odd = cla_lane_fma(cla_get(X, i + 1, j), cla_get(Y, i + 1, j), odd);
    }
    if (m % 2) even = cla_lane_fma(cla_get(X, m - 1, j), cla_get(Y, m - 1, j), even);
    return even + odd;
}

#ifdef DOT_BATCH
/* dconj is 0 */
__kernel void dot_batch(long lanes, long nm, long m, long n, CLA_OPERAND(const CLA_REAL *restrict X, x),
                        CLA_OPERAND(const CLA_REAL *restrict Y, y), CLA_OPERAND(CLA_REAL *restrict d, d))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const cla_matrix x = CLA_MATRIX(X, x, q, xconj);
    const cla_matrix y = CLA_MATRIX(Y, y, q, yconj);
    for (int j = 0; j < n; j++) cla_lane_store(d, d0 + cla_lane_place(q, dps) + j * dcs, cla_dot(m, j, x, y));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in numbers, XRS, XCS, YRS, YCS, DCS;
 * XCONJ, 1 to conjugate X. Tunables:
 *
 * DOT_ITEM   one work-item a matrix
 *   GROUP    work-items of a work-group
 */
#ifdef DOT_ITEM
#include "known.h"
#include "unroll.h"

__kernel CLA_GROUP_OF(GROUP) void dot_item(long lanes, long nm,
                                           __global const CLA_REAL *restrict X, long x0, long xps,
                                           __global const CLA_REAL *restrict Y, long y0, long yps,
                                           __global CLA_REAL *restrict d, long d0, long dps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    X += x0 + cla_lane_place(q, xps);
    Y += y0 + cla_lane_place(q, yps);
    d += d0 + cla_lane_place(q, dps);
    CLA_UNROLL for (int j = 0; j < N; j++) {
        cla_lane sum = cla_lane_real(0);
        CLA_UNROLL for (int i = 0; i < M; i++)
            sum = cla_lane_fma(cla_lane_load_as(XCONJ, X, i * XRS + j * XCS), cla_lane_load(Y, i * YRS + j * YCS), sum);
        cla_lane_store(d, j * DCS, sum);
    }
}
#endif

#endif
