/* sygv: eigenvalues w, ascending, and eigenvectors of A v = w B v for Hermitian A and positive definite B, which replace A,
 * for one lane (pack level) and for a batch (define SYGV_BATCH).
 *
 * A and B are n x n, and one triangle of both, `uplo`, and the real part of the diagonal all that is read; with jobz
 * CLA_VALUES A holds anything afterwards. B becomes its Cholesky factor L, or U: the eigenvalues are those of
 * L^-1 A L^-H. Batch: as of syev.cl; one work-item does one lane.
 */
#ifndef CLA_SYGV_CL
#define CLA_SYGV_CL

#include "potrf.cl"
#include "syev.cl"

/* A <- inv(L) A inv(L^H), all of it, for a Hermitian A of which the lower triangle is read. */
CLA_INLINE void cla_reduce(int n, cla_matrix A, cla_matrix L)
{
    for (int i = 0; i < n; i++) {
        cla_set(A, i, i, cla_lane_real(cla_lane_re(cla_get(A, i, i))));
        for (int j = 0; j < i; j++) cla_set(A, j, i, cla_lane_conj(cla_get(A, i, j)));
    }
    /* twice from the left: of the conjugated transposed matrix the second time */
    for (int side = 0; side < 2; side++) {
        cla_trsm(n, n, CLA_NONUNIT, cla_lane_real(1), L, A);
        A = cla_conjugated(cla_transposed(A));
    }
}

/* The n numbers of w are at w[i * wrs]. Returns 0; n + k where the leading minor of order k of B is the first that is not
 * positive, or NaN; or n where A holds NaN, or A or B infinities, or the iteration did not end: its results are NaN. */
CLA_INLINE int cla_sygv(int n, int uplo, int jobz, cla_matrix A, cla_matrix B, __global CLA_REAL *w, long wrs)
{
    const int upper = uplo == CLA_UPPER;
    const cla_matrix L = upper ? cla_conjugated(cla_transposed(B)) : B;
    const int bad = cla_potrf(n, L);
    CLA_REAL total = 0; /* an infinity on the diagonal of B stays there */
    for (int i = 0; i < n; i++) total += cla_lane_re(cla_get(L, i, i));
    cla_reduce(n, upper ? cla_conjugated(cla_transposed(A)) : A, L);
    if (bad || total == INFINITY) cla_set(A, 0, 0, cla_lane_real(NAN));
    const int failed = cla_syev(n, CLA_LOWER, jobz, A, w, wrs);
    if (jobz == CLA_VECTORS) { /* L^-H is upper triangular: its last row is the first */
        const cla_matrix U = cla_conjugated(cla_transposed(L));
        cla_trsm(n, n, CLA_NONUNIT, cla_lane_real(1), cla_reversed(U, n, n), cla_rows_reversed(A, n));
    }
    return bad ? n + bad : failed;
}

#ifdef SYGV_BATCH
/* aconj, bconj and wconj are 0; info[q] for the first nm lanes, those that hold a matrix */
__kernel void sygv_batch(long lanes, long nm, long n, long uplo, long jobz, CLA_OPERAND(CLA_REAL *A, a),
                         CLA_OPERAND(CLA_REAL *B, b), CLA_OPERAND(CLA_REAL *w, w), __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int failed = cla_sygv(n, uplo, jobz, CLA_MATRIX(A, a, q, 0), CLA_MATRIX(B, b, q, 0),
                                w + w0 + cla_lane_place(q, wps), wrs);
    if (q < nm) info[q] = failed;
}
#endif

#endif
