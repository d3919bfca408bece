/* gels: B <- inv(op(A)) B in the sense of least squares, or of the smallest norm, for one lane (pack level) and for a
 * batch (define GELS_BATCH).
 *
 * A is m x n, m >= n, and becomes what geqrf leaves, of the scaled matrix where its norm was tiny or huge; trans is 0
 * for A, 1 for its transpose, 2 for the conjugated one. B is m x r. For 0 its first n rows become the solution, and the
 * sum of the squares of what is below is that of the residual; for the others it has n rows, and m of the solution.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item solves for one lane.
 */
#ifndef CLA_GELS_CL
#define CLA_GELS_CL

#include "geqrf.cl"
#include "ormqr.cl"

/* What keeps the norms of a matrix from overflow and underflow, of its largest |re| + |im|: a power of two, which is not
 * 1 where that is tiny or huge. */
CLA_INLINE CLA_REAL cla_scale_to_range(CLA_REAL largest)
{
    const int single = sizeof(CLA_REAL) == 4;
    const CLA_REAL huge = ldexp((CLA_REAL)1, single ? 103 : 970), step = ldexp((CLA_REAL)1, single ? 46 : 104);
    return largest > huge ? 1 / step : largest > 0 && largest < 1 / huge ? step : 1;
}

CLA_INLINE CLA_REAL cla_scale_of_matrix(int m, int n, cla_matrix A)
{
    CLA_REAL largest = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) largest = fmax(largest, cla_lane_abs1(cla_get(A, i, j)));
    return cla_scale_to_range(largest);
}

/* A <- factor A */
CLA_INLINE void cla_multiply_by(int m, int n, cla_matrix A, CLA_REAL factor)
{
    if (factor == 1) return;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) cla_set(A, i, j, cla_get(A, i, j) * factor);
}

/* A <- 0 */
CLA_INLINE void cla_clear(int m, int n, cla_matrix A)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) cla_set(A, i, j, cla_lane_real(0));
}

/* B <- inv(L) B for the lower triangle of L, n x n, with a real diagonal, which is divided by: reciprocals might
 * overflow. */
CLA_INLINE void cla_substitute_divided(int n, int r, cla_matrix L, cla_matrix B)
{
    for (int j = 0; j < r; j++)
        for (int i = 0; i < n; i++) {
            cla_lane x = cla_get(B, i, j);
            for (int p = 0; p < i; p++) x = cla_lane_fnma(cla_get(L, i, p), cla_get(B, p, j), x);
            cla_set(B, i, j, x / cla_lane_re(cla_get(L, i, i)));
        }
}

/* tau: room for n numbers. Returns 0 or 1 + the index of the first zero on the diagonal of R: B is free then. */
CLA_INLINE int cla_gels(int m, int n, int r, int trans, cla_matrix A, cla_matrix B, cla_matrix tau)
{
    if (trans == 1) A = cla_conjugated(A);
    const CLA_REAL size = cla_scale_of_matrix(m, n, A), size_of_b = cla_scale_of_matrix(trans ? n : m, r, B);
    cla_multiply_by(m, n, A, size);
    cla_multiply_by(trans ? n : m, r, B, size_of_b);
    cla_geqrf(m, n, A, tau);
    int info = 0;
    for (int k = n; k > 0; k--)
        if (cla_lane_is_zero(cla_get(A, k - 1, k - 1))) info = k;
    if (trans) {
        cla_substitute_divided(n, r, cla_conjugated(cla_transposed(A)), B);
        cla_clear(m - n, r, cla_from(B, n, 0));
        cla_ormqr(m, r, n, 0, A, tau, B);
        cla_multiply_by(m, r, B, size / size_of_b);
    } else {
        cla_ormqr(m, r, n, 1, A, tau, B);
        cla_substitute_divided(n, r, cla_reversed(A, n, n), cla_rows_reversed(B, n));
        cla_multiply_by(n, r, B, size / size_of_b);
        cla_multiply_by(m - n, r, cla_from(B, n, 0), 1 / size_of_b);
    }
    return info;
}

#ifdef GELS_BATCH
/* bconj and tauconj are 0; info[q] for the first nm lanes, those that hold a matrix */
__kernel void gels_batch(long lanes, long nm, long r, long m, long n, long trans, CLA_OPERAND(CLA_REAL *A, a),
                         CLA_OPERAND(CLA_REAL *B, b), CLA_OPERAND(CLA_REAL *tau, tau), __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int first = cla_gels(m, n, r, trans, CLA_MATRIX(A, a, q, aconj), CLA_MATRIX(B, b, q, 0),
                               CLA_MATRIX(tau, tau, q, 0));
    if (q < nm) info[q] = first;
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N, M >= N, R and, in numbers, ARS, ACS, BRS,
 * BCS; ACONJ, 1 if memory holds the conjugates of A; TRANS as above. Nothing is written to tau. Tunables:
 *
 * GELS_ITEM  one work-item a matrix: A in its registers, M N + N + M lanes, the columns of B pass by
 *   GROUP    work-items of a work-group
 */
#ifdef GELS_ITEM
#include "known.h"

#define CONJ (ACONJ != (TRANS == 1))
#define GIVEN (TRANS ? N : M) /* rows of B that are read */
#define B_AT(i, j) ((i) * BRS + (j) * BCS)
#define AT(i, j) a[i][j]
#define SET(i, j, x) AT(i, j) = x;
#define EACH_ROW(F, k, s) CLA_UNROLL for (int i = k + 1; i < M; i++) F(k, s, i)
#define EACH_ROW_OF(F, k, s, j) CLA_UNROLL for (int i = k + 1; i < M; i++) F(k, s, j, i)

/* b <- b - t v (v^H b) for reflector k; t is its tau, or the conjugate */
#define REFLECT(k, t) { \
        cla_lane w = b[k]; \
        CLA_UNROLL for (int i = k + 1; i < M; i++) w = cla_lane_fma(cla_lane_conj(AT(i, k)), b[i], w); \
        w = cla_lane_mul(t, w); \
        b[k] = b[k] - w; \
        CLA_UNROLL for (int i = k + 1; i < M; i++) b[i] = cla_lane_fnma(AT(i, k), w, b[i]); \
    }

__kernel CLA_GROUP_OF(GROUP) void gels_item(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                            __global CLA_REAL *B, long b0, long bps,
                                            __global CLA_REAL *room, long tau0, long taups, __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    cla_lane a[M][N], scales[N];
    CLA_REAL largest = 0, largest_of_b = 0;
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) {
            AT(i, j) = cla_lane_load_as(CONJ, A, i * ARS + j * ACS);
            largest = fmax(largest, cla_lane_abs1(AT(i, j)));
        }
    for (int j = 0; j < R; j++)
        CLA_UNROLL for (int i = 0; i < GIVEN; i++)
            largest_of_b = fmax(largest_of_b, cla_lane_abs1(cla_lane_load(B, B_AT(i, j))));
    const CLA_REAL size = cla_scale_to_range(largest), size_of_b = cla_scale_to_range(largest_of_b);
    const CLA_REAL back = size / size_of_b;
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) AT(i, j) = AT(i, j) * size;
    int bad = 0;
    CLA_UNROLL for (int k = 0; k < N; k++) {
        cla_lane tau;
        CLA_REFLECTOR(k, k)
        scales[k] = tau;
        CLA_UNROLL for (int j = k + 1; j < N; j++) CLA_REFLECT(k, k, cla_lane_conj(tau), j)
        if (bad == 0 && cla_lane_re(AT(k, k)) == 0) bad = k + 1;
    }
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) cla_lane_store_as(CONJ, A, i * ARS + j * ACS, AT(i, j));
    for (int j = 0; j < R; j++) {
        cla_lane b[M];
        CLA_UNROLL for (int i = 0; i < M; i++)
            b[i] = i < GIVEN ? cla_lane_load(B, B_AT(i, j)) * size_of_b : cla_lane_real(0);
        if (TRANS) {
            CLA_UNROLL for (int k = 0; k < N; k++) {
                b[k] = b[k] / cla_lane_re(AT(k, k));
                CLA_UNROLL for (int i = k + 1; i < N; i++) b[i] = cla_lane_fnma(cla_lane_conj(AT(k, i)), b[k], b[i]);
            }
            CLA_UNROLL for (int k = N - 1; k >= 0; k--) REFLECT(k, scales[k])
        } else {
            CLA_UNROLL for (int k = 0; k < N; k++) REFLECT(k, cla_lane_conj(scales[k]))
            CLA_UNROLL for (int k = N - 1; k >= 0; k--) {
                b[k] = b[k] / cla_lane_re(AT(k, k));
                CLA_UNROLL for (int i = 0; i < k; i++) b[i] = cla_lane_fnma(AT(i, k), b[k], b[i]);
            }
        }
        CLA_UNROLL for (int i = 0; i < M; i++)
            cla_lane_store(B, B_AT(i, j), TRANS || i < N ? b[i] * back : b[i] / size_of_b);
    }
    if (q < nm) info[q] = bad;
}
#endif

#endif
