/* geev: A V = V diag(w) for one lane (pack level) and for a batch (define GEEV_BATCH).
 *
 * A is n x n and overwritten, w n complex numbers, V n x n and complex, Z n x n of the type of A, where Schur vectors have
 * room. LAPACK's way: A is permuted and scaled, made a Hessenberg matrix by reflections and triangular by the QR
 * algorithm, with two shifts at a time for real matrices, which keep blocks of two, and one for complex ones.
 * Eigenvectors are found by substitution.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item does one lane.
 */
#ifndef CLA_GEEV_CL
#define CLA_GEEV_CL

#include "balance.h"
#include "eigenvectors.h"

#define CLA_GEEV_EXPONENT (sizeof(CLA_REAL) == 8 ? 300 : 30) /* of the largest number of a scaled matrix */
#define CLA_GEEV_TRIES 30                                    /* sweeps for each eigenvalue, as LAPACK has */

/* w is a matrix n x 1. Returns 0; or n for a matrix with NaN or infinities, or whose iteration did not end: its results
 * are NaN. */
CLA_INLINE int cla_geev(int n, int vectors, cla_matrix A, cla_matrix w, cla_matrix V, cla_matrix Z)
{
    CLA_REAL largest = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) largest = cla_larger(largest, cla_get(A, i, j));
    int failed = !(largest < INFINITY), lo = 0, hi = n - 1;
    const int power = failed ? 0 : cla_power(largest, CLA_GEEV_EXPONENT);
    for (int i = 0; !failed && i < n; i++)
        for (int j = 0; j < n; j++) cla_set(A, i, j, cla_scaled(cla_get(A, i, j), power));
    if (!failed) {
        cla_balance(n, A, V, &lo, &hi);
        cla_hessenberg(n, vectors, A, Z, w);
        int tries = 0, left = CLA_GEEV_TRIES * max(n, 10);
        for (int i = n - 1; i >= 0 && !failed;) {
            int top = i;
            while (top > 0 && !cla_negligible(A, top, i)) top--;
            if (top > 0) cla_set(A, top, top - 1, cla_lane_real(0));
            if (top >= i - CLA_FRANCIS_PAIR) {
                i = top - 1;
                tries = 0;
            } else {
                failed = left-- == 0;
                tries++;
                if (!failed) cla_francis(n, vectors, top, i, tries, A, Z);
            }
        }
    }
    if (!failed) {
#if !CLA_COMPLEX
        for (int k = 0; k < n - 1; k++)
            if (cla_get(A, k + 1, k) != 0) cla_standardise(n, k, vectors, A, Z);
#endif
        for (int i = 0; i < n; i++) {
            cla_complex x = cla_complex_of_lane(cla_get(A, i, i));
#if !CLA_COMPLEX
            const CLA_REAL below = i < n - 1 ? cla_get(A, i + 1, i) : 0, before = i > 0 ? cla_get(A, i, i - 1) : 0;
            if (below != 0) x.y = sqrt(fabs(cla_get(A, i, i + 1))) * sqrt(fabs(below));
            if (before != 0) x.y = CLA_MINUS(sqrt(fabs(cla_get(A, i - 1, i)))) * sqrt(fabs(before));
#endif
            cla_complex_set(w, i, 0, x);
        }
        if (vectors) {
            cla_unbalance(n, Z, V, lo, hi);
            for (int j = 0; j < n; j++) cla_eigenvector(n, j, cla_complex_get(w, j, 0), A, V);
            for (int j = 0; j < n; j++) cla_back(n, j, CLA_COMPLEX || cla_complex_get(w, j, 0).y != 0, A, Z, V);
        }
    }
    for (int i = 0; i < n; i++) {
        const cla_complex x = cla_complex_get(w, i, 0), nothing = cla_complex_of(NAN, NAN);
        cla_complex_set(w, i, 0, failed ? nothing : cla_complex_of(ldexp(x.x, CLA_MINUS(power)), ldexp(x.y, CLA_MINUS(power))));
        for (int j = 0; failed && vectors && j < n; j++) cla_complex_set(V, i, j, nothing);
    }
    return failed ? n : 0;
}

#ifdef GEEV_BATCH
/* compute_v is 0 where V is wanted; info[q] for the first nm lanes, those that hold a matrix */
__kernel void geev_batch(long lanes, long nm, long n, long compute_v, CLA_OPERAND(CLA_REAL *A, a),
                         CLA_OPERAND(CLA_REAL *w, w), CLA_OPERAND(CLA_REAL *V, v), CLA_OPERAND(CLA_REAL *Z, z),
                         __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int failed = cla_geev(n, compute_v == 0, CLA_MATRIX(A, a, q, 0), CLA_MATRIX(w, w, q, 0), CLA_MATRIX(V, v, q, 0),
                                CLA_MATRIX(Z, z, q, 0));
    if (q < nm) info[q] = failed;
}
#endif
#endif
