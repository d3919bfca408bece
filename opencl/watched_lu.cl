/* Lines of blocks factored with an eye on the pivots, for those that ask for it: the arrays are those of
 * blocktridiag.cl.
 *
 * Define
 *   PERTURB   1: a pivot below the threshold, sqrt(EPSILON) times the largest element of its block, is replaced by it
 *   SHIFT     1: that threshold is added to every pivot, with the sign of the pivot's real part
 *   PIVOTING  1: rows are swapped within diagonal blocks
 *   INVERSES  1: what is stored is what thomas_solve.cl solves with, where swaps do not show; 0: the factors that
 *             blocktridiag.cl solves with
 *   EPSILON, LEAST  the relative spacing of CLA_REAL numbers, and the smallest whose reciprocal is finite; or 0, and
 *             the threshold itself
 * One work-item does one line; factor_team of thomas.cl does the same in teams.
 */
#include "elimination.h"
#include "gemm.cl"
#include "laswp.h"
#include "trsm.cl"
#include "watch.h"

#ifndef BLOCK
#define BLOCK b /* as in blocktridiag.cl */
#endif
#ifndef PIVOTING
#define PERTURB 1
#define SHIFT 0
#define PIVOTING 1
#define INVERSES 0
#define EPSILON 1e-7f
#define LEAST 1e-30f
#endif
#define BLOCK_AT(blocks, slot) cla_matrix_of_batch(blocks, (slot) * CLA_VLEN + v, BLOCK, BLOCK) /* lane v's */

/* The larger of `most` and the largest |element| of the m x n matrix A. */
CLA_INLINE CLA_REAL largest(int m, int n, cla_matrix A, CLA_REAL most)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) most = cla_larger_size(most, cla_get(A, i, j));
    return most;
}

/* A <- L\U with the reciprocals of the pivots, 1 for a zero one, after what is done about each of them; `norm` is the
 * largest element that the block had so far. Returns 0 or 1 + the index of the first zero pivot. */
CLA_INLINE int watched_lu(int n, CLA_REAL norm, cla_matrix A, __global int *swaps, cla_watch *w)
{
    int info = 0;
    norm = largest(n, n, A, norm);
    const CLA_REAL threshold = cla_threshold(norm, EPSILON, LEAST);
#define AT(i, j) cla_get(A, i, j)
#define SET(i, j, x) cla_set(A, i, j, x);
#define EACH_ROW(F, k, s) for (int i = k + 1; i < n; i++) F(k, s, i)
#define EACH_COLUMN(F, k, s, i) for (int j = s + 1; j < n; j++) F(k, s, i, j)
    for (int k = 0; k < n; k++) {
#if PIVOTING
        const int place = cla_largest_below(k, n, 1, A);
        cla_int_store(swaps, k, place);
        cla_swap_rows(k, place, n, A);
#endif
        const cla_lane pivot = cla_watched_pivot(PERTURB, SHIFT, AT(k, k), threshold, w);
        const cla_lane r = cla_pivot(pivot, k, &info);
        w->factor = largest(1, n - k - 1, cla_from(A, k, k + 1), w->factor);
        SET(k, k, r)
        CLA_ELIMINATE(k, k)
    }
#undef AT
#undef SET
#undef EACH_ROW
#undef EACH_COLUMN
    return info;
}

/* X <- inv(A) X for the factors of A */
CLA_INLINE void solve_upper(int n, int r, cla_matrix A, cla_matrix X)
{
    cla_trsm(n, r, CLA_RECIPROCAL, cla_lane_real(1), cla_reversed(A, n, n), cla_rows_reversed(X, n));
}

/* `scratch`: a block for each line, where inverses are stored; `swaps`: (slots, b, V), where rows are swapped. */
__kernel void factor_watched(long lanes, long b, __global CLA_REAL *restrict lower, __global CLA_REAL *restrict diag,
                             __global CLA_REAL *restrict upper, __global const long *restrict offset,
                             __global int *info, __global const long *restrict rows, __global int *swaps,
                             __global CLA_REAL *watched, __global CLA_REAL *scratch)
{
    const long q = get_global_id(0), p = q / CLA_VLEN, v = q % CLA_VLEN;
    if (q >= lanes) return;
    const long first = offset[p], last = offset[p + 1] - 1;
    long bad = 0;
    cla_watch w = CLA_WATCH_NOTHING;
    for (long s = first; s <= last; s++) {
        const cla_matrix D = BLOCK_AT(diag, s);
        const cla_matrix U = BLOCK_AT(upper, s - p);
        const cla_matrix L = BLOCK_AT(lower, s - p);
        const cla_matrix L_before = BLOCK_AT(lower, s - p - 1);
        const cla_matrix U_before = BLOCK_AT(upper, s - p - 1);
        __global int *block_swaps = cla_ints_of_batch(swaps, s * CLA_VLEN + v, BLOCK);
        cla_watch here = w;
        const CLA_REAL norm = largest(BLOCK, BLOCK, D, 0);
        here.largest = fmax(here.largest, norm);
        if (s < last) {
            here.largest = largest(BLOCK, BLOCK, U, here.largest);
            here.largest = largest(BLOCK, BLOCK, L, here.largest);
        }
        if (s > first) cla_gemm(BLOCK, BLOCK, BLOCK, cla_lane_real(-1), L_before, U_before, cla_lane_real(1), D);
        const int pivot = watched_lu(BLOCK, norm, D, block_swaps, &here);
        if (pivot != 0 && bad == 0) bad = (s - first) * BLOCK + pivot;
        if (s < last) {
            if (PIVOTING) cla_laswp(BLOCK, BLOCK, block_swaps, 0, U);
            cla_trsm(BLOCK, BLOCK, CLA_UNIT, cla_lane_real(1), D, U);
            here.factor = largest(BLOCK, BLOCK, U, here.factor);
        }
#if INVERSES
        const cla_matrix X = cla_matrix_of_batch(scratch, q, BLOCK, BLOCK);
        for (int i = 0; i < BLOCK; i++)
            for (int j = 0; j < BLOCK; j++) cla_set(X, i, j, cla_lane_real(i == j));
        if (PIVOTING) cla_laswp(BLOCK, BLOCK, block_swaps, 0, X);
        cla_trsm(BLOCK, BLOCK, CLA_UNIT, cla_lane_real(1), D, X);
        solve_upper(BLOCK, BLOCK, D, X);
        if (s < last) solve_upper(BLOCK, BLOCK, D, U);
        for (int i = 0; i < BLOCK; i++)
            for (int j = 0; j < BLOCK; j++) cla_set(D, i, j, cla_get(X, i, j));
#else
        if (PIVOTING && s > first) cla_laswp(BLOCK, BLOCK, block_swaps, 0, L_before);
        if (s < last) cla_trsm(BLOCK, BLOCK, CLA_RECIPROCAL, cla_lane_real(1), cla_transposed(D), cla_transposed(L));
#endif
        if (rows[s * CLA_VLEN + v] >= 0) w = here;
    }
    info[q] = bad;
    cla_watch_store(w, watched, p, v);
}
