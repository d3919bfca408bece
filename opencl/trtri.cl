/* trtri: A <- inv(A), A lower triangular, for one lane (pack level) and for a batch (define TRTRI_BATCH).
 *
 * A is n x n, and its lower triangle all that is read and written; an upper one is the lower one of the transposed
 * matrix. The inverse X is solved for from A X = I row by row, each from left to right, so that it takes the place of A.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item inverts one lane.
 */
#ifndef CLA_TRTRI_CL
#define CLA_TRTRI_CL

#include "trsm.cl"

#if CLA_COLS != CLA_TILE
#error "trtri inverts square tiles"
#endif

/* The register level: x <- x t, t lower triangular, for an x of which so many columns count */
CLA_INLINE cla_tile cla_tile_times_triangle(cla_tile x, cla_square t, int columns)
{
#define SCALE(s, i, j) if (j == s) x.c##i##j = cla_lane_mul(x.c##i##j, t.c##s##s);
#define ADD(s, i, j) if (j > s && j < columns) x.c##i##s = cla_lane_fma(x.c##i##j, t.c##j##s, x.c##i##s);
#define COLUMN(s) CLA_SQUARE(SCALE, s) CLA_SQUARE(ADD, s)
    CLA_ACROSS(COLUMN)
#undef SCALE
#undef ADD
#undef COLUMN
    return x;
}

/* The tile of A at (p, q), and that of C <- A[p:, q:] T + A[p:, q + CLA_TILE:] A[q + CLA_TILE:, q:], T the triangle of
 * A at (q, q) with what `diag` says on its diagonal: the second product is of k columns and rows. */
CLA_INLINE cla_tile cla_tile_at(cla_matrix A, int p, int q, int n)
{
    const cla_lane one = cla_lane_real(1);
    return cla_tile_combine(one, cla_tile_zero(), one, A, p, n, q, n);
}
CLA_INLINE cla_tile cla_tile_product(cla_matrix A, int p, int q, int n, int diag, int k)
{
    const int behind = q + CLA_TILE;
    const cla_tile c = cla_tile_times_triangle(cla_tile_at(A, p, q, n), cla_triangle(A, q, n, diag), n - q);
    return cla_tile_multiply(c, cla_from(A, 0, behind), p, n, cla_from(A, behind, 0), q, n, k);
}

/* diag is CLA_NONUNIT or CLA_UNIT: ones, which are neither read nor written.
 * Returns 0 or 1 + the index of the first zero on the diagonal. */
CLA_INLINE int cla_trtri(int n, int diag, cla_matrix A)
{
    const cla_lane one = cla_lane_real(1), zero = cla_lane_real(0);
    int info = 0;
    for (int p = 0; p < n; p += CLA_TILE) {
        const cla_square d = cla_triangle(A, p, n, diag);
        cla_tile x = cla_tile_zero();
        for (int i = p; i < min(p + CLA_TILE, n); i++)
            if (diag == CLA_NONUNIT && info == 0 && cla_lane_is_zero(cla_get(A, i, i))) info = i + 1;
        for (int q = 0; q < p; q += CLA_TILE) {
            x = cla_tile_product(A, p, q, n, diag == CLA_UNIT ? CLA_UNIT : CLA_RECIPROCAL, p - q - CLA_TILE);
            x = cla_tile_combine(-one, x, zero, A, p, n, q, n);
            cla_tile_store(cla_tile_solve(d, x), A, p, n, q, n);
        }
#define IDENTITY(s, i, j) x.c##i##j = i == j ? one : zero;
#define STORE(s, i, j) \
    if ((i > j || (i == j && diag == CLA_NONUNIT)) && p + i < n) cla_set(A, p + i, p + j, x.c##i##j);
        CLA_SQUARE(IDENTITY, 0)
        x = cla_tile_solve(d, x);
        CLA_SQUARE(STORE, 0)
#undef IDENTITY
#undef STORE
    }
    return info;
}

#ifdef TRTRI_BATCH
/* info[q] for the first nm lanes, those that hold a matrix; aconj is 0: A is as it is */
__kernel void trtri_batch(long lanes, long nm, long n, long diag, CLA_OPERAND(CLA_REAL *A, a), __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int first = cla_trtri(n, diag, CLA_MATRIX(A, a, q, 0));
    if (q < nm) info[q] = first;
}
#endif

/* Batches whose size and strides are known when this is compiled: define N and, in numbers, ARS, ACS; DIAG, what the
 * diagonal holds. Nothing but the triangle is moved. Tunables:
 *
 * TRTRI_ITEM  one work-item a matrix, all of its triangle in registers: N (N + 1) / 2 lanes
 *   GROUP     work-items of a work-group
 * TRTRI_TEAM  one work-group for LANES matrices of a pack: the triangle goes to local memory, N (N + 1) / 2 lanes for
 *             each matrix; a work-item solves for COLUMNS columns of the inverse, TEAM apart, in registers: COLUMNS N
 *             lanes. A work-group has LANES TEAM work-items.
 *   LANES     matrices of a work-group, a divisor of V
 *   COLUMNS   columns of a work-item
 *   TEAM      work-items of a matrix, ceil(N / COLUMNS)
 */
#ifdef TRTRI_ITEM
#include "known.h"

__kernel CLA_GROUP_OF(GROUP) void trtri_item(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                             __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    cla_lane a[N][N];
    int bad = 0;
    CLA_UNROLL for (int i = 0; i < N; i++) {
        CLA_UNROLL for (int j = 0; j < i; j++) a[i][j] = cla_lane_load(A, i * ARS + j * ACS);
        a[i][i] = DIAG == CLA_UNIT ? cla_lane_real(1) : cla_lane_load(A, i * (ARS + ACS));
        if (DIAG != CLA_UNIT) {
            if (bad == 0 && cla_lane_is_zero(a[i][i])) bad = i + 1;
            a[i][i] = cla_lane_recip(a[i][i]);
        }
    }
    CLA_UNROLL for (int i = 1; i < N; i++)
        CLA_UNROLL for (int j = 0; j < i; j++) {
            cla_lane x = DIAG == CLA_UNIT ? a[i][j] : cla_lane_mul(a[i][j], a[j][j]);
            CLA_UNROLL for (int k = j + 1; k < i; k++) x = cla_lane_fma(a[i][k], a[k][j], x);
            a[i][j] = DIAG == CLA_UNIT ? CLA_MINUS(x) : cla_lane_mul(CLA_MINUS(x), a[i][i]);
        }
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j < i + (DIAG != CLA_UNIT); j++) cla_lane_store(A, i * ARS + j * ACS, a[i][j]);
    if (q < nm) info[q] = bad;
}
#endif

#ifdef TRTRI_TEAM
#include "known.h"

#define BELOW(i, j) ((i) * ((i) + 1) / 2 + (j)) /* where element (i, j) of the triangle is in local memory */

__kernel CLA_GROUP_OF(LANES * TEAM) void trtri_team(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                    __global int *info)
{
    __local cla_lane triangle_part[BELOW(N, 0) * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    CLA_LOCAL cla_lane *triangle = triangle_part + l;
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j0 = 0; j0 < i + (DIAG != CLA_UNIT); j0 += TEAM)
            if (j0 + c < i + (DIAG != CLA_UNIT)) triangle[BELOW(i, j0 + c) * LANES] = cla_lane_load(A, i * ARS + (j0 + c) * ACS);
    barrier(CLK_LOCAL_MEM_FENCE);
    int bad = 0;
    cla_lane x[COLUMNS][N];
    CLA_UNROLL for (int i = 0; i < N; i++) {
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) x[j][i] = cla_lane_real(i == j * TEAM + c);
        CLA_UNROLL for (int k = 0; k < i; k++) {
            const cla_lane a = triangle[BELOW(i, k) * LANES];
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
                if (k >= j * TEAM) x[j][i] = cla_lane_fnma(a, x[j][k], x[j][i]);
        }
        if (DIAG != CLA_UNIT) {
            const cla_lane d = triangle[BELOW(i, i) * LANES], r = cla_lane_recip(d);
            if (bad == 0 && cla_lane_is_zero(d)) bad = i + 1;
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++) x[j][i] = cla_lane_mul(x[j][i], r);
        }
    }
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            if (i >= j * TEAM && i + (DIAG != CLA_UNIT) > j * TEAM + c)
                cla_lane_store(A, i * ARS + (j * TEAM + c) * ACS, x[j][i]);
    if (c == 0 && q < nm) info[q] = bad;
}
#endif

#endif
