/* trsm: B <- alpha inv(A) B, A lower triangular, for one lane (pack level) and for a batch (define TRSM_BATCH).
 *
 * A is n x n, B n x r. An upper triangle is the lower one of the transposed or of the reversed matrix, and a
 * solve from the right is one from the left of the transposed B: every case of trsm is this one with other strides.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane of B.
 */
#ifndef TRSM_CL
#define TRSM_CL

#include "tile.h"

/* What A's diagonal holds: the diagonal; nothing that is read, it is 1; its reciprocals. */
#define NONUNIT 0
#define UNIT 1
#define RECIPROCAL 2

/* The triangle of A at (p, p), the reciprocals of its diagonal on the diagonal. */
INLINE square triangle(matrix A, int p, int n, int diag)
{
    square d;
#define ROW_AT(i) const int at##i = min(p + i, n - 1);
#define LOAD_LOWER(s, i, j) d.c##i##j = i > j ? matrix_load(A, at##i * A.rs + at##j * A.cs) : lane_real(1);
#define LOAD_DIAGONAL(i) if (diag != UNIT) d.c##i##i = matrix_load(A, at##i * (A.rs + A.cs));
#define INVERT(i) if (diag == NONUNIT) d.c##i##i = lane_recip(d.c##i##i);
    DOWN(ROW_AT)
    SQUARE(LOAD_LOWER, 0)
    DOWN(LOAD_DIAGONAL)
    DOWN(INVERT)
#undef ROW_AT
#undef LOAD_LOWER
#undef LOAD_DIAGONAL
#undef INVERT
    return d;
}

/* Rows p to p + TILE of  X <- inv(A) (alpha B - E Y),  columns j to r, d the triangle of A in these rows.
 * E is n x k, Y k x r. X may be B. */
INLINE void substitute_rows(square d, int p, int n, int j, int r, matrix A, matrix X, lane alpha, matrix B, int k,
                            matrix E, matrix Y)
{
    for (; j < r; j += COLS) {
        tile x = tile_multiply(tile_zero(), E, p, n, Y, j, r, k);
        x = tile_multiply(x, A, p, n, X, j, r, p);
        x = tile_combine(lane_real(-1), x, alpha, B, p, n, j, r);
        tile_store(tile_solve(d, x), X, p, n, j, r);
    }
}

/* X <- inv(A) (alpha B - E Y): the substitution of a block row, E Y what the rows solved before bring in. */
INLINE void substitute(int n, int r, int diag, matrix A, matrix X, lane alpha, matrix B, int k, matrix E, matrix Y)
{
    for (int p = 0; p < n; p += TILE)
        substitute_rows(triangle(A, p, n, diag), p, n, 0, r, A, X, alpha, B, k, E, Y);
}

/* As BLAS: alpha = 0 does not read A. What is above A's diagonal is never read. */
INLINE void trsm(int n, int r, int diag, lane alpha, matrix A, matrix B)
{
    if (lane_is_zero(alpha)) {
        for (int p = 0; p < n; p += TILE)
            for (int j = 0; j < r; j += COLS) tile_store(tile_zero(), B, p, n, j, r);
    } else
        substitute(n, r, diag, A, B, alpha, B, 0, A, B);
}

#ifdef TRSM_BATCH
__kernel void trsm_batch(long lanes, long n, long r, long diag, REAL alpha, REAL alpha_im,
                         __global const REAL *restrict A, long a0, long aps, long ars, long acs, long conja,
                         __global REAL *restrict B, long b0, long bps, long brs, long bcs)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    matrix a = matrix_at(A + a0 + q / V * aps + q % V, ars, acs);
    a.conj = conja;
    trsm(n, r, diag, lane_of(alpha, alpha_im), a, matrix_at(B + b0 + q / V * bps + q % V, brs, bcs));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define N, R and, in REAL elements, ARS, ACS, BRS,
 * BCS; DIAG, what the diagonal holds; CONJA, 1 to conjugate A; SCALED, 0 if alpha is 1. Tunables:
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
#include "unroll.h"

#define A_AT(i, j) ((CONJA) ? lane_conj(lane_load(A, (i) * ARS + (j) * ACS)) : lane_load(A, (i) * ARS + (j) * ACS))
#define B_AT(i, j) ((i) * BRS + (j) * BCS)
#define SCALE(b) (SCALED ? lane_scale(lane_of(alpha, alpha_im), b) : (b))
#define FIRST (DIAG == UNIT && !SCALED) /* the first row that changes */
#endif

#ifdef TRSM_ITEM
__kernel GROUP_OF(GROUP) void trsm_item(long lanes, REAL alpha, REAL alpha_im,
                                        __global const REAL *restrict A, long a0, long aps,
                                        __global REAL *restrict B, long b0, long bps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + q / V * aps + q % V;
    B += b0 + q / V * bps + q % V;
    lane a[N][N];
    UNROLL for (int i = 0; i < N; i++) {
        UNROLL for (int j = 0; j < i; j++) a[i][j] = A_AT(i, j);
        a[i][i] = DIAG == UNIT ? lane_real(1) : A_AT(i, i);
        if (DIAG == NONUNIT) a[i][i] = lane_recip(a[i][i]);
    }
    UNROLL for (int j = 0; j < R; j++) {
        lane x[N];
        UNROLL for (int i = 0; i < N; i++) x[i] = SCALE(lane_load(B, B_AT(i, j)));
        UNROLL for (int k = 0; k < N; k++) {
            if (DIAG != UNIT) x[k] = lane_mul(a[k][k], x[k]);
            UNROLL for (int i = k + 1; i < N; i++) x[i] = lane_fnma(a[i][k], x[k], x[i]);
        }
        UNROLL for (int i = FIRST; i < N; i++) lane_store(B, B_AT(i, j), x[i]);
    }
}
#endif

#ifdef TRSM_TEAM
#define BELOW(i, j) ((i) * ((i) - 1) / 2 + (j)) /* where element (i, j) of the strict triangle is in local memory */

__kernel GROUP_OF(LANES * TEAM) void trsm_team(long lanes, REAL alpha, REAL alpha_im,
                                               __global const REAL *restrict A, long a0, long aps,
                                               __global REAL *restrict B, long b0, long bps)
{
    __local lane triangle_part[(BELOW(N, 0) + 1) * LANES], diagonal_part[N * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + q / V * aps + q % V;
    B += b0 + q / V * bps + q % V;
    __local lane *triangle = triangle_part + l, *diagonal = diagonal_part + l;
    UNROLL for (int i = 1; i < N; i++)
        UNROLL for (int j0 = 0; j0 < i; j0 += TEAM)
            if (j0 + c < i) triangle[BELOW(i, j0 + c) * LANES] = A_AT(i, j0 + c);
    if (DIAG != UNIT)
        UNROLL for (int i = 0; i < N; i += TEAM)
            if (i + c < N)
                diagonal[(i + c) * LANES] = DIAG == NONUNIT ? lane_recip(A_AT(i + c, i + c)) : A_AT(i + c, i + c);
    lane x[COLUMNS][N];
    UNROLL for (int i = 0; i < N; i++)
        UNROLL for (int j = 0; j < COLUMNS; j++) x[j][i] = SCALE(lane_load(B, B_AT(i, min(j * TEAM + c, R - 1))));
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int k = 0; k < N; k++) {
        if (DIAG != UNIT)
            UNROLL for (int j = 0; j < COLUMNS; j++) x[j][k] = lane_mul(diagonal[k * LANES], x[j][k]);
        UNROLL for (int i = k + 1; i < N; i++) {
            const lane a = triangle[BELOW(i, k) * LANES];
            UNROLL for (int j = 0; j < COLUMNS; j++) x[j][i] = lane_fnma(a, x[j][k], x[j][i]);
        }
    }
    UNROLL for (int i = FIRST; i < N; i++)
        UNROLL for (int j = 0; j < COLUMNS; j++)
            if (R % TEAM == 0 || j * TEAM + c < R) lane_store(B, B_AT(i, j * TEAM + c), x[j][i]);
}
#endif

#endif
