/* trmm: B <- alpha A B, A lower triangular, for one lane (pack level) and for a batch (define TRMM_BATCH).
 *
 * A is m x m, B m x n. An upper triangle is the lower one of the transposed or of the reversed matrix, and a product
 * from the right is one from the left of the transposed B: every case of trmm is this one with other strides.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane of B. ACOMMON, 1: A is
 * one ordinary matrix for all of them, at A[a0].
 */
#ifndef CLA_TRMM_CL
#define CLA_TRMM_CL

#include "tile.h"

/* c + the triangle of A in rows p to p + CLA_TILE, times these rows of B, columns j0 to n. */
CLA_INLINE cla_tile cla_tile_multiply_lower(cla_tile c, int diag, cla_matrix A, int p, int m, cla_matrix B, int j0,
                                            int n)
{
#define LOAD_A(i) const cla_lane a##i = p + i < k + unit ? cla_lane_real(0) : cla_get(A, min(p + i, m - 1), k);
#define LOAD_B(j) const cla_lane b##j = cla_get(B, k, min(j0 + j, n - 1));
#define MULTIPLY(s, i, j) \
    if (unit && p + i == k) c.c##i##j += b##j; \
    else if (p + i >= k) c.c##i##j = cla_lane_fma(a##i, b##j, c.c##i##j);
    const int unit = diag == CLA_UNIT;
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

/* As BLAS: alpha = 0 reads neither A nor B. What is above A's diagonal is never read. The last rows come first, which
 * no others wait for. */
CLA_INLINE void cla_trmm(int m, int n, int diag, cla_lane alpha, cla_matrix A, cla_matrix B)
{
    const int zero = cla_lane_is_zero(alpha);
    for (int p = (m - 1) / CLA_TILE * CLA_TILE; p >= 0; p -= CLA_TILE)
        for (int j = 0; j < n; j += CLA_COLS) {
            cla_tile c = cla_tile_zero();
            if (!zero) {
                c = cla_tile_multiply(c, A, p, m, B, j, n, p);
                c = cla_tile_multiply_lower(c, diag, A, p, m, B, j, n);
                c = cla_tile_combine(alpha, c, cla_lane_real(0), B, p, m, j, n);
            }
            cla_tile_store(c, B, p, m, j, n);
        }
}

#ifdef TRMM_BATCH
#include "known.h"

/* bconj is 0: B is as it is */
__kernel void trmm_batch(long lanes, long nm, long m, long n, long diag, CLA_SCALAR(alpha),
                         CLA_OPERAND(const CLA_REAL *restrict A, a), CLA_OPERAND(CLA_REAL *restrict B, b))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_trmm(m, n, diag, CLA_VALUE(alpha), CLA_MATRIX_OF(ACOMMON, A, a, q, aconj), CLA_MATRIX(B, b, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in numbers, ARS, ACS, BRS, BCS;
 * ACONJ, 1 to conjugate A; DIAG, what the diagonal holds; ALPHA, 0 if alpha is 1, else 1. Tunables:
 *
 * TRMM_ITEM  one work-item a matrix: the triangle in its registers, the columns of B pass by.
 *   GROUP    work-items of a work-group
 * TRMM_TEAM  one work-group for LANES matrices of a pack: the triangle goes to local memory, a work-item multiplies it
 *            with COLUMNS columns, TEAM apart, that it holds in registers.
 *   LANES    matrices of a work-group, a divisor of V
 *   COLUMNS  columns of a work-item
 *   TEAM     work-items of a matrix, ceil(N / COLUMNS)
 */
#if defined(TRMM_ITEM) || defined(TRMM_TEAM)
#include "known.h"

#define A_AT(i, j) cla_lane_load_of(ACOMMON, ACONJ, A, 0, (i) * ARS + (j) * ACS)
#define B_AT(i, j) ((i) * BRS + (j) * BCS)
#define SCALE(b) (ALPHA ? cla_lane_scale(CLA_VALUE(alpha), b) : (b))
#define FIRST (DIAG == CLA_UNIT && !ALPHA) /* the first row that changes */
#endif

#ifdef TRMM_ITEM
__kernel CLA_GROUP_OF(GROUP) void trmm_item(long lanes, long nm, CLA_SCALAR(alpha),
                                            __global const CLA_REAL *restrict A, long a0, long aps,
                                            __global CLA_REAL *restrict B, long b0, long bps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + (ACOMMON ? 0 : cla_lane_place(q, aps));
    B += b0 + cla_lane_place(q, bps);
    cla_lane a[M][M];
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < i + (DIAG == CLA_NONUNIT); j++) a[i][j] = A_AT(i, j);
    CLA_UNROLL for (int j = 0; j < N; j++) {
        cla_lane x[M];
        CLA_UNROLL for (int i = 0; i < M; i++) x[i] = cla_lane_load(B, B_AT(i, j));
        CLA_UNROLL for (int i = FIRST; i < M; i++) {
            cla_lane y = DIAG == CLA_UNIT ? x[i] : cla_lane_mul(a[i][i], x[i]);
            CLA_UNROLL for (int k = 0; k < i; k++) y = cla_lane_fma(a[i][k], x[k], y);
            cla_lane_store(B, B_AT(i, j), SCALE(y));
        }
    }
}
#endif

#ifdef TRMM_TEAM
#define AT(i, j) ((i) * ((i) + 1) / 2 + (j)) /* where element (i, j) of the triangle is in local memory */

__kernel CLA_GROUP_OF(LANES * TEAM) void trmm_team(long lanes, long nm, CLA_SCALAR(alpha),
                                                   __global const CLA_REAL *restrict A, long a0, long aps,
                                                   __global CLA_REAL *restrict B, long b0, long bps)
{
    __local cla_lane triangle_part[AT(M, 0) * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + (ACOMMON ? 0 : cla_lane_place(q, aps));
    B += b0 + cla_lane_place(q, bps);
    CLA_LOCAL cla_lane *triangle = triangle_part + l;
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j0 = 0; j0 < i + (DIAG == CLA_NONUNIT); j0 += TEAM)
            if (j0 + c < i + (DIAG == CLA_NONUNIT)) triangle[AT(i, j0 + c) * LANES] = A_AT(i, j0 + c);
    cla_lane x[COLUMNS][M];
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            x[j][i] = cla_lane_load_if(CLA_HAS_COLUMN(j, N), B, B_AT(i, CLA_COLUMN_OF(j, N)));
    barrier(CLK_LOCAL_MEM_FENCE);
    CLA_UNROLL for (int i = FIRST; i < M; i++) {
        cla_lane y[COLUMNS];
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            y[j] = DIAG == CLA_UNIT ? x[j][i] : cla_lane_mul(triangle[AT(i, i) * LANES], x[j][i]);
        CLA_UNROLL for (int k = 0; k < i; k++) {
            const cla_lane a = triangle[AT(i, k) * LANES];
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++) y[j] = cla_lane_fma(a, x[j][k], y[j]);
        }
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            if (CLA_HAS_COLUMN(j, N)) cla_lane_store(B, B_AT(i, CLA_COLUMN(j)), SCALE(y[j]));
    }
}
#endif

#endif
