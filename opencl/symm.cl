/* symm and hemm: C <- alpha A B + beta C, A symmetric or Hermitian, for one lane (pack level) and for a batch (define
 * SYMM_BATCH or HEMM_BATCH).
 *
 * A is m x m, and its lower triangle all that is read; imaginary parts on a Hermitian diagonal count as 0. B and C are
 * m x n. An upper triangle is the lower one of the transposed matrix, which for a Hermitian one is that of conjugates,
 * and a product from the right is one from the left of the transposed B and C.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane of C. ACOMMON or
 * BCOMMON, 1: A or B is one ordinary matrix for all of them, at A[a0] or B[b0].
 */
#ifndef CLA_SYMM_CL
#define CLA_SYMM_CL

#include "tile.h"

/* Element (i, j) of a matrix, of what is at (max(i, j), min(i, j)). */
CLA_INLINE cla_lane cla_reflected(int hermitian, int i, int j, cla_lane a)
{
    if (hermitian && i == j) return cla_lane_real(cla_lane_re(a));
    return hermitian && i < j ? cla_lane_conj(a) : a;
}

/* c + the square of A on its diagonal in rows p to p + CLA_TILE, times these rows of B, columns j0 to n. */
CLA_INLINE cla_tile cla_tile_multiply_reflected(cla_tile c, int hermitian, cla_matrix A, int p, int m, cla_matrix B,
                                                int j0, int n)
{
#define LOAD_A(i) \
    const int row##i = min(p + i, m - 1); \
    const cla_lane a##i = cla_reflected(hermitian, row##i, k, cla_get(A, max(row##i, k), min(row##i, k)));
#define LOAD_B(j) const cla_lane b##j = cla_get(B, k, min(j0 + j, n - 1));
#define MULTIPLY(s, i, j) c.c##i##j = cla_lane_fma(a##i, b##j, c.c##i##j);
    for (int k = p; k < min(p + CLA_TILE, m); k++) {
        CLA_DOWN(LOAD_A)
        CLA_ACROSS(LOAD_B)
        CLA_CELLS(MULTIPLY, 0)
    }
#undef LOAD_A
#undef LOAD_B
#undef MULTIPLY
    return c;
}

CLA_INLINE void cla_multiply_reflected(int hermitian, int m, int n, cla_lane alpha, cla_matrix A, cla_matrix B,
                                       cla_lane beta, cla_matrix C)
{
    const cla_matrix right = hermitian ? cla_conjugated(cla_transposed(A)) : cla_transposed(A);
    const int zero = cla_lane_is_zero(alpha);
    for (int p = 0; p < m; p += CLA_TILE)
        for (int j = 0; j < n; j += CLA_COLS) {
            const int rest = min(p + CLA_TILE, m);
            cla_tile c = cla_tile_zero();
            if (!zero) {
                c = cla_tile_multiply(c, A, p, m, B, j, n, p);
                c = cla_tile_multiply_reflected(c, hermitian, A, p, m, B, j, n);
                c = cla_tile_multiply(c, cla_from(right, 0, rest), p, m, cla_from(B, rest, 0), j, n, m - rest);
            }
            c = cla_tile_combine(alpha, c, beta, C, p, m, j, n);
            cla_tile_store(c, C, p, m, j, n);
        }
}

/* As BLAS: beta = 0 does not read C, alpha = 0 does not read A and B. C overlaps neither A nor B. */
CLA_INLINE void cla_symm(int m, int n, cla_lane alpha, cla_matrix A, cla_matrix B, cla_lane beta, cla_matrix C)
{
    cla_multiply_reflected(0, m, n, alpha, A, B, beta, C);
}

CLA_INLINE void cla_hemm(int m, int n, cla_lane alpha, cla_matrix A, cla_matrix B, cla_lane beta, cla_matrix C)
{
    cla_multiply_reflected(CLA_COMPLEX, m, n, alpha, A, B, beta, C);
}

#if defined(HEMM_BATCH) || defined(HEMM_ITEM) || defined(HEMM_TEAM)
#define HERMITIAN 1
#define KERNEL(shape) hemm_##shape
#elif defined(SYMM_BATCH) || defined(SYMM_ITEM) || defined(SYMM_TEAM)
#define HERMITIAN 0
#define KERNEL(shape) symm_##shape
#endif

#if defined(SYMM_BATCH) || defined(HEMM_BATCH)
#include "known.h"

/* cconj is 0: C is as it is */
__kernel void KERNEL(batch)(long lanes, long nm, long m, long n, CLA_SCALAR(alpha), CLA_SCALAR(beta),
                            CLA_OPERAND(const CLA_REAL *restrict A, a), CLA_OPERAND(const CLA_REAL *restrict B, b),
                            CLA_OPERAND(CLA_REAL *restrict C, c))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_multiply_reflected(HERMITIAN, m, n, CLA_VALUE(alpha), CLA_MATRIX_OF(ACOMMON, A, a, q, aconj),
                           CLA_MATRIX_OF(BCOMMON, B, b, q, bconj), CLA_VALUE(beta), CLA_MATRIX(C, c, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in numbers, ARS, ACS, BRS, BCS,
 * CRS, CCS; ACONJ and BCONJ, 1 to conjugate; ALPHA, 0 if alpha is 1, and BETA, 0 if beta is 0, else 1. Tunables:
 *
 * SYMM_ITEM  one work-item a matrix: the triangle in its registers, the columns of B and C pass by.
 * HEMM_ITEM
 *   GROUP    work-items of a work-group
 * SYMM_TEAM  one work-group for LANES matrices of a pack: the triangle goes to local memory, a work-item multiplies A
 * HEMM_TEAM  with COLUMNS columns of B, TEAM apart, that it holds in registers.
 *   LANES    matrices of a work-group, a divisor of V
 *   COLUMNS  columns of a work-item
 *   TEAM     work-items of a matrix, ceil(N / COLUMNS)
 */
#if defined(SYMM_ITEM) || defined(SYMM_TEAM) || defined(HEMM_ITEM) || defined(HEMM_TEAM)
#include "known.h"

#define A_AT(i, j) \
    cla_reflected(HERMITIAN, i, j, cla_lane_load_of(ACOMMON, ACONJ, A, 0, (i) * ARS + (j) * ACS)) /* j <= i */
#define B_AT(i, j) cla_lane_load_of(BCOMMON, BCONJ, B, 0, (i) * BRS + (j) * BCS)
#define C_AT(i, j) ((i) * CRS + (j) * CCS)
#define SCALE(c) (ALPHA ? cla_lane_scale(CLA_VALUE(alpha), c) : (c))
#define WITH_C(c, i, j) \
    (BETA ? SCALE(c) + cla_lane_scale(CLA_VALUE(beta), cla_lane_load(C, C_AT(i, j))) : SCALE(c))
#endif

#if defined(SYMM_ITEM) || defined(HEMM_ITEM)
__kernel CLA_GROUP_OF(GROUP) void KERNEL(item)(long lanes, long nm, CLA_SCALAR(alpha), CLA_SCALAR(beta),
                                               __global const CLA_REAL *restrict A, long a0, long aps,
                                               __global const CLA_REAL *restrict B, long b0, long bps,
                                               __global CLA_REAL *restrict C, long c0, long cps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + (ACOMMON ? 0 : cla_lane_place(q, aps));
    B += b0 + (BCOMMON ? 0 : cla_lane_place(q, bps));
    C += c0 + cla_lane_place(q, cps);
    cla_lane a[M][M];
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j <= i; j++) a[i][j] = A_AT(i, j);
    CLA_UNROLL for (int j = 0; j < N; j++) {
        cla_lane b[M];
        CLA_UNROLL for (int i = 0; i < M; i++) b[i] = B_AT(i, j);
        CLA_UNROLL for (int i = 0; i < M; i++) {
            cla_lane c = cla_lane_real(0);
            CLA_UNROLL for (int k = 0; k < M; k++)
                c = cla_lane_fma(cla_reflected(HERMITIAN, i, k, a[max(i, k)][min(i, k)]), b[k], c);
            cla_lane_store(C, C_AT(i, j), WITH_C(c, i, j));
        }
    }
}
#endif

#if defined(SYMM_TEAM) || defined(HEMM_TEAM)
#define AT(i, j) ((i) * ((i) + 1) / 2 + (j)) /* where element (i, j) of the triangle is in local memory */

__kernel CLA_GROUP_OF(LANES * TEAM) void KERNEL(team)(long lanes, long nm, CLA_SCALAR(alpha), CLA_SCALAR(beta),
                                                      __global const CLA_REAL *restrict A, long a0, long aps,
                                                      __global const CLA_REAL *restrict B, long b0, long bps,
                                                      __global CLA_REAL *restrict C, long c0, long cps)
{
    __local cla_lane triangle_part[AT(M, 0) * LANES];
    const int l = get_local_id(0) % LANES, t = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + (ACOMMON ? 0 : cla_lane_place(q, aps));
    B += b0 + (BCOMMON ? 0 : cla_lane_place(q, bps));
    C += c0 + cla_lane_place(q, cps);
    CLA_LOCAL cla_lane *triangle = triangle_part + l;
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j0 = 0; j0 <= i; j0 += TEAM)
            if (j0 + t <= i) triangle[AT(i, j0 + t) * LANES] = A_AT(i, j0 + t);
    cla_lane b[COLUMNS][M];
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) b[j][i] = B_AT(i, min(j * TEAM + t, N - 1));
    barrier(CLK_LOCAL_MEM_FENCE);
#if M <= 16 /* else it takes long to compile */
    CLA_UNROLL
#endif
    for (int i = 0; i < M; i++) {
        cla_lane c[COLUMNS];
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) c[j] = cla_lane_real(0);
        CLA_UNROLL for (int k = 0; k < M; k++) {
            const cla_lane a = cla_reflected(HERMITIAN, i, k, triangle[AT(max(i, k), min(i, k)) * LANES]);
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++) c[j] = cla_lane_fma(a, b[j][k], c[j]);
        }
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            if (N == COLUMNS * TEAM || j * TEAM + t < N)
                cla_lane_store(C, C_AT(i, j * TEAM + t), WITH_C(c[j], i, j * TEAM + t));
    }
}
#endif

#endif
