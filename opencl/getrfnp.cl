/* getrfnp: A <- L\U without pivoting for one lane (pack level) and for a batch (define GETRFNP_BATCH).
 *
 * A is m x n; L is unit lower trapezoidal, U upper. Left-looking over tiles on the diagonal: a tile is brought up to
 * date and factored, then the rows right of it and, as the transposed problem, the columns below it are solved, so
 * that every element is read and written once.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item factors one lane.
 */
#ifndef CLA_GETRFNP_CL
#define CLA_GETRFNP_CL

#include "elimination.h"
#include "trsm.cl"

#if CLA_COLS != CLA_TILE
#error "getrfnp factors square tiles"
#endif

/* The register level: d <- L\U, and its factors as cla_tile_solve takes them: l = L, u = U transposed, with reciprocals
 * on the diagonals. Only the first `pivots` pivots count, which move away from zero by `tiny`. Returns 0 or 1 + the index
 * of the first zero among them. */
CLA_INLINE int cla_tile_factor(int pivots, int diag, CLA_REAL tiny, cla_tile *d, cla_square *l, cla_square *u)
{
    int info = 0;
#define AT(i, j) d->c##i##j
#define SET(i, j, x) AT(i, j) = x;
#define EACH_ROW(F, k, s) CLA_UNROLL3(CLA_TILE, F, k, s)
#define EACH_COLUMN(F, k, s, i) CLA_UNROLL4(CLA_TILE, F, k, s, i)
#define STEP(k) { \
        if (tiny != 0) AT(k, k) = cla_away_from_zero(AT(k, k), tiny); \
        const cla_lane r = cla_pivot(AT(k, k), k, &info); \
        u->c##k##k = r; \
        if (diag == CLA_RECIPROCAL) AT(k, k) = r; \
        CLA_ELIMINATE(k, k) \
    }
#define SPLIT(s, i, j) \
    l->c##i##j = i > j ? AT(i, j) : cla_lane_real(1); \
    if (i > j) u->c##i##j = AT(j, i);
    CLA_DOWN(STEP)
    CLA_SQUARE(SPLIT, 0)
#undef AT
#undef SET
#undef EACH_ROW
#undef EACH_COLUMN
#undef STEP
#undef SPLIT
    return info > pivots ? 0 : info;
}

/* diag is CLA_NONUNIT (the pivots are stored) or CLA_RECIPROCAL (their reciprocals are, 1 for a zero pivot). Pivots move
 * away from zero by `tiny`. Returns 0 or 1 + the index of the first pivot that is exactly zero then. */
CLA_INLINE int cla_getrfnp_away(int m, int n, int diag, CLA_REAL tiny, cla_matrix A)
{
    const cla_matrix At = cla_transposed(A);
    const cla_lane one = cla_lane_real(1);
    int info = 0;
    for (int p = 0; p < min(m, n); p += CLA_TILE) {
        cla_tile d = cla_tile_multiply(cla_tile_zero(), A, p, m, A, p, n, p);
        d = cla_tile_combine(-one, d, one, A, p, m, p, n);
        cla_square l, u;
        const int zero = cla_tile_factor(min(m, n) - p, diag, tiny, &d, &l, &u);
        if (zero && !info) info = p + zero;
        cla_tile_store(d, A, p, m, p, n);
        cla_substitute_rows(l, p, m, p + CLA_TILE, n, A, A, one, A, 0, A, A);
        cla_substitute_rows(u, p, n, p + CLA_TILE, m, At, At, one, At, 0, At, At);
    }
    return info;
}

CLA_INLINE int cla_getrfnp(int m, int n, int diag, cla_matrix A) { return cla_getrfnp_away(m, n, diag, 0, A); }

#ifdef GETRFNP_BATCH
/* info[q] for the first nm lanes, those that hold a matrix; aconj is 0: A is as it is */
__kernel void getrfnp_batch(long lanes, long nm, long m, long n, CLA_SCALAR(tiny), CLA_OPERAND(CLA_REAL *A, a),
                            __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int first = cla_getrfnp_away(m, n, CLA_NONUNIT, tiny, CLA_MATRIX(A, a, q, 0));
    if (q < nm) info[q] = first;
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in numbers, ARS, ACS; TINY, 0 if
 * `tiny` is 0, else 1. The first row is U's as it is, and then never written. Tunables:
 *
 * GETRFNP_ITEM  one work-item a matrix, all of it in registers
 *   GROUP     work-items of a work-group
 * GETRFNP_TEAM  one work-group for LANES matrices of a pack; a work-item keeps COLUMNS columns in registers, and the
 *             columns of L go through local memory.
 *   LANES     matrices of a work-group, a divisor of V
 *   COLUMNS   columns of a work-item
 *   TEAM      work-items of a matrix, ceil(N / COLUMNS)
 *   PANEL     1: they are neighbours and factored at once, which takes fewer barriers; 0: they are TEAM apart, which
 *             shares the work out better
 */
#if defined(GETRFNP_ITEM) || defined(GETRFNP_TEAM)
#include "known.h"
#ifndef TINY
#define TINY 1
#endif
#ifndef PANEL
#define PANEL 0
#endif

#include "unroll.h"

#define STEPS (M < N ? M : N)
#define MOVE_PIVOT(k, s) if (TINY) { SET(k, s, cla_away_from_zero(AT(k, s), tiny)) }
#endif

#ifdef GETRFNP_ITEM
__kernel CLA_GROUP_OF(GROUP) void getrfnp_item(long lanes, long nm, CLA_SCALAR(tiny), __global CLA_REAL *A, long a0,
                                               long aps, __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    cla_lane a[M][N];
    int bad = 0;
#define AT(i, j) a[i][j]
#define SET(i, j, x) AT(i, j) = x;
#define EACH_ROW(F, k, s) CLA_UNROLL for (int i = k + 1; i < M; i++) F(k, s, i)
#define EACH_COLUMN(F, k, s, i) CLA_UNROLL for (int j = s + 1; j < N; j++) F(k, s, i, j)
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) a[i][j] = cla_lane_load(A, i * ARS + j * ACS);
    CLA_UNROLL for (int k = 0; k < STEPS; k++) {
        MOVE_PIVOT(k, k)
        const cla_lane r = cla_pivot(AT(k, k), k, &bad);
        CLA_ELIMINATE(k, k)
    }
    CLA_UNROLL for (int i = !TINY; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) cla_lane_store(A, i * ARS + j * ACS, a[i][j]);
    if (q < nm) info[q] = bad;
}
#endif

#ifdef GETRFNP_TEAM
#define AT_ONCE (PANEL ? COLUMNS : 1) /* columns of L that go through local memory together */
/* column j of this work-item in the matrix; which work-item has column k, and as which of its own */
#define COLUMN(j) (PANEL ? c * COLUMNS + (j) : CLA_COLUMN(j))
#define HAS(j) (N == COLUMNS * TEAM || COLUMN(j) < N)
#define OWNER(k) (PANEL ? (k) / COLUMNS : (k) % TEAM)
#define OWN(k) (PANEL ? (k) % COLUMNS : (k) / TEAM)

/* A work-item's columns of the matrix; what a step changes of them itself, which is the pivot's column and, of a panel,
 * those right of it. */
#define AT(i, j) a[j][i]
#define SET(i, j, x) AT(i, j) = x;
#define EACH_ROW(F, k, s) CLA_UNROLL for (int i = (k) + 1; i < M; i++) F(k, s, i)
#define EACH_COLUMN(F, k, s, i) if (PANEL) CLA_UNROLL for (int j = (s) + 1; j < COLUMNS; j++) F(k, s, i, j)

/* Where column k of L goes in local memory. */
#define LOCAL_COLUMN(k) (columns + ((k) / AT_ONCE % 2 * AT_ONCE + (k) % AT_ONCE) * (M * LANES))

__kernel CLA_GROUP_OF(LANES * TEAM) void getrfnp_team(long lanes, long nm, CLA_SCALAR(tiny), __global CLA_REAL *A,
                                                      long a0, long aps, __global int *info)
{
    __local cla_lane l_columns[2 * AT_ONCE * M * LANES];
    __local int zero[TEAM * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    CLA_LOCAL cla_lane *columns = l_columns + l;
    cla_lane a[COLUMNS][M];
    int bad = 0;
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            AT(i, j) = cla_lane_load_if(HAS(j), A, i * ARS + min(COLUMN(j), N - 1) * ACS);
#define STEP 0
#include "getrfnp_step.h"
#include "getrfnp_step.h"
#include "getrfnp_step.h"
#include "getrfnp_step.h"
#undef STEP
    CLA_UNROLL for (int i = !TINY; i < M; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            if (COLUMN(j) < N) cla_lane_store(A, i * ARS + COLUMN(j) * ACS, AT(i, j)); /* slower where it is known */
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
