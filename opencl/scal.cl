/* scal: X <- alpha X for one lane (pack level) and for a batch (define SCAL_BATCH).
 *
 * X is m x n.
 * Batch: matrix q of X begins at X[x0 + (q / V) * xps + q % V], and alpha, a matrix of 1 x 1 for each, likewise; one
 * work-item scales one lane.
 */
#ifndef CLA_SCAL_CL
#define CLA_SCAL_CL

#include "lane.h"

CLA_INLINE void cla_scal(int m, int n, cla_lane alpha, cla_matrix X)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) cla_set(X, i, j, cla_lane_scale(alpha, cla_get(X, i, j)));
}

#ifdef SCAL_BATCH
/* alphaconj and xconj are 0 */
__kernel void scal_batch(long lanes, long nm, long m, long n, CLA_OPERAND(const CLA_REAL *restrict alpha, alpha),
                         CLA_OPERAND(CLA_REAL *restrict X, x))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_scal(m, n, cla_lane_load(alpha, alpha0 + cla_lane_place(q, alphaps)), CLA_MATRIX(X, x, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in numbers, XRS, XCS. Tunables:
 *
 * SCAL_ITEM  one work-item a matrix
 *   GROUP    work-items of a work-group
 */
#ifdef SCAL_ITEM
#include "known.h"
#include "unroll.h"

__kernel CLA_GROUP_OF(GROUP) void scal_item(long lanes, long nm,
                                            __global const CLA_REAL *restrict alpha, long alpha0, long alphaps,
                                            __global CLA_REAL *restrict X, long x0, long xps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const cla_lane factor = cla_lane_load(alpha, alpha0 + cla_lane_place(q, alphaps));
    X += x0 + cla_lane_place(q, xps);
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++)
            cla_lane_store(X, i * XRS + j * XCS, cla_lane_scale(factor, cla_lane_load(X, i * XRS + j * XCS)));
}
#endif

#endif
