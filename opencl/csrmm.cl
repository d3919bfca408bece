/* csrmm: products with sparse matrices of one pattern, for one lane (pack level) and for a batch (define CSRMM_BATCH, or
 * CSRMM_ORDINARY where vectors are in ordinary arrays).
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

/* The sum of all values from `first` to `last` - 1, or of some, `step` apart, times AT(index) of what they stand before. */
#define CLA_CSR_SUM(sum, AT) \
    cla_lane sum = cla_lane_real(0); \
    for (long place = first; place < last; place += CLA_CSR_AHEAD * step) { \
        CLA_UNROLL2(CLA_CSR_AHEAD, CLA_CSR_LOAD, AT) \
        CLA_UNROLL2(CLA_CSR_AHEAD, CLA_CSR_ADD, sum) \
    }
#define CLA_CSR_LOAD(AT, u) \
    const long t##u = place + u * step; \
    cla_lane a##u = cla_lane_real(0), x##u = a##u; \
    if (t##u < last) { \
        a##u = cla_matrix_load(values, (order ? order[t##u] : t##u) * values.rs); \
        x##u = AT(indices[t##u]); \
    }
#define CLA_CSR_ADD(sum, u) sum = cla_lane_fma(a##u, x##u, sum);

/* That of column j of X. */
CLA_INLINE cla_lane cla_csr_sum(cla_matrix values, __global const int *indices, __global const int *order, long first,
                                long last, int step, cla_matrix X, int j)
{
#define CLA_CSR_AT(i) cla_get(X, i, j)
    CLA_CSR_SUM(sum, CLA_CSR_AT)
    return sum;
#undef CLA_CSR_AT
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

#ifdef CSRMM_ORDINARY
/* y <- op(A) x of TRANS, for vectors in ordinary arrays: x begins every xs numbers, and its rows are xr apart, y has no
 * gaps. A work-group has LANES matrices of a pack, a divisor of V, and MEMBERS work-items for each. Their vectors, of N
 * rows, go through local memory, and results by so many rows at a time as there are members; neighbours read along the
 * rows, or, if ALONG, along the matrices. */
#ifndef LANES
#define N 3
#define LANES 4
#define MEMBERS 4
#define ALONG 0
#endif
#ifndef TRANS
#define TRANS 0
#endif
#define GROUP (LANES * MEMBERS)
#define PITCH (LANES + 1)
#define PARTS (1 + CLA_COMPLEX)
#define IN_VECTOR(i) vectors[(i) * PITCH + l]

__kernel CLA_GROUP_OF(GROUP) void csrmm_ordinary(long nm, long m, __global const long *indptr,
                                                 __global const int *indices, __global const int *order,
                                                 CLA_VIEW(const CLA_REAL *data, v), __global const CLA_REAL *restrict x,
                                                 long x0, long xs, long xr, __global CLA_REAL *restrict y)
{
    __local cla_lane vectors[N * PITCH], sums[MEMBERS * PITCH];
    const int t = get_local_id(0), l = t % LANES, member = t / LANES;
    const long q0 = get_group_id(0) * (long)LANES;
    const cla_matrix values = CLA_MATRIX(data, v, q0 + l, TRANS == 2);
    for (int e = t; e < N * LANES; e += GROUP) {
        const int v = ALONG ? e % LANES : e / N, i = ALONG ? e / LANES : e % N;
        vectors[i * PITCH + v] = cla_lane_load_apart(x, x0 + min(q0 + v, nm - 1) * xs + i * xr, 1);
    }
    for (long row0 = 0; row0 < m; row0 += MEMBERS) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (row0 + member < m) {
            const long first = indptr[row0 + member], last = indptr[row0 + member + 1];
            const int step = 1;
            CLA_CSR_SUM(sum, IN_VECTOR)
            sums[member * PITCH + l] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const int v = t / MEMBERS, r = t % MEMBERS;
        if (row0 + r < m && q0 + v < nm)
            cla_lane_store_apart(y, ((q0 + v) * m + row0 + r) * PARTS, 1, sums[r * PITCH + v]);
    }
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
