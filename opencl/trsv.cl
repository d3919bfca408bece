/* trsv: x <- inv(A) x, A lower triangular, for one lane (pack level) and for a batch (define TRSV_BATCH).
 *
 * A is n x n, x n x 1. An upper triangle is the lower one of the transposed or of the reversed matrix, as in trsm.cl.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane of x.
 */
#ifndef CLA_TRSV_CL
#define CLA_TRSV_CL

#if defined(TRSV_BATCH) && !defined(CLA_COLS)
#define CLA_COLS 1 /* columns of a tile: there are no more */
#endif
#include "trsm.cl"

/* diag is what A's diagonal holds, as in trsm.cl. */
CLA_INLINE void cla_trsv(int n, int diag, cla_matrix A, cla_matrix x)
{
    cla_trsm(n, 1, diag, cla_lane_real(1), A, x);
}

#ifdef TRSV_BATCH
/* xconj is 0: x is as it is */
__kernel void trsv_batch(long lanes, long nm, long n, long diag, CLA_OPERAND(const CLA_REAL *restrict A, a),
                         CLA_OPERAND(CLA_REAL *restrict x, x))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_trsv(n, diag, CLA_MATRIX(A, a, q, aconj), CLA_MATRIX(x, x, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define N and, in numbers, ARS, ACS, XRS; ACONJ, 1 to
 * conjugate A; DIAG, what the diagonal holds. Tunables:
 *
 * TRSV_ITEM  one work-item a matrix: x in its registers, the columns of the triangle pass by.
 *   GROUP    work-items of a work-group
 */
#ifdef TRSV_ITEM
#include "known.h"

__kernel CLA_GROUP_OF(GROUP) void trsv_item(long lanes, long nm,
                                            __global const CLA_REAL *restrict A, long a0, long aps,
                                            __global CLA_REAL *restrict x, long x0, long xps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    x += x0 + cla_lane_place(q, xps);
    cla_lane b[N];
    CLA_UNROLL for (int i = 0; i < N; i++) b[i] = cla_lane_load(x, i * XRS);
    CLA_UNROLL for (int k = 0; k < N; k++) {
        if (DIAG != CLA_UNIT) {
            const cla_lane d = cla_lane_load_as(ACONJ, A, k * (ARS + ACS));
            b[k] = cla_lane_mul(DIAG == CLA_NONUNIT ? cla_lane_recip(d) : d, b[k]);
        }
        cla_lane_store(x, k * XRS, b[k]);
        CLA_UNROLL for (int i = k + 1; i < N; i++)
            b[i] = cla_lane_fnma(cla_lane_load_as(ACONJ, A, i * ARS + k * ACS), b[k], b[i]);
    }
}
#endif

#endif
