/* Lines of blocks: LU of block tridiagonal matrices (define FACTOR_LINES), solves with it (define SOLVE_LINES), and
 * residuals (define RESIDUAL_LINES).
 *
 * The lines of pack p are its V lanes. Block k of pack p is slot offset[p] + k of diag and slot offset[p] - p + k of
 * lower and upper, shape (slots, b, b, V) or (slots, b, b, 2, V); lower[k] couples block row k + 1 to k.
 * One work-item does one line.
 */
#ifdef FACTOR_LINES
#include "gemm.cl"
#include "getrf.cl"
#endif
#include "trsm.cl"

#ifndef BLOCK
#define BLOCK b /* block size: by default the kernel's argument, else a constant to compile for */
#endif

#ifdef FACTOR_LINES
/* diag[k] = L U, the pivots as their reciprocals; upper[k] <- inv(L) upper[k]; lower[k] <- lower[k] inv(U);
 * diag[k + 1] <- diag[k + 1] - lower[k] upper[k].  info: 0 or 1 + the line's first row with a zero pivot. */
__kernel void factor_lines(long lanes, long b, __global REAL *restrict lower, __global REAL *restrict diag,
                           __global REAL *restrict upper, __global const long *restrict offset, __global long *info)
{
    const long q = get_global_id(0), p = q / V, v = q % V;
    if (q >= lanes) return;
    const long first = offset[p], last = offset[p + 1] - 1;
    long bad = 0;
    for (long s = first; s <= last; s++) {
        const matrix D = matrix_of_batch(diag, s * V + v, BLOCK, BLOCK);
        const int pivot = getrfnp(BLOCK, BLOCK, RECIPROCAL, D);
        if (pivot != 0 && bad == 0) bad = (s - first) * BLOCK + pivot;
        if (s == last) break;
        const matrix L = matrix_of_batch(lower, (s - p) * V + v, BLOCK, BLOCK);
        const matrix U = matrix_of_batch(upper, (s - p) * V + v, BLOCK, BLOCK);
        trsm(BLOCK, BLOCK, UNIT, lane_real(1), D, U);
        trsm(BLOCK, BLOCK, RECIPROCAL, lane_real(1), transposed(D), transposed(L));
        const matrix next = matrix_of_batch(diag, (s + 1) * V + v, BLOCK, BLOCK);
        gemm(BLOCK, BLOCK, BLOCK, lane_real(-1), L, U, lane_real(1), next);
    }
    info[q] = bad;
}
#endif

/* Block row `row` of an ordinary array, whose element (row, i, j) is at x[row * rows + i * rs + j * cs]. */
INLINE matrix block_row(__global const REAL *x, long row, long rows, long rs, long cs)
{
    matrix X = matrix_at(x + row * rows, rs, cs);
    X.im = 1;
    return X;
}

#ifdef SOLVE_LINES
#ifdef SWAPPED
#define SWAPS , __global const int *swaps

/* X <- B, with its rows swapped as in the factors, see `laswp` of pivots.cl; returns X. */
INLINE matrix swapped(int n, int r, __global const int *swaps, matrix B, matrix X)
{
    for (int j = 0; j < r; j++) {
        for (int i = 0; i < n; i++) matrix_store(X, i * X.rs + j * X.cs, matrix_load(B, i * B.rs + j * B.cs));
        for (int i = 0; i < n; i++) {
            const long here = i * X.rs + j * X.cs, there = swaps[i * V] * X.rs + j * X.cs;
            const lane x = matrix_load(X, here);
            matrix_store(X, here, matrix_load(X, there));
            matrix_store(X, there, x);
        }
    }
    return X;
}
#else
#define SWAPS
#endif

/* x <- solution for the right-hand sides rhs: arrays (rows, b, nrhs), which may be the same one. rows[s * V + v] is
 * the block row of slot s in lane v, or -1 where the slot is unused: it counts as zero and is not stored. */
__kernel void solve_lines(long lanes, long b, long nrhs, __global const REAL *restrict lower,
                          __global const REAL *restrict diag, __global const REAL *restrict upper,
                          __global const long *restrict offset, __global const long *restrict rows,
                          __global const REAL *rhs, long r0, long rps, long rrs, long rcs,
                          __global REAL *x, long x0, long xps, long xrs, long xcs SWAPS)
{
    const long q = get_global_id(0), p = q / V, v = q % V;
    if (q >= lanes) return;
    const long first = offset[p], last = offset[p + 1] - 1;
    long before = -1; /* the block row solved before */
    for (long s = first; s <= last; s++) {
        const long row = rows[s * V + v];
        const matrix D = matrix_of_batch(diag, s * V + v, BLOCK, BLOCK);
        const matrix L = matrix_of_batch(lower, (s - 1 - p) * V + v, BLOCK, BLOCK);
        const matrix X = block_row(x + x0, row, xps, xrs, xcs);
        matrix R = block_row(rhs + r0, row, rps, rrs, rcs);
#ifdef SWAPPED
        if (row >= 0) R = swapped(BLOCK, nrhs, swaps + s * BLOCK * V + v, R, X);
#endif
        if (row >= 0)
            substitute(BLOCK, nrhs, UNIT, D, X, lane_real(1), R, before < 0 ? 0 : BLOCK, L,
                       block_row(x + x0, before, xps, xrs, xcs));
        before = row;
    }
    before = -1;
    for (long s = last; s >= first; s--) { /* each block from its last row to the first */
        const long row = rows[s * V + v];
        const matrix D = reversed(matrix_of_batch(diag, s * V + v, BLOCK, BLOCK), BLOCK, BLOCK);
        const matrix U = rows_reversed(matrix_of_batch(upper, (s - p) * V + v, BLOCK, BLOCK), BLOCK);
        const matrix X = rows_reversed(block_row(x + x0, row, xps, xrs, xcs), BLOCK);
        if (row >= 0)
            substitute(BLOCK, nrhs, RECIPROCAL, D, X, lane_real(1), X, before < 0 ? 0 : BLOCK, U,
                       block_row(x + x0, before, xps, xrs, xcs));
        before = row;
    }
}
#endif

#ifdef RESIDUAL_LINES
/* R <- R - A X for b x b blocks A and block rows R, X of nrhs columns */
INLINE void subtract(int b, int nrhs, matrix A, matrix X, matrix R)
{
    for (int i = 0; i < b; i++)
        for (int j = 0; j < nrhs; j++) {
            lane r = matrix_load(R, i * R.rs + j * R.cs);
            for (int k = 0; k < b; k++)
                r = lane_fnma(matrix_load(A, i * A.rs + k * A.cs), matrix_load(X, k * X.rs + j * X.cs), r);
            matrix_store(R, i * R.rs + j * R.cs, r);
        }
}

/* r <- rhs - A x for the lines A, whose blocks are not factored; vectors are as in solve_lines. Several work-items do a
 * line. */
__kernel void residual_lines(long lanes, long b, long nrhs, __global const REAL *restrict lower,
                             __global const REAL *restrict diag, __global const REAL *restrict upper,
                             __global const long *restrict offset, __global const long *restrict rows,
                             __global const REAL *rhs, long r0, long rps, long rrs, long rcs,
                             __global const REAL *x, long x0, long xps, long xrs, long xcs,
                             __global REAL *residual, long d0, long dps, long drs, long dcs)
{
    const long q = get_global_id(0), p = q / V, v = q % V;
    if (q >= lanes) return;
    const long first = offset[p], last = offset[p + 1] - 1;
    for (long s = first + get_global_id(1); s <= last; s += get_global_size(1)) {
        const long row = rows[s * V + v], before = s > first ? rows[(s - 1) * V + v] : -1;
        const long after = s < last ? rows[(s + 1) * V + v] : -1;
        if (row < 0) continue;
        const matrix B = block_row(rhs + r0, row, rps, rrs, rcs), R = block_row(residual + d0, row, dps, drs, dcs);
        for (int i = 0; i < BLOCK; i++)
            for (int j = 0; j < nrhs; j++) matrix_store(R, i * R.rs + j * R.cs, matrix_load(B, i * B.rs + j * B.cs));
        subtract(BLOCK, nrhs, matrix_of_batch(diag, s * V + v, BLOCK, BLOCK), block_row(x + x0, row, xps, xrs, xcs), R);
        if (before >= 0)
            subtract(BLOCK, nrhs, matrix_of_batch(lower, (s - p - 1) * V + v, BLOCK, BLOCK),
                     block_row(x + x0, before, xps, xrs, xcs), R);
        if (after >= 0)
            subtract(BLOCK, nrhs, matrix_of_batch(upper, (s - p) * V + v, BLOCK, BLOCK),
                     block_row(x + x0, after, xps, xrs, xcs), R);
    }
}
#endif
