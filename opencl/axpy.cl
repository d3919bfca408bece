/* axpy: Y <- alpha X + Y for one lane (pack level) and for a batch (define AXPY_BATCH).
 *
 * X and Y are m x n.
 * Batch: matrix q of X begins at X[x0 + (q / V) * xps + q % V], and alpha, a matrix of 1 x 1 for each, likewise; one
 * work-item updates one lane of Y.
 */
#ifndef CLA_AXPY_CL
#define CLA_AXPY_CL

#include "lane.h"

/* alpha = 0 reads nothing. */
CLA_INLINE void cla_axpy(int m, int n, cla_lane alpha, cla_matrix X, cla_matrix Y)
{
    if (cla_lane_is_zero(alpha)) return;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) cla_set(Y, i, j, cla_lane_scale(alpha, cla_get(X, i, j)) + cla_get(Y, i, j));
}

#ifdef AXPY_BATCH
/* alphaconj, xconj and yconj are 0 */
__kernel void axpy_batch(long lanes, long nm, long m, long n, CLA_OPERAND(const CLA_REAL *restrict alpha, alpha),
                         CLA_OPERAND(const CLA_REAL *restrict X, x), CLA_OPERAND(CLA_REAL *restrict Y, y))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_axpy(m, n, cla_lane_load(alpha, alpha0 + cla_lane_place(q, alphaps)), CLA_MATRIX(X, x, q, 0),
             CLA_MATRIX(Y, y, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in numbers, XRS, XCS, YRS, YCS.
 * Tunables:
 *
 * AXPY_ITEM  one work-item a matrix
 *   GROUP    work-items of a work-group
 */
#ifdef AXPY_ITEM
#include "known.h"
#include "unroll.h"

__kernel CLA_GROUP_OF(GROUP) void axpy_item(long lanes, long nm,
                                            __global const CLA_REAL *restrict alpha, long alpha0, long alphaps,
                                            __global const CLA_REAL *restrict X, long x0, long xps,
                                            __global CLA_REAL *restrict Y, long y0, long yps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const cla_lane factor = cla_lane_load(alpha, alpha0 + cla_lane_place(q, alphaps));
    if (cla_lane_is_zero(factor)) return;
    X += x0 + cla_lane_place(q, xps);
    Y += y0 + cla_lane_place(q, yps);
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) {
            const cla_lane x = cla_lane_scale(factor, cla_lane_load(X, i * XRS + j * XCS));
            cla_lane_store(Y, i * YRS + j * YCS, x + cla_lane_load(Y, i * YRS + j * YCS));
        }
}
#endif

#endif
