/* csrilu, csrlu: LU factors of sparse matrices of one pattern, without interchanges, for the lane of a team (pack
 * level; team.h) and for a batch (define CSRILU_BATCH). They are incomplete where the pattern leaves out
 * fill.
 *
 * Factors, L and U with the reciprocals of its pivots, are nnz x 1, as values of csrmm.cl, with columns in ascending
 * order; `diagonal` has the places of the diagonal. `places` says where each of them is among the values of A, which
 * are a column too, or that it is zero there, by -1; without it the values are those of the same pattern.
 */
#ifndef CLA_CSRILU_CL
#define CLA_CSRILU_CL

#include "team.h"

CLA_INLINE cla_lane cla_csr_given(cla_matrix values, __global const int *places, long t)
{
    const long place = places ? places[t] : t;
    return place < 0 ? cla_lane_real(0) : cla_matrix_load(values, place * values.rs);
}

/* `places` may be 0; `row` is room, n x 1. Returns 0 or 1 + the index of the first pivot that is exactly zero, which
 * counts as one. */
CLA_INLINE int cla_csrlu(int n, cla_matrix values, __global const long *indptr, __global const int *indices,
                         __global const int *diagonal, __global const int *places, cla_matrix row, cla_matrix factors)
{
    const int member = cla_team_member();
    int info = 0;
    for (int i = 0; i < n; i++) {
        const long first = indptr[i], middle = diagonal[i], last = indptr[i + 1];
        for (long t = first + member; t < last; t += CLA_TEAM)
            cla_set(row, indices[t], 0, cla_csr_given(values, places, t));
        cla_team_sync();
        for (long t = first; t < middle; t++) {
            const int k = indices[t];
            const long pivot = diagonal[k], end = indptr[k + 1];
            const cla_lane inverse = cla_matrix_load(factors, pivot * factors.rs);
            const cla_lane multiple = cla_lane_mul(cla_get(row, k, 0), inverse);
            if (member == 0) cla_matrix_store(factors, t * factors.rs, multiple);
            for (long s = pivot + 1 + member; s < end; s += CLA_TEAM) { /* between its entries it is not read */
                const cla_lane above = cla_matrix_load(factors, s * factors.rs);
                cla_set(row, indices[s], 0, cla_lane_fnma(multiple, above, cla_get(row, indices[s], 0)));
            }
            cla_team_sync();
        }
        const cla_lane pivot = cla_get(row, i, 0);
        const int zero = cla_lane_is_zero(pivot);
        if (zero && info == 0) info = i + 1;
        if (member == 0)
            cla_matrix_store(factors, middle * factors.rs, zero ? cla_lane_real(1) : cla_lane_recip(pivot));
        for (long t = middle + 1 + member; t < last; t += CLA_TEAM)
            cla_matrix_store(factors, t * factors.rs, cla_get(row, indices[t], 0));
        cla_team_sync();
    }
    return info;
}

/* Likewise, of values of the same pattern. */
CLA_INLINE int cla_csrilu(int n, cla_matrix values, __global const long *indptr, __global const int *indices,
                          __global const int *diagonal, cla_matrix row, cla_matrix factors)
{
    return cla_csrlu(n, values, indptr, indices, diagonal, 0, row, factors);
}
#endif

#ifdef CSRILU_BATCH
/* Work-groups take the lanes, a multiple of CLA_TEAM_LANES, in turns; `work` has a row for each lane of each group. */
__kernel __attribute__((reqd_work_group_size(CLA_TEAM_LANES, CLA_TEAM, 1)))
void csrilu_batch(long lanes, long n, __global const long *indptr, __global const int *indices,
                  __global const int *diagonal, __global const int *places, __global const CLA_REAL *values, long v0,
                  long vps, long vrs, long vcs, __global CLA_REAL *factors, long f0, long fps, long frs, long fcs,
                  __global int *info, __global CLA_REAL *work)
{
    const int step = CLA_TEAM_LANES * CLA_PARTS;
    cla_matrix row = cla_matrix_at(work + get_group_id(0) * n * step + get_local_id(0), step, step);
    row.im = CLA_TEAM_LANES;
    for (long q = get_global_id(0); q < lanes; q += get_global_size(0)) {
        const cla_matrix A = CLA_MATRIX(values, v, q, 0);
        const cla_matrix F = CLA_MATRIX(factors, f, q, 0);
        const int first_zero = cla_csrlu(n, A, indptr, indices, diagonal, places, row, F);
        if (cla_team_member() == 0) info[q] = first_zero;
    }
}
#endif
