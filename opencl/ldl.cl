/* The factors of sytrf and hetrf made into matrices: L, or U, with all interchanges, and D, for one lane (pack level) and for
 * a batch (define LDL_FACTORS).
 *
 * A is n x n, and has what sytrf left in the triangle `uplo`: it becomes L or U, whole, and D the blocks, in whole matrices
 * too; rows perm of A would be a triangle. Number k of `ipiv` and of `perm` are of ints that are CLA_VLEN apart.
 */
#ifndef CLA_LDL_CL
#define CLA_LDL_CL

#include "sytrs.cl"

CLA_INLINE void cla_swap_ints(int i, int k, __global int *p)
{
    const int x = cla_int_load(p, i);
    cla_int_store(p, i, cla_int_load(p, k));
    cla_int_store(p, k, x);
}

CLA_INLINE void cla_ldl_factors(int n, int hermitian, int upper, cla_matrix A, __global const int *ipiv, cla_matrix D,
                                __global int *perm)
{
    if (upper) {
        A = cla_reversed(A, n, n);
        D = cla_reversed(D, n, n);
    }
    for (int i = 0; i < n; i++) cla_int_store(perm, i, i);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++) cla_set(D, i, k, cla_lane_real(0));
    for (int k = 0, two; k < n; k += 1 + two) {
        const int pivot = cla_pivot_of(n, upper, ipiv, k), place = pivot < 0 ? ~pivot : pivot;
        two = pivot < 0 && k + 1 < n;
        for (int t = k; t <= k + two; t++) {
            cla_set(D, t, t, cla_diagonal(hermitian, A, t));
            cla_set(A, t, t, cla_lane_real(1));
            for (int i = 0; i < t; i++) cla_set(A, i, t, cla_lane_real(0));
        }
        if (two) {
            const cla_lane x = cla_get(A, k + 1, k);
            cla_set(D, k + 1, k, x);
            cla_set(D, k, k + 1, cla_mirrored(hermitian, x));
            cla_set(A, k + 1, k, cla_lane_real(0));
        }
        cla_swap_ints(upper ? n - 1 - k - two : k + two, upper ? n - 1 - place : place, perm);
    }
    for (int k = n - 1; k >= 0; k--) {
        const int pivot = cla_pivot_of(n, upper, ipiv, k), two = pivot < 0 && k > 0, first = k - two;
        cla_swap_rows(k, pivot < 0 ? ~pivot : pivot, n - first, cla_from(A, 0, first));
        k = first;
    }
}

#ifdef LDL_FACTORS
__kernel void ldl_factors(long nm, long n, long hermitian, long upper, CLA_VIEW(CLA_REAL *A, a),
                          CLA_VIEW(const int *ipiv, ipiv), CLA_VIEW(CLA_REAL *D, d), CLA_VIEW(int *perm, perm))
{
    const long q = get_global_id(0);
    if (q >= nm) return;
    cla_ldl_factors(n, hermitian != 0, upper != 0, cla_matrix_of_packs(A, q, a0, aps, ars, acs, 0),
                    ipiv + ipiv0 + cla_lane_place(q, ipivps), cla_matrix_of_packs(D, q, d0, dps, drs, dcs, 0),
                    perm + perm0 + cla_lane_place(q, permps));
}
#endif

#endif
