/* sysv and hesv: A <- the factors of sytrf or hetrf, and B <- inv(A) B, for one lane (pack level) and for a batch (define
 * SYSV_BATCH or HESV_BATCH).
 *
 * A is n x n, of which the triangle `uplo` is read and written, B n x r, and `ipiv` room for n ints, CLA_VLEN apart.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V], its ints likewise; one work-item does one lane.
 */
#ifndef CLA_SYSV_CL
#define CLA_SYSV_CL

#include "sytrs.cl"

/* Returns 0 or 1 + the index of the first block of D that is exactly zero, or NaN; B is not finite then. */
CLA_INLINE int cla_sysv(int n, int r, int uplo, cla_matrix A, cla_matrix B, __global int *ipiv)
{
    const int info = cla_sytrf(n, uplo, A, ipiv);
    cla_sytrs(n, r, uplo, A, ipiv, B);
    return info;
}
CLA_INLINE int cla_hesv(int n, int r, int uplo, cla_matrix A, cla_matrix B, __global int *ipiv)
{
    const int info = cla_hetrf(n, uplo, A, ipiv);
    cla_hetrs(n, r, uplo, A, ipiv, B);
    return info;
}

/* info[q] for the first nm lanes, those that hold a matrix; aconj and bconj are 0: A and B are as they are */
#if defined(SYSV_BATCH) || defined(HESV_BATCH)
#ifdef SYSV_BATCH
#define BATCH sysv_batch
#define SOLVE cla_sysv
#else
#define BATCH hesv_batch
#define SOLVE cla_hesv
#endif
__kernel void BATCH(long lanes, long nm, long n, long r, long uplo, CLA_OPERAND(CLA_REAL *A, a),
                    CLA_OPERAND(CLA_REAL *B, b), CLA_OPERAND(int *ipiv, ipiv), __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int first = SOLVE(n, r, uplo != 0, CLA_MATRIX(A, a, q, 0), CLA_MATRIX(B, b, q, 0),
                            ipiv + ipiv0 + cla_lane_place(q, ipivps));
    if (q < nm) info[q] = first;
}
#endif

#endif
