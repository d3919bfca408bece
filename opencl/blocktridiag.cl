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
#define BLOCK_AT(blocks, slot) cla_matrix_of_batch(blocks, (slot) * CLA_VLEN + v, BLOCK, BLOCK) /* lane v's */

#ifdef FACTOR_LINES
/* diag[k] = L U, the pivots as their reciprocals; upper[k] <- inv(L) upper[k]; lower[k] <- lower[k] inv(U);
 * diag[k + 1] <- diag[k + 1] - lower[k] upper[k].  info: 0 or 1 + the line's first row with a zero pivot. */
__kernel void factor_lines(long lanes, long b, __global CLA_REAL *restrict lower, __global CLA_REAL *restrict diag,
                           __global CLA_REAL *restrict upper, __global const long *restrict offset,
                           __global int *info)
{
    const long q = get_global_id(0), p = q / CLA_VLEN, v = q % CLA_VLEN;
    if (q >= lanes) return;
    const long first = offset[p], last = offset[p + 1] - 1;
    long bad = 0;
    for (long s = first; s <= last; s++) {
        const cla_matrix D = BLOCK_AT(diag, s);
        const int pivot = cla_getrfnp(BLOCK, BLOCK, CLA_RECIPROCAL, D);
        if (pivot != 0 && bad == 0) bad = (s - first) * BLOCK + pivot;
        if (s == last) break;
        const cla_matrix L = BLOCK_AT(lower, s - p);
        const cla_matrix U = BLOCK_AT(upper, s - p);
        cla_trsm(BLOCK, BLOCK, CLA_UNIT, cla_lane_real(1), D, U);
        cla_trsm(BLOCK, BLOCK, CLA_RECIPROCAL, cla_lane_real(1), cla_transposed(D), cla_transposed(L));
        const cla_matrix next = BLOCK_AT(diag, s + 1);
        cla_gemm(BLOCK, BLOCK, BLOCK, cla_lane_real(-1), L, U, cla_lane_real(1), next);
    }
    info[q] = bad;
}
#endif

/* Block row `row` of an ordinary array, whose element (row, i, j) is at x[row * rows + i * rs + j * cs]. */
CLA_INLINE cla_matrix block_row(__global const CLA_REAL *x, long row, long rows, long rs, long cs)
{
    cla_matrix X = cla_matrix_at(x + row * rows, rs, cs);
    X.im = 1;
    return X;
}

#ifdef SOLVE_LINES
#ifdef SWAPPED
#define SWAPS , __global const int *swaps

/* X <- B, with its rows swapped as in the factors, see watched_lu.cl; returns X. */
CLA_INLINE cla_matrix swapped(int n, int r, __global const int *swaps, cla_matrix B, cla_matrix X)
{
    for (int j = 0; j < r; j++) {
        for (int i = 0; i < n; i++) cla_set(X, i, j, cla_get(B, i, j));
        for (int i = 0; i < n; i++) {
            const int there = cla_int_load(swaps, i);
            const cla_lane x = cla_get(X, i, j);
            cla_set(X, i, j, cla_get(X, there, j));
            cla_set(X, there, j, x);
        }
    }
    return X;
}
#else
#define SWAPS
#endif

/* x <- solution for the right-hand sides rhs: arrays (rows, b, nrhs), which may be the same one. rows[s * V + v] is
 * the block row of slot s in lane v, or -1 where the slot is unused: it counts as zero and is not stored. */
__kernel void solve_lines(long lanes, long b, long nrhs, __global const CLA_REAL *restrict lower,
                          __global const CLA_REAL *restrict diag, __global const CLA_REAL *restrict upper,
                          __global const long *restrict offset, __global const long *restrict rows,
                          CLA_VIEW(const CLA_REAL *rhs, r), CLA_VIEW(CLA_REAL *x, x) SWAPS)
{
    const long q = get_global_id(0), p = q / CLA_VLEN, v = q % CLA_VLEN;
    if (q >= lanes) return;
    const long first = offset[p], last = offset[p + 1] - 1;
    long before = -1; /* the block row solved before */
    for (long s = first; s <= last; s++) {
        const long row = rows[s * CLA_VLEN + v];
        const cla_matrix D = BLOCK_AT(diag, s);
        const cla_matrix L = BLOCK_AT(lower, s - 1 - p);
        const cla_matrix X = block_row(x + x0, row, xps, xrs, xcs);
        cla_matrix R = block_row(rhs + r0, row, rps, rrs, rcs);
#ifdef SWAPPED
        if (row >= 0) R = swapped(BLOCK, nrhs, cla_ints_of_batch(swaps, s * CLA_VLEN + v, BLOCK), R, X);
#endif
        if (row >= 0)
            cla_substitute(BLOCK, nrhs, CLA_UNIT, D, X, cla_lane_real(1), R, before < 0 ? 0 : BLOCK, L,
                       block_row(x + x0, before, xps, xrs, xcs));
        before = row;
    }
    before = -1;
    for (long s = last; s >= first; s--) { /* each block from its last row to the first */
        const long row = rows[s * CLA_VLEN + v];
        const cla_matrix D = cla_reversed(BLOCK_AT(diag, s), BLOCK, BLOCK);
        const cla_matrix U = cla_rows_reversed(BLOCK_AT(upper, s - p), BLOCK);
        const cla_matrix X = cla_rows_reversed(block_row(x + x0, row, xps, xrs, xcs), BLOCK);
        if (row >= 0)
            cla_substitute(BLOCK, nrhs, CLA_RECIPROCAL, D, X, cla_lane_real(1), X, before < 0 ? 0 : BLOCK, U,
                       block_row(x + x0, before, xps, xrs, xcs));
        before = row;
    }
}
#endif

#ifdef RESIDUAL_LINES
/* R <- R - A X for b x b blocks A and block rows R, X of nrhs columns */
CLA_INLINE void subtract(int b, int nrhs, cla_matrix A, cla_matrix X, cla_matrix R)
{
    for (int i = 0; i < b; i++)
        for (int j = 0; j < nrhs; j++) {
            cla_lane r = cla_get(R, i, j);
            for (int k = 0; k < b; k++)
                r = cla_lane_fnma(cla_get(A, i, k), cla_get(X, k, j), r);
            cla_set(R, i, j, r);
        }
}

/* r <- rhs - A x for the lines A, whose blocks are not factored; vectors are as in solve_lines. Several work-items do a
 * line. */
__kernel void residual_lines(long lanes, long b, long nrhs, __global const CLA_REAL *restrict lower,
                             __global const CLA_REAL *restrict diag, __global const CLA_REAL *restrict upper,
                             __global const long *restrict offset, __global const long *restrict rows,
                             CLA_VIEW(const CLA_REAL *rhs, r), CLA_VIEW(const CLA_REAL *x, x),
                             CLA_VIEW(CLA_REAL *residual, d))
{
    const long q = get_global_id(0), p = q / CLA_VLEN, v = q % CLA_VLEN;
    if (q >= lanes) return;
    const long first = offset[p], last = offset[p + 1] - 1;
    for (long s = first + get_global_id(1); s <= last; s += get_global_size(1)) {
        const long row = rows[s * CLA_VLEN + v], before = s > first ? rows[(s - 1) * CLA_VLEN + v] : -1;
        const long after = s < last ? rows[(s + 1) * CLA_VLEN + v] : -1;
        if (row < 0) continue;
        const cla_matrix B = block_row(rhs + r0, row, rps, rrs, rcs), R = block_row(residual + d0, row, dps, drs, dcs);
        for (int i = 0; i < BLOCK; i++)
            for (int j = 0; j < nrhs; j++) cla_set(R, i, j, cla_get(B, i, j));
        subtract(BLOCK, nrhs, BLOCK_AT(diag, s), block_row(x + x0, row, xps, xrs, xcs), R);
        if (before >= 0)
            subtract(BLOCK, nrhs, BLOCK_AT(lower, s - p - 1),
                     block_row(x + x0, before, xps, xrs, xcs), R);
        if (after >= 0)
            subtract(BLOCK, nrhs, BLOCK_AT(upper, s - p),
                     block_row(x + x0, after, xps, xrs, xcs), R);
    }
}
#endif

#ifdef SPREAD_LINES
/* Multiplies what couples factored lines to others by the inverses of the lines: edge_before, at their first blocks,
 * and edge_after, at their last ones, both packs of a block for each line. The products have the slots of diag;
 * ends[q] is the last slot of line q. Dimension 1 of the range counts columns of both.
 *
 * INVERSES: lines are factored as in thomas.cl, whose blocks are of a size known when this is compiled.
 */
__kernel void spread_lines(long lanes, long b, __global const CLA_REAL *restrict lower,
                           __global const CLA_REAL *restrict diag, __global const CLA_REAL *restrict upper,
                           __global const long *restrict offset, __global const long *restrict ends,
                           __global const CLA_REAL *restrict edge_before, __global const CLA_REAL *restrict edge_after,
                           __global CLA_REAL *before, __global CLA_REAL *after)
{
    const long q = get_global_id(0), p = q / CLA_VLEN, v = q % CLA_VLEN;
    if (q >= lanes) return;
    const int run = (2 * b + get_global_size(1) - 1) / get_global_size(1);
    const int start = get_global_id(1) * run, stop = min(start + run, (int)(2 * b));
    for (int c = start; c < stop; c++) {
        const int behind = c >= b, j = behind ? c - b : c;
        const long last = offset[p + 1] - 1, first = behind ? ends[q] : offset[p];
        const cla_matrix edge = cla_from(cla_matrix_of_batch(behind ? edge_after : edge_before, q, BLOCK, BLOCK), 0, j);
        __global CLA_REAL *spike = behind ? after : before;
#define SPIKE(s) cla_from(BLOCK_AT(spike, s), 0, j)
        for (long s = offset[p]; s < first; s++)
            for (int i = 0; i < b; i++) cla_set(SPIKE(s), i, 0, cla_lane_real(0));
#ifdef INVERSES
        cla_lane x[BLOCK], y[BLOCK];
        CLA_UNROLL for (int i = 0; i < BLOCK; i++) y[i] = cla_matrix_load(edge, i * edge.rs);
        for (long s = first; s <= last; s++) {
            const cla_matrix D = BLOCK_AT(diag, s), X = SPIKE(s);
            CLA_UNROLL for (int i = 0; i < BLOCK; i++) {
                x[i] = cla_lane_real(0);
                CLA_UNROLL for (int k = 0; k < BLOCK; k++)
                    x[i] = cla_lane_fma(cla_get(D, i, k), y[k], x[i]);
            }
            CLA_UNROLL for (int i = 0; i < BLOCK; i++) cla_matrix_store(X, i * X.rs, x[i]);
            if (s == last) break;
            const cla_matrix E = BLOCK_AT(lower, s - p);
            CLA_UNROLL for (int i = 0; i < BLOCK; i++) {
                y[i] = cla_lane_real(0);
                CLA_UNROLL for (int k = 0; k < BLOCK; k++)
                    y[i] = cla_lane_fnma(cla_get(E, i, k), x[k], y[i]);
            }
        }
        for (long s = last - 1; s >= offset[p]; s--) {
            const cla_matrix F = BLOCK_AT(upper, s - p), X = SPIKE(s);
            CLA_UNROLL for (int i = 0; i < BLOCK; i++) y[i] = x[i];
            CLA_UNROLL for (int i = 0; i < BLOCK; i++) {
                x[i] = cla_matrix_load(X, i * X.rs);
                CLA_UNROLL for (int k = 0; k < BLOCK; k++)
                    x[i] = cla_lane_fnma(cla_get(F, i, k), y[k], x[i]);
            }
            CLA_UNROLL for (int i = 0; i < BLOCK; i++) cla_matrix_store(X, i * X.rs, x[i]);
        }
#else
        for (long s = first; s <= last; s++) {
            const cla_matrix D = BLOCK_AT(diag, s);
            const cla_matrix L = BLOCK_AT(lower, s - 1 - p);
            cla_substitute(BLOCK, 1, CLA_UNIT, D, SPIKE(s), cla_lane_real(s == first), edge, s == first ? 0 : BLOCK, L,
                           SPIKE(s - 1));
        }
        for (long s = last; s >= offset[p]; s--) { /* each block from its last row to the first */
            const cla_matrix D = cla_reversed(BLOCK_AT(diag, s), BLOCK, BLOCK);
            const cla_matrix U = cla_rows_reversed(BLOCK_AT(upper, s - p), BLOCK);
            const cla_matrix X = cla_rows_reversed(SPIKE(s), BLOCK);
            cla_substitute(BLOCK, 1, CLA_RECIPROCAL, D, X, cla_lane_real(1), X, s == last ? 0 : BLOCK, U, SPIKE(s + 1));
        }
#endif
    }
}
#endif

#ifdef COUPLE_ROWS
#ifdef HELD
#define EACH_HELD(F) CLA_UNROLL3(BLOCK, HELD_COLUMNS, F, 0)
#define HELD_COLUMNS(F, unused, k) CLA_UNROLL4(HELD, F, 0, 0, k)
#define TAKE(X, there, rs, cs, k, h) \
    (there) >= 0 && j + h < nrhs ? cla_matrix_load(X, (k) * rs + (j + h) * cs) : cla_lane_real(0)
#define HOLD_BEFORE(a, b, k, h) held_before[k][h] = TAKE(x_before, before[q], xrs, xcs, k, h);
#define HOLD_AFTER(a, b, k, h) held_after[k][h] = TAKE(x_after, after[q], xrs, xcs, k, h);
#define HOLD_SOURCE(a, b, k, h) sum[k][h] = TAKE(R, row, srs, scs, k, h);
#define STORE_SUM(a, b, k, h) if (j + h < nrhs) cla_matrix_store(X, (k) * xrs + (j + h) * xcs, sum[k][h]);
#endif

/* x <- source - lower[s] x_before - upper[s] x_after for the block row rows[s * V + v] of each slot s and lane v.
 * before[q] and after[q] are the block rows of x that those of lane q are coupled to; the row -1 counts as zero.
 * Dimension 1 of the range shares out the slots of a pack, `longest` at most.
 *
 * HELD: blocks are of a size known when this is compiled, and x_before and x_after held in registers, for so many of
 * the right-hand sides at a time.
 */
__kernel void couple_rows(long lanes, long b, long nrhs, long longest, __global const CLA_REAL *restrict lower,
                          __global const CLA_REAL *restrict upper, __global const long *restrict offset,
                          __global const long *restrict rows, __global const long *restrict before,
                          __global const long *restrict after, CLA_VIEW(const CLA_REAL *source, s),
                          CLA_VIEW(CLA_REAL *x, x))
{
    const long q = get_global_id(0), p = q / CLA_VLEN, v = q % CLA_VLEN;
    if (q >= lanes) return;
    const long run = (longest + get_global_size(1) - 1) / get_global_size(1);
    const long first = offset[p] + get_global_id(1) * run, end = min(first + run, offset[p + 1]);
    const cla_matrix x_before = block_row(x + x0, before[q], xps, xrs, xcs);
    const cla_matrix x_after = block_row(x + x0, after[q], xps, xrs, xcs);
#ifdef HELD
    for (long j = 0; j < nrhs; j += HELD) {
        cla_lane held_before[BLOCK][HELD], held_after[BLOCK][HELD], sum[BLOCK][HELD];
        EACH_HELD(HOLD_BEFORE)
        EACH_HELD(HOLD_AFTER)
        for (long s = first; s < end; s++) {
            const long row = rows[s * CLA_VLEN + v];
            if (row < 0) continue;
            const cla_matrix R = block_row(source + s0, row, sps, srs, scs), X = block_row(x + x0, row, xps, xrs, xcs);
            const cla_matrix E = BLOCK_AT(lower, s);
            const cla_matrix F = BLOCK_AT(upper, s);
            EACH_HELD(HOLD_SOURCE)
            CLA_UNROLL for (int i = 0; i < BLOCK; i++)
                CLA_UNROLL for (int k = 0; k < BLOCK; k++) {
                    const cla_lane e = cla_get(E, i, k), f = cla_get(F, i, k);
                    CLA_UNROLL for (int h = 0; h < HELD; h++)
                        sum[i][h] = cla_lane_fnma(f, held_after[k][h], cla_lane_fnma(e, held_before[k][h], sum[i][h]));
                }
            EACH_HELD(STORE_SUM)
        }
    }
#else
    for (long s = first; s < end; s++) {
        const long row = rows[s * CLA_VLEN + v];
        if (row < 0) continue;
        const cla_matrix R = block_row(source + s0, row, sps, srs, scs), X = block_row(x + x0, row, xps, xrs, xcs);
        for (long i = 0; i < b; i++)
            for (long j = 0; j < nrhs; j++) cla_set(X, i, j, cla_get(R, i, j));
        if (before[q] >= 0)
            cla_gemm(b, nrhs, b, cla_lane_real(-1), BLOCK_AT(lower, s), x_before, cla_lane_real(1), X);
        if (after[q] >= 0)
            cla_gemm(b, nrhs, b, cla_lane_real(-1), BLOCK_AT(upper, s), x_after, cla_lane_real(1), X);
    }
#endif
}
#endif
