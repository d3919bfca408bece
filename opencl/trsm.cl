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

#endif
