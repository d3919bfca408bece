/* gemv: y <- alpha A x + beta y for one lane (pack level) and for a batch (define GEMV_BATCH).
 *
 * A is m x n, x n x 1, y m x 1; transposes are strides, conjugates a flag of the matrix (lane.h).
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane of y.
 */
#ifndef CLA_GEMV_CL
#define CLA_GEMV_CL

#if defined(GEMV_BATCH) && !defined(CLA_COLS)
#define CLA_COLS 1 /* columns of a tile: there are no more */
#endif
#include "gemm.cl"

/* As BLAS: beta = 0 does not read y, alpha = 0 does not read A and x. y overlaps neither A nor x. */
CLA_INLINE void cla_gemv(int m, int n, cla_lane alpha, cla_matrix A, cla_matrix x, cla_lane beta, cla_matrix y)
{
    cla_gemm(m, 1, n, alpha, A, x, beta, y);
}

#ifdef GEMV_BATCH
/* yconj is 0: y is as it is */
__kernel void gemv_batch(long lanes, long nm, long m, long n, CLA_SCALAR(alpha), CLA_SCALAR(beta),
                         CLA_OPERAND(const CLA_REAL *restrict A, a), CLA_OPERAND(const CLA_REAL *restrict x, x),
                         CLA_OPERAND(CLA_REAL *restrict y, y))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_gemv(m, n, CLA_VALUE(alpha), CLA_MATRIX(A, a, q, aconj), CLA_MATRIX(x, x, q, xconj), CLA_VALUE(beta),
             CLA_MATRIX(y, y, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in numbers, ARS, ACS, XRS, YRS;
 * ACONJ, 1 to conjugate A; ALPHA, 0 if alpha is 1, and BETA, 0 if beta is 0, else 1. Tunables:
 *
 * GEMV_ITEM  one work-item a matrix: x in its registers, the rows of A pass by.
 *   GROUP    work-items of a work-group
 */
#ifdef GEMV_ITEM
#include "known.h"

__kernel CLA_GROUP_OF(GROUP) void gemv_item(long lanes, long nm, CLA_SCALAR(alpha), CLA_SCALAR(beta),
                                            __global const CLA_REAL *restrict A, long a0, long aps,
                                            __global const CLA_REAL *restrict x, long x0, long xps,
                                            __global CLA_REAL *restrict y, long y0, long yps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    x += x0 + cla_lane_place(q, xps);
    y += y0 + cla_lane_place(q, yps);
    cla_lane b[N];
    CLA_UNROLL for (int j = 0; j < N; j++) {
        b[j] = cla_lane_load(x, j * XRS);
        if (ALPHA) b[j] = cla_lane_scale(CLA_VALUE(alpha), b[j]);
    }
    CLA_UNROLL_SOME for (int i = 0; i < M; i++) {
        cla_lane c = BETA ? cla_lane_scale(CLA_VALUE(beta), cla_lane_load(y, i * YRS)) : cla_lane_real(0);
        CLA_UNROLL for (int j = 0; j < N; j++) c = cla_lane_fma(cla_lane_load_as(ACONJ, A, i * ARS + j * ACS), b[j], c);
        cla_lane_store(y, i * YRS, c);
    }
}
#endif

#endif
