/* Lines of blocks factored with an eye on the pivots, for those that ask for it: the arrays are those of blocktridiag.cl.
 *
 * Define
 *   PERTURB   1: a pivot below the threshold, sqrt(EPSILON) times the largest element of its block, is replaced by it
 *   SHIFT     1: that threshold is added to every pivot, with the sign of the pivot's real part
 *   PIVOTING  1: rows are swapped within diagonal blocks
 *   INVERSES  1: what is stored is what thomas.cl solves with, where swaps do not show; 0: the factors that
 *             blocktridiag.cl solves with
 *   EPSILON, LEAST  the relative spacing of REAL numbers, and the smallest whose reciprocal is finite
 * One work-item does one line. `watched` gets the smallest pivot of each line, the largest element of its matrix and of
 * its factor U, and how many pivots were replaced: row i of pack p is at watched[(p * WATCHED + i) * PARTS * V].
 */
#include "gemm.cl"
#include "getrfnp.cl"

#ifndef BLOCK
#define BLOCK b
#endif
#define WATCHED 5

typedef struct { REAL smallest, largest, factor, replaced; } watch;

#if COMPLEX
INLINE REAL lane_abs(lane a) { return hypot(a.x, a.y); }
INLINE REAL lane_cabs1(lane a) { return fabs(a.x) + fabs(a.y); }
INLINE REAL lane_re(lane a) { return a.x; }
#else
INLINE REAL lane_abs(lane a) { return fabs(a); }
INLINE REAL lane_cabs1(lane a) { return fabs(a); }
INLINE REAL lane_re(lane a) { return a; }
#endif

/* The larger of `most` and the largest |element| of the m x n matrix A. */
INLINE REAL largest(int m, int n, matrix A, REAL most)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) most = fmax(most, lane_abs(matrix_load(A, i * A.rs + j * A.cs)));
    return most;
}

/* Swap rows i and k of a matrix of r columns. */
INLINE void swap_rows(int i, int k, int r, matrix B)
{
    for (int j = 0; j < r && i != k; j++) {
        const lane b = matrix_load(B, i * B.rs + j * B.cs);
        matrix_store(B, i * B.rs + j * B.cs, matrix_load(B, k * B.rs + j * B.cs));
        matrix_store(B, k * B.rs + j * B.cs, b);
    }
}

/* Swap the n rows of B as `getrf` did: row i with row swaps[i * V], which is no earlier one. */
INLINE void laswp(int n, int r, __global const int *swaps, matrix B)
{
    for (int i = 0; i < n; i++) swap_rows(i, swaps[i * V], r, B);
}

/* A <- L\U with the reciprocals of the pivots, 1 for a zero one, after what is done about each of them; `norm` is the
 * largest element that the block had so far. Returns 0 or 1 + the index of the first zero pivot. */
INLINE int getrf(int n, REAL norm, matrix A, __global int *swaps, watch *w)
{
    int info = 0;
    norm = largest(n, n, A, norm);
    const REAL threshold = fmax(sqrt((REAL)EPSILON) * (norm == 0 ? 1 : norm), (REAL)LEAST);
    for (int q = 0; q < n; q++) {
        const matrix below = from(A, q, q);
#if PIVOTING
        int place = q;
        REAL best = lane_cabs1(matrix_load(below, 0));
        for (int i = 1; i < n - q; i++) {
            const REAL size = lane_cabs1(matrix_load(below, i * A.rs));
            if (size > best) {
                best = size;
                place = q + i;
            }
        }
        swaps[q * V] = place;
        swap_rows(q, place, n, A);
#endif
        lane pivot = matrix_load(below, 0);
        const REAL size = lane_abs(pivot), away = copysign(threshold, lane_re(pivot));
        w->smallest = fmin(w->smallest, size);
        if (PERTURB && size < threshold) {
            pivot = lane_real(away);
            w->replaced++;
        }
        if (SHIFT) pivot += lane_real(away);
        if (lane_is_zero(pivot) && info == 0) info = q + 1;
        w->factor = fmax(lane_abs(pivot), largest(1, n - q - 1, from(below, 0, 1), w->factor));
        pivot = pivot_recip(pivot);
        matrix_store(below, 0, pivot);
        for (int i = 1; i < n - q; i++) {
            const lane l = lane_mul(matrix_load(below, i * A.rs), pivot);
            matrix_store(below, i * A.rs, l);
            for (int j = 1; j < n - q; j++) {
                const lane a = lane_fnma(l, matrix_load(below, j * A.cs), matrix_load(below, i * A.rs + j * A.cs));
                matrix_store(below, i * A.rs + j * A.cs, a);
            }
        }
    }
    return info;
}

/* X <- inv(A) X for the factors of A */
INLINE void solve_upper(int n, int r, matrix A, matrix X)
{
    trsm(n, r, RECIPROCAL, lane_real(1), reversed(A, n, n), rows_reversed(X, n));
}

/* `scratch`: a block for each line, where inverses are stored; `swaps`: (slots, b, V), where rows are swapped. */
__kernel void factor_watched(long lanes, long b, __global REAL *restrict lower, __global REAL *restrict diag,
                             __global REAL *restrict upper, __global const long *restrict offset, __global int *info,
                             __global const long *restrict rows, __global int *swaps, __global REAL *watched,
                             __global REAL *scratch)
{
    const long q = get_global_id(0), p = q / V, v = q % V;
    if (q >= lanes) return;
    const long first = offset[p], last = offset[p + 1] - 1;
    long bad = 0;
    watch w = {INFINITY, 0, 0, 0};
    for (long s = first; s <= last; s++) {
        const matrix D = matrix_of_batch(diag, s * V + v, BLOCK, BLOCK);
        const matrix U = matrix_of_batch(upper, (s - p) * V + v, BLOCK, BLOCK);
        const matrix L = matrix_of_batch(lower, (s - p) * V + v, BLOCK, BLOCK);
        const matrix L_before = matrix_of_batch(lower, (s - p - 1) * V + v, BLOCK, BLOCK);
        const matrix U_before = matrix_of_batch(upper, (s - p - 1) * V + v, BLOCK, BLOCK);
        __global int *block_swaps = swaps + s * BLOCK * V + v;
        const int used = rows[s * V + v] >= 0;
        watch ignored = w, *here = used ? &w : &ignored;
        const REAL norm = largest(BLOCK, BLOCK, D, 0);
        here->largest = fmax(here->largest, norm);
        if (s < last) {
            here->largest = largest(BLOCK, BLOCK, U, here->largest);
            here->largest = largest(BLOCK, BLOCK, L, here->largest);
        }
        if (s > first) gemm(BLOCK, BLOCK, BLOCK, lane_real(-1), L_before, U_before, lane_real(1), D);
        const int pivot = getrf(BLOCK, norm, D, block_swaps, here);
        if (pivot != 0 && bad == 0) bad = (s - first) * BLOCK + pivot;
        if (s < last) {
            if (PIVOTING) laswp(BLOCK, BLOCK, block_swaps, U);
            trsm(BLOCK, BLOCK, UNIT, lane_real(1), D, U);
            here->factor = largest(BLOCK, BLOCK, U, here->factor);
        }
#if INVERSES
        const matrix X = matrix_of_batch(scratch, q, BLOCK, BLOCK);
        for (int i = 0; i < BLOCK; i++)
            for (int j = 0; j < BLOCK; j++) matrix_store(X, i * X.rs + j * X.cs, lane_real(i == j));
        if (PIVOTING) laswp(BLOCK, BLOCK, block_swaps, X);
        trsm(BLOCK, BLOCK, UNIT, lane_real(1), D, X);
        solve_upper(BLOCK, BLOCK, D, X);
        if (s < last) solve_upper(BLOCK, BLOCK, D, U);
        for (int i = 0; i < BLOCK; i++)
            for (int j = 0; j < BLOCK; j++) matrix_store(D, i * D.rs + j * D.cs, matrix_load(X, i * X.rs + j * X.cs));
#else
        if (PIVOTING && s > first) laswp(BLOCK, BLOCK, block_swaps, L_before);
        if (s < last) trsm(BLOCK, BLOCK, RECIPROCAL, lane_real(1), transposed(D), transposed(L));
#endif
    }
    info[q] = bad;
    const REAL kept[4] = {w.smallest, w.largest, w.factor, w.replaced};
    for (int i = 0; i < 4; i++) watched[(p * WATCHED + i) * (PARTS * V) + v] = kept[i];
}
