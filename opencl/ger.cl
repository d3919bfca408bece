/* ger: A <- alpha x y^T + A for one lane (pack level) and for a batch (define GER_BATCH).
 *
 * x is m x 1, y n x 1, A m x n; y^H is that of cla_conjugated(y).
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item updates one lane of A.
 */
#ifndef CLA_GER_CL
#define CLA_GER_CL

#include "gemm.cl"

/* alpha = 0 reads nothing. A overlaps neither x nor y. */
CLA_INLINE void cla_ger(int m, int n, cla_lane alpha, cla_matrix x, cla_matrix y, cla_matrix A)
{
    if (!cla_lane_is_zero(alpha)) cla_gemm(m, n, 1, alpha, x, cla_transposed(y), cla_lane_real(1), A);
}

#ifdef GER_BATCH
/* aconj is 0: A is as it is */
__kernel void ger_batch(long lanes, long nm, long m, long n, CLA_SCALAR(alpha),
                        CLA_OPERAND(const CLA_REAL *restrict x, x), CLA_OPERAND(const CLA_REAL *restrict y, y),
                        CLA_OPERAND(CLA_REAL *restrict A, a))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_ger(m, n, CLA_VALUE(alpha), CLA_MATRIX(x, x, q, xconj), CLA_MATRIX(y, y, q, yconj), CLA_MATRIX(A, a, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in numbers, XRS, YRS, ARS, ACS;
 * YCONJ, 1 to conjugate y; ALPHA, 0 if alpha is 1, else 1. Tunables:
 *
 * GER_ITEM   one work-item a matrix: y in its registers, the rows of A pass by.
 *   GROUP    work-items of a work-group
 */
#ifdef GER_ITEM
#include "known.h"

__kernel CLA_GROUP_OF(GROUP) void ger_item(long lanes, long nm, CLA_SCALAR(alpha),
                                           __global const CLA_REAL *restrict x, long x0, long xps,
                                           __global const CLA_REAL *restrict y, long y0, long yps,
                                           __global CLA_REAL *restrict A, long a0, long aps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    x += x0 + cla_lane_place(q, xps);
    y += y0 + cla_lane_place(q, yps);
    A += a0 + cla_lane_place(q, aps);
    cla_lane b[N];
    CLA_UNROLL for (int j = 0; j < N; j++) {
        b[j] = cla_lane_load_as(YCONJ, y, j * YRS);
        if (ALPHA) b[j] = cla_lane_scale(CLA_VALUE(alpha), b[j]);
    }
    CLA_UNROLL_SOME for (int i = 0; i < M; i++) {
        const cla_lane a = cla_lane_load(x, i * XRS);
        CLA_UNROLL for (int j = 0; j < N; j++)
            cla_lane_store(A, i * ARS + j * ACS, cla_lane_fma(a, b[j], cla_lane_load(A, i * ARS + j * ACS)));
    }
}
#endif

#endif
