/* gelsy: B <- the solution of the smallest norm of min ||B - A X||, for A of any rank, for one lane (pack level) and for
 * a batch (define GELSY_BATCH).
 *
 * A is m x n and becomes T, Z and Q of its complete orthogonal factorization A P = Q [T 0; 0 0] Z, of the scaled matrix
 * where its norm was tiny or huge. B has m rows, and the n of the solution then; below these, where all n pivots count,
 * the sum of squares is that of the residual.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item solves for one lane.
 */
#ifndef CLA_GELSY_CL
#define CLA_GELSY_CL

#include "gels.cl"
#include "geqp3.cl"

/* R <- T and Z with R = [T 0] Z, of `rank` rows and n columns: what is in row k from column `rank` on is that of one
 * reflector. Its tau is number k of a column. */
CLA_INLINE void cla_reduce_rows(int rank, int n, cla_matrix R, cla_matrix tau)
{
    const cla_matrix Rh = cla_conjugated(cla_transposed(R));
    for (int k = rank - 1; k >= 0; k--) {
        const cla_matrix v = cla_from(Rh, rank, k);
        const cla_lane t = cla_reflector_apart(n - rank + 1, cla_from(Rh, k, k), v);
        cla_set(tau, k, 0, t);
        for (int j = 0; j < k; j++)
            cla_reflect_apart(n - rank + 1, v, cla_lane_conj(t), cla_from(Rh, k, j), cla_from(Rh, rank, j));
    }
}

/* B <- Z^H B, n x r */
CLA_INLINE void cla_expand_rows(int rank, int n, int r, cla_matrix R, cla_matrix tau, cla_matrix B)
{
    const cla_matrix Rh = cla_conjugated(cla_transposed(R));
    for (int k = 0; k < rank; k++)
        for (int j = 0; j < r; j++)
            cla_reflect_apart(n - rank + 1, cla_from(Rh, rank, k), cla_get(tau, k, 0), cla_from(B, k, j),
                              cla_from(B, rank, j));
}

/* Rows of B, of r columns, to where jpvt says that they belong, which becomes 0, 1, .. n - 1. */
CLA_INLINE void cla_permute_rows(int n, int r, __global int *jpvt, cla_matrix B)
{
    for (int i = 0; i < n; i++)
        for (int p = cla_int_load(jpvt, i); p != i; p = cla_int_load(jpvt, i)) {
            cla_int_store(jpvt, i, cla_int_load(jpvt, p));
            cla_int_store(jpvt, p, p);
            cla_swap_rows(i, p, r, B);
        }
}

/* jpvt, tau: room for n ints and for min(m, n) numbers. Returns the rank: how many pivots are not zero, nor smaller than
 * rcond times the first. */
CLA_INLINE int cla_gelsy(int m, int n, int r, CLA_REAL rcond, cla_matrix A, cla_matrix B, __global int *jpvt,
                         cla_matrix tau)
{
    const int k = min(m, n);
    const CLA_REAL size = cla_scale_of_matrix(m, n, A), size_of_b = cla_scale_of_matrix(m, r, B);
    cla_multiply_by(m, n, A, size);
    cla_multiply_by(m, r, B, size_of_b);
    cla_geqp3(m, n, A, jpvt, tau);
    cla_ormqr(m, r, k, 1, A, tau, B);
    int rank = 0;
    for (; rank < k; rank++) {
        const CLA_REAL pivot = cla_lane_abs1(cla_get(A, rank, rank));
        if (pivot == 0 || pivot < rcond * cla_lane_abs1(cla_get(A, 0, 0))) break;
    }
    if (rank < n) cla_reduce_rows(rank, n, A, tau);
    cla_substitute_divided(rank, r, cla_reversed(A, rank, rank), cla_rows_reversed(B, rank));
    cla_clear(n - rank, r, cla_from(B, rank, 0));
    if (rank < n) cla_expand_rows(rank, n, r, A, tau, B);
    cla_permute_rows(n, r, jpvt, B);
    cla_multiply_by(n, r, B, size / size_of_b);
    cla_multiply_by(m - n, r, cla_from(B, n, 0), 1 / size_of_b);
    return rank;
}

#ifdef GELSY_BATCH
/* aconj, bconj, jpvtconj and tauconj are 0; rank[q] for the first nm lanes, those that hold a matrix */
__kernel void gelsy_batch(long lanes, long nm, long r, long m, long n, CLA_SCALAR(rcond), CLA_OPERAND(CLA_REAL *A, a),
                          CLA_OPERAND(CLA_REAL *B, b), CLA_OPERAND(int *jpvt, jpvt), CLA_OPERAND(CLA_REAL *tau, tau),
                          __global int *rank)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int found = cla_gelsy(m, n, r, rcond, CLA_MATRIX(A, a, q, 0), CLA_MATRIX(B, b, q, 0),
                                jpvt + jpvt0 + cla_lane_place(q, jpvtps), CLA_MATRIX(tau, tau, q, 0));
    if (q < nm) rank[q] = found;
}
#endif

#endif
