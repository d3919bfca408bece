/* isai: rows of incomplete sparse approximate inverses from the solutions of small systems; see `compactla.krylov`. */
#include "lane.h"

/* Rows rows[0] to rows[count - 1] of the inverses <- columns of k numbers, one for each row, of which `found` has the
 * info of its system. Where that is singular, it is the reciprocal of the diagonal, or one if that is zero, and the
 * least of such rows, counted from one, comes into `least`. */
__kernel void enter_rows(long lanes, long count, long k, __global const int *rows, __global const long *indptr,
                         __global const int *indices, __global const int *diagonal, __global const int *found,
                         __global int *least, CLA_VIEW(const CLA_REAL *solved, s), CLA_VIEW(const CLA_REAL *values, v),
                         CLA_VIEW(CLA_REAL *inverses, y))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const cla_matrix X = CLA_MATRIX(solved, s, q, 0);
    const cla_matrix A = CLA_MATRIX(values, v, q, 0);
    const cla_matrix Y = CLA_MATRIX(inverses, y, q, 0);
    for (int c = get_global_id(1); c < count; c += get_global_size(1)) {
        const int i = rows[c], singular = found[cla_lane_place(q, count * CLA_VLEN) + (long)c * CLA_VLEN] != 0;
        if (singular) atomic_min(least + q, i + 1);
        const cla_lane pivot = cla_get(A, diagonal[i], 0);
        const cla_lane inverse = cla_lane_is_zero(pivot) ? cla_lane_real(1) : cla_lane_recip(pivot);
        for (long t = indptr[i]; t < indptr[i + 1]; t++) {
            const cla_lane other = t == diagonal[i] ? inverse : cla_lane_real(0);
            cla_set(Y, t, 0, singular ? other : cla_get(X, c * k + t - indptr[i], 0));
        }
    }
}
