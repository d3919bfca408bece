/* Kronecker products: Y <- alpha (A x B x C) X + beta Y for one lane (pack level), and for batches.
 *
 * Y(i, j, k) <- alpha sum A(i, l) B(j, m) C(k, n) X(l, m, n) + beta Y(i, j, k)
 */
#ifndef CLA_KRON_CL
#define CLA_KRON_CL

#include "gemm.cl"

/* Two factors, ma x na and mb x nb: X is na x nb, Y ma x mb, W ma x nb, which is written to. As for cla_gemm, beta = 0 does
 * not read Y, and alpha = 0 reads nothing else; Y and W overlap nothing. */
CLA_INLINE void cla_kron2(int ma, int na, int mb, int nb, cla_lane alpha, cla_matrix A, cla_matrix B, cla_matrix X,
                          cla_lane beta, cla_matrix Y, cla_matrix W)
{
    const cla_lane zero = cla_lane_real(0);
    cla_gemm(ma, nb, na, cla_lane_is_zero(alpha) ? zero : cla_lane_real(1), A, X, zero, W);
    cla_gemm(ma, mb, nb, alpha, W, cla_transposed(B), beta, Y);
}

/* Row i of a matrix as a matrix with rows of n */
CLA_INLINE cla_matrix cla_row_as_matrix(cla_matrix X, int i, int n)
{
    X = cla_from(X, i, 0);
    X.rs = n * X.cs;
    return X;
}

/* Three factors: X is na x (nb nc), Y ma x (mb mc), W ma x (nb nc), Z mb x nc; W and Z are written to. */
CLA_INLINE void cla_kron3(int ma, int na, int mb, int nb, int mc, int nc, cla_lane alpha, cla_matrix A, cla_matrix B,
                          cla_matrix C, cla_matrix X, cla_lane beta, cla_matrix Y, cla_matrix W, cla_matrix Z)
{
    const cla_lane zero = cla_lane_real(0);
    cla_gemm(ma, nb * nc, na, cla_lane_is_zero(alpha) ? zero : cla_lane_real(1), A, X, zero, W);
    for (int i = 0; i < ma; i++)
        cla_kron2(mb, nb, mc, nc, alpha, B, C, cla_row_as_matrix(W, i, nc), beta, cla_row_as_matrix(Y, i, mc), Z);
}

/* A batch of any sizes, along one axis: Y(.., i, ..) <- alpha sum A(i, l) X(.., l, ..) + beta Y(.., i, ..), one work-item
 * for what lies along that axis. Define KRON_AXIS and AXES, how many axes there are beside it. Strides count CLA_REAL. */
#ifdef KRON_AXIS
#ifndef AXES
#define AXES 2
#endif
#define ROWS 4 /* of A at a time */
#define OTHER_AXIS(k) , long size##k, long x_stride##k, long y_stride##k
#define GO_ALONG(k) \
    X += r % size##k * x_stride##k; \
    Y += r % size##k * y_stride##k; \
    r /= size##k;

/* Of xv matrices each that are side by side, 1 in ordinary arrays, the next are xstep further. along, 1: neighbours in
 * memory are items. A is m x n; with n = 0, Y <- beta Y. */
__kernel void kron_axis(long pencils, long nm, long along, long m, long n, CLA_SCALAR(alpha), CLA_SCALAR(beta),
                        __global const CLA_REAL *A, long a0, long av, long astep, long ai, long al, long aconj,
                        __global const CLA_REAL *X, long x0, long xv, long xstep, long xl,
                        __global CLA_REAL *Y, long y0, long yv, long ystep, long yi CLA_UNROLL1(AXES, OTHER_AXIS))
{
    const long e = get_global_id(0), others = pencils / nm;
    if (e >= pencils) return;
    const long q = along ? e % nm : e / others;
    long r = along ? e / nm : e % others;
    A += a0 + q / av * astep + q % av;
    X += x0 + q / xv * xstep + q % xv;
    Y += y0 + q / yv * ystep + q % yv;
    CLA_UNROLL1(AXES, GO_ALONG)
    const cla_lane factor = CLA_VALUE(beta);
    for (long i0 = 0; i0 < m; i0 += ROWS) {
        cla_lane y[ROWS];
        CLA_UNROLL for (int i = 0; i < ROWS; i++) y[i] = cla_lane_real(0);
        for (long l = 0; l < n; l++) {
            const cla_lane x = cla_lane_load_apart(X, l * xl, xv);
            CLA_UNROLL for (int i = 0; i < ROWS; i++) {
                const cla_lane a = cla_lane_load_apart(A, min(i0 + i, m - 1) * ai + l * al, av);
                y[i] = cla_lane_fma(aconj ? cla_lane_conj(a) : a, x, y[i]);
            }
        }
        CLA_UNROLL for (int i = 0; i < ROWS; i++)
            if (i0 + i < m) {
                const long place = (i0 + i) * yi;
                y[i] = cla_lane_scale(CLA_VALUE(alpha), y[i]);
                if (!cla_lane_is_zero(factor)) y[i] += cla_lane_scale(factor, cla_lane_load_apart(Y, place, yv));
                cla_lane_store_apart(Y, place, yv, y[i]);
            }
    }
}
#undef ROWS
#endif

/* X <- X / D for nm items of so many numbers; items and numbers are as far apart as these strides say. */
#ifdef KRON_DIVIDE
__kernel void kron_divide(long nm, long count, long along, __global CLA_REAL *X, long x0, long xv, long xstep, long xr,
                          __global const CLA_REAL *D, long d0, long dv, long dstep, long dr)
{
    const long e = get_global_id(0);
    if (e >= nm * count) return;
    const long q = along ? e % nm : e / count, r = along ? e / nm : e % count;
    X += x0 + q / xv * xstep + q % xv + r * xr;
    D += d0 + q / dv * dstep + q % dv + r * dr;
    const cla_lane reciprocal = cla_lane_recip(cla_lane_load_apart(D, 0, dv));
    cla_lane_store_apart(X, 0, xv, cla_lane_mul(reciprocal, cla_lane_load_apart(X, 0, xv)));
}
#endif

#endif
