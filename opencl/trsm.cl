/* trsm: B <- alpha inv(A) B, A lower triangular, for one lane (pack level) and for a batch (define TRSM_BATCH).
 *
 * A is m x m, B m x n. An upper triangle is the lower one of the transposed or of the reversed matrix, and a
 * solve from the right is one from the left of the transposed B: every case of trsm is this one with other strides.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane of B. ACOMMON, 1: A is
 * one ordinary matrix for all of them, at A[a0].
 */
#ifndef CLA_TRSM_CL
#define CLA_TRSM_CL

#include "tile.h"

/* The triangle of A at (p, p), the reciprocals of its diagonal on the diagonal. */
CLA_INLINE cla_square cla_triangle(cla_matrix A, int p, int m, int diag)
{
    cla_square d;
#define ROW_AT(i) const int at##i = min(p + i, m - 1);
#define LOAD_LOWER(s, i, j) d.c##i##j = i > j ? cla_matrix_load(A, at##i * A.rs + at##j * A.cs) : cla_lane_real(1);
#define LOAD_DIAGONAL(i) if (diag != CLA_UNIT) d.c##i##i = cla_matrix_load(A, at##i * (A.rs + A.cs));
#define INVERT(i) if (diag == CLA_NONUNIT) d.c##i##i = cla_lane_recip(d.c##i##i);
    CLA_DOWN(ROW_AT)
    CLA_SQUARE(LOAD_LOWER, 0)
    CLA_DOWN(LOAD_DIAGONAL)
    CLA_DOWN(INVERT)
#undef ROW_AT
#undef LOAD_LOWER
#undef LOAD_DIAGONAL
#undef INVERT
    return d;
}

/* Rows p to p + CLA_TILE of  X <- inv(A) (alpha B - E Y),  columns j to n, d the triangle of A in these rows.
 * E is m x k, Y k x n. X may be B. */
CLA_INLINE void cla_substitute_rows(cla_square d, int p, int m, int j, int n, cla_matrix A, cla_matrix X,
                                    cla_lane alpha, cla_matrix B, int k, cla_matrix E, cla_matrix Y)
{
    for (; j < n; j += CLA_COLS) {
        cla_tile x = cla_tile_multiply(cla_tile_zero(), E, p, m, Y, j, n, k);
        x = cla_tile_multiply(x, A, p, m, X, j, n, p);
        x = cla_tile_combine(cla_lane_real(-1), x, alpha, B, p, m, j, n);
        cla_tile_store(cla_tile_solve(d, x), X, p, m, j, n);
    }
}

/* X <- inv(A) (alpha B - E Y): the substitution of a block row, E Y what the rows solved before bring in. */
CLA_INLINE void cla_substitute(int m, int n, int diag, cla_matrix A, cla_matrix X, cla_lane alpha, cla_matrix B, int k,
                               cla_matrix E, cla_matrix Y)
{
    for (int p = 0; p < m; p += CLA_TILE)
        cla_substitute_rows(cla_triangle(A, p, m, diag), p, m, 0, n, A, X, alpha, B, k, E, Y);
}

/* As BLAS: alpha = 0 does not read A. What is above A's diagonal is never read. */
CLA_INLINE void cla_trsm(int m, int n, int diag, cla_lane alpha, cla_matrix A, cla_matrix B)
{
    if (cla_lane_is_zero(alpha)) {
        for (int p = 0; p < m; p += CLA_TILE)
            for (int j = 0; j < n; j += CLA_COLS) cla_tile_store(cla_tile_zero(), B, p, m, j, n);
    } else
        cla_substitute(m, n, diag, A, B, alpha, B, 0, A, B);
}

#ifdef TRSM_BATCH
#include "known.h"

/* bconj is 0: B is as it is */
__kernel void trsm_batch(long lanes, long nm, long m, long n, long diag, CLA_SCALAR(alpha),
                         CLA_OPERAND(const CLA_REAL *restrict A, a), CLA_OPERAND(CLA_REAL *restrict B, b))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_trsm(m, n, diag, CLA_VALUE(alpha), CLA_MATRIX_OF(ACOMMON, A, a, q, aconj), CLA_MATRIX(B, b, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define N, R and, in numbers, ARS, ACS, BRS, BCS;
 * ACONJ, 1 to conjugate A; DIAG, what the diagonal holds; ALPHA, 0 if alpha is 1, else 1. Tunables:
 *
 * TRSM_ITEM  one work-item a matrix: the triangle in its registers, the columns of B pass by.
 *   GROUP    work-items of a work-group
 * TRSM_TEAM  one work-group for LANES matrices of a pack: the triangle goes to local memory, a work-item solves for
 *            COLUMNS columns, TEAM apart, in registers.
 *   LANES    matrices of a work-group, a divisor of V
 *   COLUMNS  columns of a work-item
 *   TEAM     work-items of a matrix, ceil(R / COLUMNS)
 */
#if defined(TRSM_ITEM) || defined(TRSM_TEAM)
#include "known.h"

#define A_AT(i, j) cla_lane_load_of(ACOMMON, ACONJ, A, 0, (i) * ARS + (j) * ACS)
#define B_AT(i, j) ((i) * BRS + (j) * BCS)
#define SCALE(b) (ALPHA ? cla_lane_scale(CLA_VALUE(alpha), b) : (b))
#define FIRST (DIAG == CLA_UNIT && !ALPHA) /* the first row that changes */
#endif

#ifdef TRSM_ITEM
__kernel CLA_GROUP_OF(GROUP) void trsm_item(long lanes, long nm, CLA_SCALAR(alpha),
                                            __global const CLA_REAL *restrict A, long a0, long aps,
                                            __global CLA_REAL *restrict B, long b0, long bps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + (ACOMMON ? 0 : cla_lane_place(q, aps));
    B += b0 + cla_lane_place(q, bps);
    cla_lane a[N][N];
    CLA_UNROLL for (int i = 0; i < N; i++) {
        CLA_UNROLL for (int j = 0; j < i; j++) a[i][j] = A_AT(i, j);
        a[i][i] = DIAG == CLA_UNIT ? cla_lane_real(1) : A_AT(i, i);
        if (DIAG == CLA_NONUNIT) a[i][i] = cla_lane_recip(a[i][i]);
    }
    CLA_UNROLL for (int j = 0; j < R; j++) {
        cla_lane x[N];
        CLA_UNROLL for (int i = 0; i < N; i++) x[i] = SCALE(cla_lane_load(B, B_AT(i, j)));
        CLA_UNROLL for (int k = 0; k < N; k++) {
            if (DIAG != CLA_UNIT) x[k] = cla_lane_mul(a[k][k], x[k]);
            CLA_UNROLL for (int i = k + 1; i < N; i++) x[i] = cla_lane_fnma(a[i][k], x[k], x[i]);
        }
        CLA_UNROLL for (int i = FIRST; i < N; i++) cla_lane_store(B, B_AT(i, j), x[i]);
    }
}
#endif

#ifdef TRSM_TEAM
#define BELOW(i, j) ((i) * ((i) - 1) / 2 + (j)) /* where element (i, j) of the strict triangle is in local memory */

__kernel CLA_GROUP_OF(LANES * TEAM) void trsm_team(long lanes, long nm, CLA_SCALAR(alpha),
                                                   __global const CLA_REAL *restrict A, long a0, long aps,
                                                   __global CLA_REAL *restrict B, long b0, long bps)
{
    __local cla_lane triangle_part[(BELOW(N, 0) + 1) * LANES], diagonal_part[N * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + (ACOMMON ? 0 : cla_lane_place(q, aps));
    B += b0 + cla_lane_place(q, bps);
    CLA_LOCAL cla_lane *triangle = triangle_part + l, *diagonal = diagonal_part + l;
    CLA_UNROLL for (int i = 1; i < N; i++)
        CLA_UNROLL for (int j0 = 0; j0 < i; j0 += TEAM)
            if (j0 + c < i) triangle[BELOW(i, j0 + c) * LANES] = A_AT(i, j0 + c);
    if (DIAG != CLA_UNIT)
        CLA_UNROLL for (int i = 0; i < N; i += TEAM)
            if (i + c < N) {
                const cla_lane a = A_AT(i + c, i + c);
                diagonal[(i + c) * LANES] = DIAG == CLA_NONUNIT ? cla_lane_recip(a) : a;
            }
    cla_lane x[COLUMNS][N];
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            x[j][i] = SCALE(cla_lane_load_if(CLA_HAS_COLUMN(j, R), B, B_AT(i, CLA_COLUMN_OF(j, R))));
    barrier(CLK_LOCAL_MEM_FENCE);
    CLA_UNROLL for (int k = 0; k < N; k++) {
        if (DIAG != CLA_UNIT)
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++) x[j][k] = cla_lane_mul(diagonal[k * LANES], x[j][k]);
        CLA_UNROLL for (int i = k + 1; i < N; i++) {
            const cla_lane a = triangle[BELOW(i, k) * LANES];
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++) x[j][i] = cla_lane_fnma(a, x[j][k], x[j][i]);
        }
    }
    CLA_UNROLL for (int i = FIRST; i < N; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            if (CLA_HAS_COLUMN(j, R)) cla_lane_store(B, B_AT(i, CLA_COLUMN(j)), x[j][i]);
}
#endif

#endif
