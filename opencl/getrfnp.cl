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
#undef DIVIDE
#undef UPDATE
#undef STEP
#undef SPLIT
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
                            __global REAL *A, long a0, long aps, long ars, long acs, __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int first = getrfnp(m, n, NONUNIT, matrix_at(A + a0 + q / V * aps + q % V, ars, acs));
    if (q < nm) info[q] = first;
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in REAL elements, ARS, ACS. The
 * first row is U's as it is and never written. Tunables:
 *
 * GETRF_ITEM  one work-item a matrix, all of it in registers
 *   GROUP     work-items of a work-group
 * GETRF_TEAM  one work-group for LANES matrices of a pack; a work-item keeps COLUMNS columns in registers, and the
 *             columns of L go through local memory.
 *   LANES     matrices of a work-group, a divisor of V
 *   COLUMNS   columns of a work-item
 *   TEAM      work-items of a matrix, ceil(N / COLUMNS)
 *   PANEL     1: they are neighbours and factored at once, which takes fewer barriers; 0: they are TEAM apart, which
 *             shares the work out better
 */
#if defined(GETRF_ITEM) || defined(GETRF_TEAM)
#include "unroll.h"

#define STEPS (M < N ? M : N)
#endif

#ifdef GETRF_ITEM
__kernel GROUP_OF(GROUP) void getrfnp_item(long lanes, long nm, __global REAL *A, long a0, long aps, __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + q / V * aps + q % V;
    lane a[M][N];
    int bad = 0;
    UNROLL for (int i = 0; i < M; i++)
        UNROLL for (int j = 0; j < N; j++) a[i][j] = lane_load(A, i * ARS + j * ACS);
    UNROLL for (int k = 0; k < STEPS; k++) {
        if (lane_is_zero(a[k][k]) && bad == 0) bad = k + 1;
        const lane r = pivot_recip(a[k][k]);
        UNROLL for (int i = k + 1; i < M; i++) {
            a[i][k] = lane_mul(a[i][k], r);
            UNROLL for (int j = k + 1; j < N; j++) a[i][j] = lane_fnma(a[i][k], a[k][j], a[i][j]);
        }
    }
    UNROLL for (int i = 1; i < M; i++)
        UNROLL for (int j = 0; j < N; j++) lane_store(A, i * ARS + j * ACS, a[i][j]);
    if (q < nm) info[q] = bad;
}
#endif

#ifdef GETRF_TEAM
#define AT_ONCE (PANEL ? COLUMNS : 1) /* columns of L that go through local memory together */
/* column j of this work-item in the matrix; which work-item has column k, and as which of its own */
#define COLUMN(j) (PANEL ? c * COLUMNS + (j) : c + (j) * TEAM)
#define OWNER(k) (PANEL ? (k) / COLUMNS : (k) % TEAM)
#define OWN(k) (PANEL ? (k) % COLUMNS : (k) / TEAM)

/* Where column k of L goes in local memory. */
#define LOCAL_COLUMN(k) (columns + ((k) / AT_ONCE % 2 * AT_ONCE + (k) % AT_ONCE) * (M * LANES))

/* Column k of L, this work-item's column o: scaled, and written to local memory. */
#define SCALE_COLUMN(k) { \
        __local lane *column = LOCAL_COLUMN(k); \
        const lane r = pivot_recip(a[OWN(k)][k]); \
        if (lane_is_zero(a[OWN(k)][k]) && bad == 0) bad = k + 1; \
        UNROLL3(M, SCALE_ROW, OWN(k), k) \
    }
#define SCALE_ROW(o, k, i) \
    if (i > k) { \
        a[o][i] = lane_mul(a[o][i], r); \
        column[i * LANES] = a[o][i]; \
    }

/* Columns of this work-item right of column k, minus column k of L times their row k. */
#define UPDATE(k) { \
        __local const lane *column = LOCAL_COLUMN(k); \
        const lane u = PANEL || c > OWNER(k) ? a[OWN(k)][k] : lane_real(0); \
        UNROLL3(M, UPDATE_ROW, OWN(k), k) \
    }
#define UPDATE_ROW(o, k, i) \
    if (i > k) { \
        const lane m = column[i * LANES]; \
        UNROLL4(COLUMNS, UPDATE_COLUMN, o, k, i) \
    }
#define UPDATE_COLUMN(o, k, i, j) \
    if (PANEL || j >= o) a[j][i] = lane_fnma(m, !PANEL && j == o ? u : a[j][k], a[j][i]);

#if PANEL
#define PANEL_SCALE(k0, s) if (k0 + s < STEPS) { SCALE_COLUMN(k0 + s) UNROLL3(M, PANEL_ROW, k0, s) }
#define PANEL_ROW(k0, s, i) if (i > k0 + s) { UNROLL4(COLUMNS, PANEL_COLUMN, k0, s, i) }
#define PANEL_COLUMN(k0, s, i, j) if (j > s) a[j][i] = lane_fnma(a[s][i], a[j][k0 + s], a[j][i]);
#define PANEL_UPDATE(k0, s) if (k0 + s < STEPS) UPDATE(k0 + s)
#define STEP(p) \
    if (p * COLUMNS < STEPS) { \
        if (c == p) { UNROLL2(COLUMNS, PANEL_SCALE, p * COLUMNS) } \
        barrier(CLK_LOCAL_MEM_FENCE); \
        if (c > p) { UNROLL2(COLUMNS, PANEL_UPDATE, p * COLUMNS) } \
    }
#define ALL_STEPS UNROLL1(TEAM, STEP)
#else
#define STEP(k) \
    if (k < STEPS) { \
        if (c == OWNER(k)) SCALE_COLUMN(k) \
        barrier(CLK_LOCAL_MEM_FENCE); \
        UPDATE(k) \
    }
#define ALL_STEPS UNROLL1(N, STEP)
#endif

__kernel GROUP_OF(LANES * TEAM) void getrfnp_team(long lanes, long nm, __global REAL *A, long a0, long aps,
                                                  __global int *info)
{
    __local lane l_columns[2 * AT_ONCE * M * LANES];
    __local int zero[TEAM * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + q / V * aps + q % V;
    __local lane *columns = l_columns + l;
    lane a[COLUMNS][M];
    int bad = 0;
#define LOAD(i, j) a[j][i] = lane_load(A, i * ARS + min(COLUMN(j), N - 1) * ACS);
#define LOAD_ROW(i) UNROLL2(COLUMNS, LOAD, i)
#define STORE(i, j) if (i > 0 && COLUMN(j) < N) lane_store(A, i * ARS + COLUMN(j) * ACS, a[j][i]);
#define STORE_ROW(i) UNROLL2(COLUMNS, STORE, i)
    UNROLL1(M, LOAD_ROW)
    ALL_STEPS
    UNROLL1(M, STORE_ROW)
    zero[c * LANES + l] = bad;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (c == 0 && q < nm) {
        for (int i = 1; i < TEAM; i++) {
            const int other = zero[i * LANES + l];
            if (other && (bad == 0 || other < bad)) bad = other;
        }
        info[q] = bad;
    }
}
#endif

#endif
