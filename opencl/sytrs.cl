/* sytrs and hetrs: B <- inv(A) B with the factors and the swaps that sytrf and hetrf left, for one lane (pack level) and
 * for a batch (define SYTRS_BATCH or HETRS_BATCH).
 *
 * A is n x n, of which the triangle `uplo` is read, B n x r. Numbers of `ipiv` are as sytrf.cl says, CLA_VLEN apart.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V], its ints likewise; one work-item solves for one lane.
 */
#ifndef CLA_SYTRS_CL
#define CLA_SYTRS_CL

#include "laswp.h"
#include "sytrf.cl"

/* Number k of the pivots of a lower triangle, or of an upper one in reverse. */
CLA_INLINE int cla_pivot_of(int n, int upper, __global const int *ipiv, int k)
{
    const int pivot = cla_int_load(ipiv, upper ? n - 1 - k : k);
    if (!upper) return pivot;
    return pivot < 0 ? ~(n - 1 - ~pivot) : n - 1 - pivot;
}

CLA_INLINE void cla_solve_indefinite(int n, int r, int hermitian, int upper, cla_matrix A, __global const int *ipiv,
                                     cla_matrix B)
{
    if (upper) {
        A = cla_reversed(A, n, n);
        B = cla_rows_reversed(B, n);
    }
    for (int k = 0; k < n;) {
        const int pivot = cla_pivot_of(n, upper, ipiv, k), two = pivot < 0 && k + 1 < n;
        cla_swap_rows(k + two, pivot < 0 ? ~pivot : pivot, r, B);
        cla_block_of_two D;
        cla_lane inverse = cla_lane_real(0);
        if (two) D = cla_block_at(hermitian, A, k);
        else inverse = cla_lane_recip(cla_diagonal(hermitian, A, k));
        for (int j = 0; j < r; j++) {
            cla_lane x = cla_get(B, k, j), y = cla_lane_real(0);
            if (two) y = cla_get(B, k + 1, j);
            for (int i = k + 1 + two; i < n; i++) {
                cla_lane z = cla_lane_fnma(cla_get(A, i, k), x, cla_get(B, i, j));
                if (two) z = cla_lane_fnma(cla_get(A, i, k + 1), y, z);
                cla_set(B, i, j, z);
            }
            if (two) {
                cla_divide_by_block(hermitian, 0, D, &x, &y);
                cla_set(B, k + 1, j, y);
            } else x = cla_lane_mul(x, inverse);
            cla_set(B, k, j, x);
        }
        k += 1 + two;
    }
    for (int k = n - 1; k >= 0; k--) { /* rows at which blocks end */
        const int pivot = cla_pivot_of(n, upper, ipiv, k), two = pivot < 0 && k > 0;
        for (int j = 0; j < r; j++)
            for (int t = 0; t <= two; t++) {
                cla_lane x = cla_get(B, k - t, j);
                for (int i = k + 1; i < n; i++)
                    x = cla_lane_fnma(cla_mirrored(hermitian, cla_get(A, i, k - t)), cla_get(B, i, j), x);
                cla_set(B, k - t, j, x);
            }
        cla_swap_rows(k, pivot < 0 ? ~pivot : pivot, r, B);
        k -= two;
    }
}

/* `uplo` is 0 for the lower triangle, 1 for the upper one. */
CLA_INLINE void cla_sytrs(int n, int r, int uplo, cla_matrix A, __global const int *ipiv, cla_matrix B)
{
    cla_solve_indefinite(n, r, 0, uplo, A, ipiv, B);
}
CLA_INLINE void cla_hetrs(int n, int r, int uplo, cla_matrix A, __global const int *ipiv, cla_matrix B)
{
    cla_solve_indefinite(n, r, 1, uplo, A, ipiv, B);
}

/* aconj and bconj are 0: A and B are as they are */
#if defined(SYTRS_BATCH) || defined(HETRS_BATCH)
#ifdef SYTRS_BATCH
#define BATCH sytrs_batch
#define SOLVE cla_sytrs
#else
#define BATCH hetrs_batch
#define SOLVE cla_hetrs
#endif
__kernel void BATCH(long lanes, long nm, long n, long r, long uplo, CLA_OPERAND(const CLA_REAL *restrict A, a),
                    CLA_OPERAND(const int *restrict ipiv, ipiv), CLA_OPERAND(CLA_REAL *restrict B, b))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    SOLVE(n, r, uplo != 0, CLA_MATRIX(A, a, q, 0), ipiv + ipiv0 + cla_lane_place(q, ipivps), CLA_MATRIX(B, b, q, 0));
}
#endif

#endif
