/* potrf: A <- L with A = L L^H, for one lane (pack level) and for a batch (define POTRF_BATCH).
 *
 * A is n x n, and its lower triangle all that is read and written; imaginary parts on its diagonal count as 0 and
 * become 0. An upper triangle is the lower one of the conjugated transposed matrix. Left-looking over tiles on the
 * diagonal: a tile is brought up to date and factored, then the columns below it are solved as rows of that matrix.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item factors one lane.
 */
#ifndef CLA_POTRF_CL
#define CLA_POTRF_CL

#include "trsm.cl"

#if CLA_COLS != CLA_TILE
#error "potrf factors square tiles"
#endif

/* The root of pivot k, and its reciprocal *r. One that is not positive, or NaN, stays as it is, with 1 for the
 * reciprocal; the first of these makes info 1 + k. */
CLA_INLINE CLA_REAL cla_root(CLA_REAL a, int k, int *info, CLA_REAL *r)
{
    const int good = a > 0;
    const CLA_REAL pivot = good ? a : 1;
    if (!good && *info == 0) *info = k + 1;
    *r = cla_lane_rsqrt(pivot);
    return good ? cla_lane_sqrt(pivot) : a;
}

/* Step k in a tile, or in the registers of a work-item, where AT(i, j) is element (i, j) and EACH_ROW and EACH_COLUMN
 * are as in elimination.h: the pivot, column k below it, and what is right of that. KEEP(k) may use 1 / pivot, r. */
#define FACTOR(k) { \
        CLA_REAL r; \
        AT(k, k) = cla_lane_real(cla_root(cla_lane_re(AT(k, k)), k, &bad, &r)); \
        EACH_ROW(DIVIDE, k, k) \
        EACH_ROW(UPDATE_ROW, k, k) \
        KEEP(k) \
    }
#define DIVIDE(k, s, i) if (i > k) AT(i, s) = AT(i, s) * r;
#define UPDATE_ROW(k, s, i) EACH_COLUMN(UPDATE, k, s, i)
#define UPDATE(k, s, i, j) if (j > k && i >= j) AT(i, j) = cla_lane_fnma(AT(i, s), cla_lane_conj(AT(j, s)), AT(i, j));

/* The register level: the lower triangle d <- L, and l = L as cla_tile_solve takes it, with reciprocals on the
 * diagonal. Only the first `pivots` pivots count. Returns 0 or 1 + the index of the first bad one among them. */
CLA_INLINE int cla_tile_cholesky(int pivots, cla_tile *d, cla_square *l)
{
    int bad = 0;
#define AT(i, j) d->c##i##j
#define EACH_ROW(F, k, s) CLA_UNROLL3(CLA_TILE, F, k, s)
#define EACH_COLUMN(F, k, s, i) CLA_UNROLL4(CLA_TILE, F, k, s, i)
#define KEEP(k) l->c##k##k = cla_lane_real(r);
#define KEEP_BELOW(s, i, j) if (i > j) l->c##i##j = AT(i, j);
    CLA_DOWN(FACTOR)
    CLA_SQUARE(KEEP_BELOW, 0)
#undef AT
#undef EACH_ROW
#undef EACH_COLUMN
#undef KEEP
#undef KEEP_BELOW
    return bad > pivots ? 0 : bad;
}

/* Returns 0 or 1 + the index of the first pivot that is not positive, or NaN. */
CLA_INLINE int cla_potrf(int n, cla_matrix A)
{
    const cla_matrix Ah = cla_conjugated(cla_transposed(A));
    int info = 0;
    for (int p = 0; p < n; p += CLA_TILE) {
        cla_tile d = cla_tile_multiply(cla_tile_zero(), A, p, n, Ah, p, n, p);
        cla_square l;
#define ROW_AT(i) const int at##i = min(p + i, n - 1);
#define LOAD(s, i, j) if (i >= j) d.c##i##j = cla_get(A, at##i, at##j) - d.c##i##j;
#define STORE(s, i, j) if (i >= j && p + i < n) cla_set(A, p + i, p + j, d.c##i##j);
        CLA_DOWN(ROW_AT)
        CLA_SQUARE(LOAD, 0)
        const int bad = cla_tile_cholesky(n - p, &d, &l);
        if (bad && !info) info = p + bad;
        CLA_SQUARE(STORE, 0)
#undef ROW_AT
#undef LOAD
#undef STORE
        cla_substitute_rows(l, p, n, p + CLA_TILE, n, A, Ah, cla_lane_real(1), Ah, 0, A, Ah);
    }
    return info;
}

#ifdef POTRF_BATCH
/* info[q] for the first nm lanes, those that hold a matrix */
__kernel void potrf_batch(long lanes, long nm, long n, CLA_OPERAND(CLA_REAL *A, a), __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int first = cla_potrf(n, CLA_MATRIX(A, a, q, aconj));
    if (q < nm) info[q] = first;
}
#endif

/* Batches whose size and strides are known when this is compiled: define N and, in numbers, ARS, ACS; ACONJ, 1 if
 * memory holds the conjugates of A. Nothing but the triangle is moved. Tunables:
 *
 * POTRF_ITEM  one work-item a matrix, all of its triangle in registers: N (N + 1) / 2 lanes
 *   GROUP     work-items of a work-group
 * POTRF_TEAM  one work-group for LANES matrices of a pack; a work-item keeps COLUMNS columns in registers, COLUMNS N
 *             lanes at most, and the columns of L go through local memory, two of them, or with PANEL 2 COLUMNS, at a
 *             time: that many N LANES lanes, and LANES ints. A work-group has LANES TEAM work-items.
 *   LANES     matrices of a work-group, a divisor of V
 *   COLUMNS   columns of a work-item
 *   TEAM      work-items of a matrix, ceil(N / COLUMNS)
 *   PANEL     1: they are neighbours and factored at once, which takes fewer barriers; 0: they are TEAM apart, which
 *             shares the work out better
 */
#if defined(POTRF_ITEM) || defined(POTRF_TEAM)
#include "known.h"
#ifndef PANEL
#define PANEL 0
#endif

#define GET_A(i, j) cla_lane_load_as(ACONJ, A, (i) * ARS + (j) * ACS)
#define PUT_A(i, j, a) cla_lane_store_as(ACONJ, A, (i) * ARS + (j) * ACS, a)
#endif

#ifdef POTRF_ITEM
__kernel CLA_GROUP_OF(GROUP) void potrf_item(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                             __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    cla_lane a[N][N];
    int bad = 0;
#define AT(i, j) a[i][j]
#define EACH_ROW(F, k, s) CLA_UNROLL for (int i = k + 1; i < N; i++) F(k, s, i)
#define EACH_COLUMN(F, k, s, i) CLA_UNROLL for (int j = k + 1; j <= i; j++) F(k, s, i, j)
#define KEEP(k)
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j <= i; j++) AT(i, j) = GET_A(i, j);
    CLA_UNROLL for (int k = 0; k < N; k++) FACTOR(k)
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j <= i; j++) PUT_A(i, j, AT(i, j));
    if (q < nm) info[q] = bad;
}
#endif

#undef FACTOR
#undef DIVIDE
#undef UPDATE_ROW
#undef UPDATE

#ifdef POTRF_TEAM
#define AT_ONCE (PANEL ? COLUMNS : 1) /* columns of L that go through local memory together */
/* element (i, column j of this work-item); which column of the matrix that is, and the first that it can be; which
 * work-item has column k, and as which of its own */
#define AT(i, j) a[j][i]
#define COLUMN(j) (PANEL ? c * COLUMNS + (j) : c + (j) * TEAM)
#define FIRST(j) (PANEL ? (j) : (j) * TEAM)
#define OWNER(k) (PANEL ? (k) / COLUMNS : (k) % TEAM)
#define OWN(k) (PANEL ? (k) % COLUMNS : (k) / TEAM)

/* Where column k of L goes in local memory. */
#define LOCAL_COLUMN(k) (columns + ((k) / AT_ONCE % 2 * AT_ONCE + (k) % AT_ONCE) * (N * LANES))

/* l for column j of this work-item if that is right of column k of the matrix, else 0: it is done already. */
#define IF_RIGHT(k, j, l) (PANEL || (j) > (k) / TEAM || c > (k) % TEAM ? (l) : cla_lane_real(0))

/* The elements of this work-item, moved. NVIDIA's compiler takes fewer registers for loops where columns lie apart, and
 * more where they are neighbours: for n = 24 just too many, so that an SM holds 12 warps, not 16. */
#define LOAD(i, j) if (i >= FIRST(j)) AT(i, j) = i >= COLUMN(j) ? GET_A(i, COLUMN(j)) : cla_lane_real(0);
#define STORE(i, j) if (i >= FIRST(j) && i >= COLUMN(j)) PUT_A(i, COLUMN(j), AT(i, j));
#if PANEL
#define LOAD_ROW(i) CLA_UNROLL2(COLUMNS, LOAD, i)
#define STORE_ROW(i) CLA_UNROLL2(COLUMNS, STORE, i)
#define EACH(F) CLA_UNROLL1(N, F##_ROW)
#else
#define EACH(F) \
    CLA_UNROLL for (int i = 0; i < N; i++) \
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) F(i, j)
#endif

__kernel CLA_GROUP_OF(LANES * TEAM) void potrf_team(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                    __global int *info)
{
    __local cla_lane l_columns[2 * AT_ONCE * N * LANES];
    __local int first_bads[LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    CLA_LOCAL cla_lane *columns = l_columns + l;
    CLA_LOCAL int *first_bad = first_bads + l;
    cla_lane a[COLUMNS][N];
    int bad = 0;
    EACH(LOAD)
#define STEP 0
#include "potrf_step.h"
#include "potrf_step.h"
#include "potrf_step.h"
#include "potrf_step.h"
#undef STEP
    EACH(STORE)
    if (c == OWNER(N - 1) && q < nm) info[q] = bad;
}
#endif

#endif
