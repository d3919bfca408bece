/* getrfnp: A <- L\U without pivoting for one lane (pack level) and for a batch (define GETRF_BATCH).
 *
 * A is m x n; L is unit lower trapezoidal, U upper. Left-looking over tiles on the diagonal: a tile is brought up to
 * date and factored, then the rows right of it and, as the transposed problem, the columns below it are solved, so
 * that every element is read and written once.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item factors one lane.
 */
#ifndef GETRF_CL
#define GETRF_CL

#include "trsm.cl"

#if COLS != TILE
#error "getrf factors square tiles"
#endif

/* The reciprocal of a pivot; 1 for a zero pivot, whose column stays as it is. */
INLINE lane pivot_recip(lane a)
{
    return lane_is_zero(a) ? lane_real(1) : lane_recip(a);
}

/* The register level: d <- L\U, and its factors as tile_solve takes them: l = L, u = U transposed, with reciprocals on
 * the diagonals. Only the first `pivots` pivots count. Returns 0 or 1 + the index of the first of them that is zero. */
INLINE int tile_factor(int pivots, int diag, tile *d, square *l, square *u)
{
    int info = 0;
#define DIVIDE(s, i, j) if (i > s && j == s) d->c##i##s = lane_mul(d->c##i##s, u->c##s##s);
#define UPDATE(s, i, j) if (i > s && j > s) d->c##i##j = lane_fnma(d->c##i##s, d->c##s##j, d->c##i##j);
#define STEP(s) \
    if (s < pivots && info == 0 && lane_is_zero(d->c##s##s)) info = s + 1; \
    u->c##s##s = pivot_recip(d->c##s##s); \
    if (diag == RECIPROCAL) d->c##s##s = u->c##s##s; \
    SQUARE(DIVIDE, s) \
    SQUARE(UPDATE, s)
#define SPLIT(s, i, j) \
    l->c##i##j = i > j ? d->c##i##j : lane_real(1); \
    if (i > j) u->c##i##j = d->c##j##i;
    DOWN(STEP)
    SQUARE(SPLIT, 0)
    return info;
}

/* diag is NONUNIT (the pivots are stored) or RECIPROCAL (their reciprocals are, 1 for a zero pivot).
 * Returns 0 or 1 + the index of the first pivot that is exactly zero. */
INLINE int getrfnp(int m, int n, int diag, matrix A)
{
    const matrix At = transposed(A);
    const lane one = lane_real(1);
    int info = 0;
    for (int p = 0; p < min(m, n); p += TILE) {
        tile d = tile_combine(-one, tile_multiply(tile_zero(), A, p, m, A, p, n, p), one, A, p, m, p, n);
        square l, u;
        const int zero = tile_factor(min(m, n) - p, diag, &d, &l, &u);
        if (zero && !info) info = p + zero;
        tile_store(d, A, p, m, p, n);
        substitute_rows(l, p, m, p + TILE, n, A, A, one, A, 0, A, A);
        substitute_rows(u, p, n, p + TILE, m, At, At, one, At, 0, At, At);
    }
    return info;
}

#ifdef GETRF_BATCH
/* info[q] for the first nm lanes, those that hold a matrix */
__kernel void getrfnp_batch(long lanes, long nm, long m, long n,
                            __global REAL *A, long a0, long aps, long ars, long acs, __global long *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int first = getrfnp(m, n, NONUNIT, matrix_at(A + a0 + q / V * aps + q % V, ars, acs));
    if (q < nm) info[q] = first;
}
#endif

#endif
