/* csrmm: products with sparse matrices of one pattern, for one lane (pack level) and for a batch (define CSRMM_BATCH).
 *
 * The values of a matrix are nnz x 1, row by row: those of row i are numbers indptr[i] to indptr[i + 1] - 1, in the
 * columns that `indices` has for them. With `order`, that is a list of places in `values`: transposes need no others.
 */
#ifndef CLA_CSRMM_CL
#define CLA_CSRMM_CL

#include "unroll.h"

#ifndef CLA_CSR_AHEAD
#define CLA_CSR_AHEAD 4 /* numbers of a row that are on their way at a time */
#endif

/* The sum of all values from `first` to `last` - 1, or of some, `step` apart, times what they stand before in column j
 * of X. */
CLA_INLINE cla_lane cla_csr_sum(cla_matrix values, __global const int *indices, __global const int *order, long first,
                                long last, int step, cla_matrix X, int j)
{
    cla_lane sum = cla_lane_real(0);
    for (long place = first; place < last; place += CLA_CSR_AHEAD * step) {
#define CLA_CSR_LOAD(u) \
    const long t##u = place + u * step; \
    cla_lane a##u = cla_lane_real(0), x##u = a##u; \
    if (t##u < last) { \
        a##u = cla_matrix_load(values, (order ? order[t##u] : t##u) * values.rs); \
        x##u = cla_get(X, indices[t##u], j); \
    }
#define CLA_CSR_ADD(u) sum = cla_lane_fma(a##u, x##u, sum);
        CLA_UNROLL1(CLA_CSR_AHEAD, CLA_CSR_LOAD)
        CLA_UNROLL1(CLA_CSR_AHEAD, CLA_CSR_ADD)
#undef CLA_CSR_LOAD
#undef CLA_CSR_ADD
    }
    return sum;
}

/* Y <- alpha A X + beta Y in the rows first, first + step, ... of m: 0 and 1 for all. Y is not read where beta is zero,
 * nor A and X where alpha is. `order` may be 0. */
CLA_INLINE void cla_csrmm(int m, int nrhs, cla_matrix values, __global const long *indptr, __global const int *indices,
                          __global const int *order, cla_lane alpha, cla_lane beta, cla_matrix X, cla_matrix Y,
                          int first, int step)
{
    for (int i = first; i < m; i += step)
        for (int j = 0; j < nrhs; j++) {
            cla_lane y = cla_lane_real(0);
            if (!cla_lane_is_zero(alpha))
                y = cla_lane_scale(alpha, cla_csr_sum(values, indices, order, indptr[i], indptr[i + 1], 1, X, j));
            if (!cla_lane_is_zero(beta)) y = y + cla_lane_scale(beta, cla_get(Y, i, j));
            cla_set(Y, i, j, y);
        }
}
#endif

#ifdef CSRMM_BATCH
#ifndef TRANS
#define TRANS 0
#endif
#ifndef SCALED
#define SCALED 0
#endif
/* With TRANS 1 the pattern is that of the transposes, with 2 of the conjugate ones, and `order` is used. With SCALED 1
 * alpha and beta of each lane are 2 x 1. Dimension 1 of the range shares out the rows. */
__kernel void csrmm_batch(long lanes, long m, long nrhs, __global const long *indptr, __global const int *indices,
                          __global const int *order, CLA_VIEW(const CLA_REAL *scalars, s),
                          CLA_VIEW(const CLA_REAL *values, v), CLA_VIEW(const CLA_REAL *x, x),
                          CLA_VIEW(CLA_REAL *y, y))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const cla_matrix A = CLA_MATRIX(values, v, q, TRANS == 2);
    const cla_matrix X = CLA_MATRIX(x, x, q, 0);
    const cla_matrix Y = CLA_MATRIX(y, y, q, 0);
    cla_lane alpha = cla_lane_real(1), beta = cla_lane_real(0);
#if SCALED
    const cla_matrix S = CLA_MATRIX(scalars, s, q, 0);
    alpha = cla_get(S, 0, 0);
    beta = cla_get(S, 1, 0);
#endif
    cla_csrmm(m, nrhs, A, indptr, indices, TRANS ? order : 0, alpha, beta, X, Y, get_global_id(1), get_global_size(1));
}
#endif

#ifdef TAKE_ROWS
/* Row k of Y, one column, <- row places[k] of X, or 0 where that is -1, and 1 where it is -2 */
__kernel void take_rows(long lanes, long rows, __global const int *places, CLA_VIEW(const CLA_REAL *x, x),
                        CLA_VIEW(CLA_REAL *y, y))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const cla_matrix X = CLA_MATRIX(x, x, q, 0);
    const cla_matrix Y = CLA_MATRIX(y, y, q, 0);
    for (int k = get_global_id(1); k < rows; k += get_global_size(1)) {
        const int place = places[k];
        cla_set(Y, k, 0, place < 0 ? cla_lane_real(place == -2) : cla_get(X, place, 0));
    }
}
#endif
