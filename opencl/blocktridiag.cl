/* Lines of blocks: LU of block tridiagonal matrices (define FACTOR_LINES), solves with it (define SOLVE_LINES), and
 * residuals (define RESIDUAL_LINES).
 *
 * The lines of pack p are its V lanes. Block k of pack p is slot offset[p] + k of diag and slot offset[p] - p + k of
 * lower and upper, shape (slots, b, b, V) or (slots, b, b, 2, V); lower[k] couples block row k + 1 to k.
 * One work-item does one line.
 *
 * What lines that are parts of longer ones need: products of their inverses with what couples them to others (define
 * SPREAD_LINES), and block rows minus couplings to two others (define COUPLE_ROWS).
 */
#if defined(FACTOR_LINES) || defined(COUPLE_ROWS)
#include "gemm.cl"
#endif
#ifdef FACTOR_LINES
#include "getrfnp.cl"
#endif
#include "trsm.cl"
#include "unroll.h"

#ifndef BLOCK
#define BLOCK b /* block size: by default the kernel's argument, else a constant to compile for */
#endif

#ifdef FACTOR_LINES
/* diag[k] = L U, the pivots as their reciprocals; upper[k] <- inv(L) upper[k]; lower[k] <- lower[k] inv(U);
 * diag[k + 1] <- diag[k + 1] - lower[k] upper[k].  info: 0 or 1 + the line's first row with a zero pivot. */
__kernel void factor_lines(long lanes, long b, __global REAL *restrict lower, __global REAL *restrict diag,
                           __global REAL *restrict upper, __global const long *restrict offset, __global int *info)
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

#ifdef SPREAD_LINES
/* Multiplies what couples factored lines to others by the inverses of the lines: edge_before, at their first blocks, and
 * edge_after, at their last ones, both packs of a block for each line. The products have the slots of diag; ends[q] is the
 * last slot of line q. Dimension 1 of the range counts columns of both.
 *
 * INVERSES: lines are factored as in thomas.cl, whose blocks are of a size known when this is compiled.
 */
__kernel void spread_lines(long lanes, long b, __global const REAL *restrict lower, __global const REAL *restrict diag,
                           __global const REAL *restrict upper, __global const long *restrict offset,
                           __global const long *restrict ends, __global const REAL *restrict edge_before,
                           __global const REAL *restrict edge_after, __global REAL *before, __global REAL *after)
{
    const long q = get_global_id(0), p = q / V, v = q % V;
    if (q >= lanes) return;
    const int run = (2 * b + get_global_size(1) - 1) / get_global_size(1);
    const int start = get_global_id(1) * run, stop = min(start + run, (int)(2 * b));
    for (int c = start; c < stop; c++) {
        const int behind = c >= b, j = behind ? c - b : c;
        const long last = offset[p + 1] - 1, first = behind ? ends[q] : offset[p];
        const matrix edge = from(matrix_of_batch(behind ? edge_after : edge_before, q, BLOCK, BLOCK), 0, j);
        __global REAL *spike = behind ? after : before;
#define SPIKE(s) from(matrix_of_batch(spike, (s) * V + v, BLOCK, BLOCK), 0, j)
        for (long s = offset[p]; s < first; s++)
            for (int i = 0; i < b; i++) matrix_store(SPIKE(s), i * BLOCK * PARTS * V, lane_real(0));
#ifdef INVERSES
        lane x[BLOCK], y[BLOCK];
        UNROLL for (int i = 0; i < BLOCK; i++) y[i] = matrix_load(edge, i * edge.rs);
        for (long s = first; s <= last; s++) {
            const matrix D = matrix_of_batch(diag, s * V + v, BLOCK, BLOCK), X = SPIKE(s);
            UNROLL for (int i = 0; i < BLOCK; i++) {
                x[i] = lane_real(0);
                UNROLL for (int k = 0; k < BLOCK; k++)
                    x[i] = lane_fma(matrix_load(D, i * D.rs + k * D.cs), y[k], x[i]);
            }
            UNROLL for (int i = 0; i < BLOCK; i++) matrix_store(X, i * X.rs, x[i]);
            if (s == last) break;
            const matrix E = matrix_of_batch(lower, (s - p) * V + v, BLOCK, BLOCK);
            UNROLL for (int i = 0; i < BLOCK; i++) {
                y[i] = lane_real(0);
                UNROLL for (int k = 0; k < BLOCK; k++)
                    y[i] = lane_fnma(matrix_load(E, i * E.rs + k * E.cs), x[k], y[i]);
            }
        }
        for (long s = last - 1; s >= offset[p]; s--) {
            const matrix F = matrix_of_batch(upper, (s - p) * V + v, BLOCK, BLOCK), X = SPIKE(s);
            UNROLL for (int i = 0; i < BLOCK; i++) y[i] = x[i];
            UNROLL for (int i = 0; i < BLOCK; i++) {
                x[i] = matrix_load(X, i * X.rs);
                UNROLL for (int k = 0; k < BLOCK; k++)
                    x[i] = lane_fnma(matrix_load(F, i * F.rs + k * F.cs), y[k], x[i]);
            }
            UNROLL for (int i = 0; i < BLOCK; i++) matrix_store(X, i * X.rs, x[i]);
        }
#else
        for (long s = first; s <= last; s++) {
            const matrix D = matrix_of_batch(diag, s * V + v, BLOCK, BLOCK);
            const matrix L = matrix_of_batch(lower, (s - 1 - p) * V + v, BLOCK, BLOCK);
            substitute(BLOCK, 1, UNIT, D, SPIKE(s), lane_real(s == first), edge, s == first ? 0 : BLOCK, L, SPIKE(s - 1));
        }
        for (long s = last; s >= offset[p]; s--) { /* each block from its last row to the first */
            const matrix D = reversed(matrix_of_batch(diag, s * V + v, BLOCK, BLOCK), BLOCK, BLOCK);
            const matrix U = rows_reversed(matrix_of_batch(upper, (s - p) * V + v, BLOCK, BLOCK), BLOCK);
            const matrix X = rows_reversed(SPIKE(s), BLOCK);
            substitute(BLOCK, 1, RECIPROCAL, D, X, lane_real(1), X, s == last ? 0 : BLOCK, U, SPIKE(s + 1));
        }
#endif
    }
}
#endif

#ifdef COUPLE_ROWS
#ifdef HELD
#define EACH_HELD(F) UNROLL3(BLOCK, HELD_COLUMNS, F, 0)
#define HELD_COLUMNS(F, unused, k) UNROLL4(HELD, F, 0, 0, k)
#define TAKE(X, there, rs, cs, k, h) \
    (there) >= 0 && j + h < nrhs ? matrix_load(X, (k) * rs + (j + h) * cs) : lane_real(0)
#define HOLD_BEFORE(a, b, k, h) held_before[k][h] = TAKE(x_before, before[q], xrs, xcs, k, h);
#define HOLD_AFTER(a, b, k, h) held_after[k][h] = TAKE(x_after, after[q], xrs, xcs, k, h);
#define HOLD_SOURCE(a, b, k, h) sum[k][h] = TAKE(R, row, srs, scs, k, h);
#define STORE_SUM(a, b, k, h) if (j + h < nrhs) matrix_store(X, (k) * xrs + (j + h) * xcs, sum[k][h]);
#endif

/* x <- source - lower[s] x_before - upper[s] x_after for the block row rows[s * V + v] of each slot s and lane v.
 * before[q] and after[q] are the block rows of x that those of lane q are coupled to; the row -1 counts as zero.
 * Dimension 1 of the range shares out the slots of a pack, `longest` at most.
 *
 * HELD: blocks are of a size known when this is compiled, and x_before and x_after held in registers, for so many of
 * the right-hand sides at a time.
 */
__kernel void couple_rows(long lanes, long b, long nrhs, long longest, __global const REAL *restrict lower,
                          __global const REAL *restrict upper, __global const long *restrict offset,
                          __global const long *restrict rows, __global const long *restrict before,
                          __global const long *restrict after,
                          __global const REAL *source, long s0, long sps, long srs, long scs,
                          __global REAL *x, long x0, long xps, long xrs, long xcs)
{
    const long q = get_global_id(0), p = q / V, v = q % V;
    if (q >= lanes) return;
    const long run = (longest + get_global_size(1) - 1) / get_global_size(1);
    const long first = offset[p] + get_global_id(1) * run, end = min(first + run, offset[p + 1]);
    const matrix x_before = block_row(x + x0, before[q], xps, xrs, xcs);
    const matrix x_after = block_row(x + x0, after[q], xps, xrs, xcs);
#ifdef HELD
    for (long j = 0; j < nrhs; j += HELD) {
        lane held_before[BLOCK][HELD], held_after[BLOCK][HELD], sum[BLOCK][HELD];
        EACH_HELD(HOLD_BEFORE)
        EACH_HELD(HOLD_AFTER)
        for (long s = first; s < end; s++) {
            const long row = rows[s * V + v];
            if (row < 0) continue;
            const matrix R = block_row(source + s0, row, sps, srs, scs), X = block_row(x + x0, row, xps, xrs, xcs);
            const matrix E = matrix_of_batch(lower, s * V + v, BLOCK, BLOCK);
            const matrix F = matrix_of_batch(upper, s * V + v, BLOCK, BLOCK);
            EACH_HELD(HOLD_SOURCE)
            UNROLL for (int i = 0; i < BLOCK; i++)
                UNROLL for (int k = 0; k < BLOCK; k++) {
                    const lane e = matrix_load(E, i * E.rs + k * E.cs), f = matrix_load(F, i * F.rs + k * F.cs);
                    UNROLL for (int h = 0; h < HELD; h++)
                        sum[i][h] = lane_fnma(f, held_after[k][h], lane_fnma(e, held_before[k][h], sum[i][h]));
                }
            EACH_HELD(STORE_SUM)
        }
    }
#else
    for (long s = first; s < end; s++) {
        const long row = rows[s * V + v];
        if (row < 0) continue;
        const matrix R = block_row(source + s0, row, sps, srs, scs), X = block_row(x + x0, row, xps, xrs, xcs);
        for (long i = 0; i < b; i++)
            for (long j = 0; j < nrhs; j++) matrix_store(X, i * xrs + j * xcs, matrix_load(R, i * srs + j * scs));
        if (before[q] >= 0)
            gemm(b, nrhs, b, lane_real(-1), matrix_of_batch(lower, s * V + v, b, b), x_before, lane_real(1), X);
        if (after[q] >= 0)
            gemm(b, nrhs, b, lane_real(-1), matrix_of_batch(upper, s * V + v, b, b), x_after, lane_real(1), X);
    }
#endif
}
#endif
