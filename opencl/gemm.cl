/* gemm: C <- alpha A B + beta C for one lane (pack level) and for a batch (define GEMM_BATCH).
 *
 * A is m x k, B k x n, C m x n; transposes are strides, conjugates a flag of the matrix (lane.h).
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane of C.
 */
#ifndef GEMM_CL
#define GEMM_CL

#include "tile.h"

/* As BLAS: beta = 0 does not read C, alpha = 0 does not read A and B. C overlaps neither A nor B. */
INLINE void gemm(int m, int n, int k, lane alpha, matrix A, matrix B, lane beta, matrix C)
{
    if (lane_is_zero(alpha)) k = 0;
    for (int i = 0; i < m; i += TILE)
        for (int j = 0; j < n; j += COLS) {
            tile c = tile_multiply(tile_zero(), A, i, m, B, j, n, k);
            c = tile_combine(alpha, c, beta, C, i, m, j, n);
            tile_store(c, C, i, m, j, n);
        }
}

#ifdef GEMM_BATCH
__kernel void gemm_batch(long lanes, long m, long n, long k, REAL alpha, REAL alpha_im,
                         __global const REAL *restrict A, long a0, long aps, long ars, long acs, long conja,
                         __global const REAL *restrict B, long b0, long bps, long brs, long bcs, long conjb,
                         REAL beta, REAL beta_im, __global REAL *restrict C, long c0, long cps, long crs, long ccs)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    matrix a = matrix_at(A + a0 + q / V * aps + q % V, ars, acs);
    matrix b = matrix_at(B + b0 + q / V * bps + q % V, brs, bcs);
    a.conj = conja;
    b.conj = conjb;
    gemm(m, n, k, lane_of(alpha, alpha_im), a, b, lane_of(beta, beta_im),
         matrix_at(C + c0 + q / V * cps + q % V, crs, ccs));
}
#endif

#endif
