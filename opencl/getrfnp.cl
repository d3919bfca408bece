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
 * on the diagonals. Only the first `pivots` pivots count. Returns 0 or 1 + the index of the first zero among them. */
CLA_INLINE int cla_tile_factor(int pivots, int diag, cla_tile *d, cla_square *l, cla_square *u)
{
    int info = 0;
#define AT(i, j) d->c##i##j
#define SET(i, j, x) AT(i, j) = x;
#define EACH_ROW(F, k, s) CLA_UNROLL3(CLA_TILE, F, k, s)
#define EACH_COLUMN(F, k, s, i) CLA_UNROLL4(CLA_TILE, F, k, s, i)
#define STEP(k) { \
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

/* diag is CLA_NONUNIT (the pivots are stored) or CLA_RECIPROCAL (their reciprocals are, 1 for a zero pivot).
 * Returns 0 or 1 + the index of the first pivot that is exactly zero. */
CLA_INLINE int cla_getrfnp(int m, int n, int diag, cla_matrix A)
{
    const cla_matrix At = cla_transposed(A);
    const cla_lane one = cla_lane_real(1);
    int info = 0;
    for (int p = 0; p < min(m, n); p += CLA_TILE) {
        cla_tile d = cla_tile_multiply(cla_tile_zero(), A, p, m, A, p, n, p);
        d = cla_tile_combine(-one, d, one, A, p, m, p, n);
        cla_square l, u;
        const int zero = cla_tile_factor(min(m, n) - p, diag, &d, &l, &u);
        if (zero && !info) info = p + zero;
        cla_tile_store(d, A, p, m, p, n);
        cla_substitute_rows(l, p, m, p + CLA_TILE, n, A, A, one, A, 0, A, A);
        cla_substitute_rows(u, p, n, p + CLA_TILE, m, At, At, one, At, 0, At, At);
    }
    return info;
}

#ifdef GETRFNP_BATCH
/* info[q] for the first nm lanes, those that hold a matrix; aconj is 0: A is as it is */
__kernel void getrfnp_batch(long lanes, long nm, long m, long n,
                            __global CLA_REAL *A, long a0, long aps, long ars, long acs, long aconj,
                            __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int first = cla_getrfnp(m, n, CLA_NONUNIT, cla_matrix_of_packs(A, q, a0, aps, ars, acs, 0));
    if (q < nm) info[q] = first;
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in numbers, ARS, ACS. The first row
 * is U's as it is and never written. Tunables:
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
 *   LOOPS     loops over the members of the team, once or, without PANEL, for each of their columns: a loop treats its
 *             first step's rows in all steps, more of them are more code
 */
#if defined(GETRFNP_ITEM) || defined(GETRFNP_TEAM)
#include "unroll.h"

#define STEPS (M < N ? M : N)
#endif

#ifdef GETRFNP_ITEM
__kernel CLA_GROUP_OF(GROUP) void getrfnp_item(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                               __global int *info)
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
        const cla_lane r = cla_pivot(AT(k, k), k, &bad);
        CLA_ELIMINATE(k, k)
    }
    CLA_UNROLL for (int i = 1; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) cla_lane_store(A, i * ARS + j * ACS, a[i][j]);
    if (q < nm) info[q] = bad;
}
#endif

#ifdef GETRFNP_TEAM
#define AT_ONCE (PANEL ? COLUMNS : 1) /* columns of L of a round, which go through local memory together */
#define COLUMN(j) (PANEL ? c * COLUMNS + (j) : c + (j) * TEAM) /* column j of this work-item in the matrix */
#define ROUNDS ((TEAM + LOOPS - 1) / LOOPS) /* of a loop; the columns that come before those of loop q in pass p: */
#define BEFORE(p, q) (PANEL ? (q) * ROUNDS * COLUMNS : (p) * TEAM + (q) * ROUNDS)

/* What is left of a work-item's columns in a round, LEFT rows at most; where the pivot of its column s is then. */
#define AT(i, j) a[j][i]
#define SET(i, j, x) AT(i, j) = x;
#define TOP(s) (PANEL ? (s) : 0)
#define EACH_ROW(F, k, s) CLA_UNROLL3(M, IF_LEFT, F, s)
#define IF_LEFT(F, s, i) if (i < LEFT) { F(TOP(s), s, i) }
#define EACH_COLUMN(F, k, s, i) if (PANEL) { CLA_UNROLL4(COLUMNS, F, k, s, i) }

/* The step of a column of L in the work-item that has it, as its column s: the column goes to local memory. */
#define SHARED(s) (columns + ((first / AT_ONCE) % 2 * AT_ONCE + TOP(s)) * (M * LANES))
#define OWN_STEP(s) \
    if (first + TOP(s) < STEPS) { \
        const cla_lane r = cla_pivot(AT(TOP(s), s), first + TOP(s), &bad); \
        CLA_ELIMINATE(TOP(s), s) \
        EACH_ROW(SHARE, TOP(s), s) \
    }
#define SHARE(k, s, i) if (i > k) SHARED(s)[i * LANES] = AT(i, s);

/* The step in work-items with columns right of it. What it changes of others is never looked at. */
#define UPDATE(s) if (first + TOP(s) < STEPS) { EACH_ROW(UPDATE_ROW, TOP(s), s) }
#define UPDATE_ROW(k, s, i) \
    if (i > k) { \
        const cla_lane l = SHARED(s)[i * LANES]; \
        CLA_UNROLL4(COLUMNS, UPDATE_COLUMN, k, s, i) \
    }
#define UPDATE_COLUMN(k, s, i, j) if (PANEL || j >= s) AT(i, j) = cla_lane_fnma(l, AT(k, j), AT(i, j));

/* What a step has made: a row of U, and a column of L, which the team shares out. */
#define STORE(s) \
    if (first + TOP(s) < STEPS) { \
        const int k = first + TOP(s); \
        if (k > 0) { CLA_UNROLL3(COLUMNS, STORE_COLUMN, s, 0) } \
        for (int i = k + 1 + c; i < M; i += TEAM) \
            cla_lane_store(A, i * ARS + k * ACS, SHARED(s)[(i - first) * LANES]); \
    }
#define STORE_COLUMN(s, unused, j) \
    if ((PANEL || j >= s) && COLUMN(j) >= k && COLUMN(j) < N) \
        cla_lane_store(A, k * ARS + COLUMN(j) * ACS, AT(TOP(s), j));

#define SHIFT_ROW(i) CLA_UNROLL4(COLUMNS, SHIFT, 0, 0, i)
#define SHIFT(unused, none, i, j) if (i + AT_ONCE < LEFT) AT(i, j) = AT((i + AT_ONCE) % M, j);

#define LOOP(p, q) { \
        enum { LEFT = M - BEFORE(p, q) }; \
        CLA_NO_UNROLL for (int t = q * ROUNDS; t < min((q + 1) * ROUNDS, LAST(p)); t++) { \
            const int first = PANEL ? t * COLUMNS : p * TEAM + t; \
            if (c == t) { EACH_STEP(OWN_STEP, p) } \
            barrier(CLK_LOCAL_MEM_FENCE); \
            if (!PANEL || c > t) { EACH_STEP(UPDATE, p) } \
            EACH_STEP(STORE, p) \
            CLA_UNROLL3(M, SHIFT_ROW_OF, 0, 0) \
        } \
    }
#define SHIFT_ROW_OF(unused, none, i) SHIFT_ROW(i)

#if PANEL
#define LAST(p) ((STEPS + COLUMNS - 1) / COLUMNS) /* rounds */
#define EACH_STEP(F, p) CLA_UNROLL2(COLUMNS, CALL, F)
#define CALL(F, s) F(s)
#define PANELS(q) LOOP(0, q)
#define ALL_STEPS CLA_UNROLL1(LOOPS, PANELS)
#else
#define LAST(p) min(TEAM, STEPS - p * TEAM)
#define EACH_STEP(F, p) F(p)
#define PASS(p) CLA_UNROLL2(LOOPS, LOOP, p)
#define ALL_STEPS CLA_UNROLL1(COLUMNS, PASS)
#endif

__kernel CLA_GROUP_OF(LANES * TEAM) void getrfnp_team(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                      __global int *info)
{
    __local cla_lane l_columns[2 * AT_ONCE * M * LANES];
    __local int zero[TEAM * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    CLA_LOCAL cla_lane *columns = l_columns + l;
    cla_lane a[COLUMNS][M];
    int bad = 0;
#define LOAD(i, j) AT(i, j) = cla_lane_load(A, i * ARS + min(COLUMN(j), N - 1) * ACS);
#define LOAD_ROW(i) CLA_UNROLL2(COLUMNS, LOAD, i)
    CLA_UNROLL1(M, LOAD_ROW)
    ALL_STEPS
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
