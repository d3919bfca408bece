/* getrinp: A <- inv(A) with A = L\U as getrfnp left it, for one lane (pack level) and for a batch (define GETRINP_BATCH).
 *
 * A is n x n. Both triangles are inverted in place, and multiplied: row by row, each from left to right, the product
 * inv(U) inv(L) takes the place of what nothing needs any longer.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item inverts one lane.
 */
#ifndef CLA_GETRINP_CL
#define CLA_GETRINP_CL

#include "trtri.cl"

/* The register level: the product of the triangles that a square tile holds, the lower one with ones on its diagonal,
 * of which so many rows and columns count. */
CLA_INLINE cla_tile cla_tile_multiply_triangles(cla_tile x, int size)
{
#define TERM(i, j, k) if (k > i && k > j && k < size) x.c##i##j = cla_lane_fma(x.c##i##k, x.c##k##j, x.c##i##j);
#define CELL(i, j) \
    if (i > j) x.c##i##j = cla_lane_mul(x.c##i##i, x.c##i##j); \
    CLA_UNROLL3(CLA_TILE, TERM, i, j)
#define ROW(i) CLA_UNROLL2(CLA_TILE, CELL, i)
    CLA_DOWN(ROW)
#undef TERM
#undef CELL
#undef ROW
    return x;
}

/* Returns 0 or 1 + the index of the first zero on the diagonal of U. */
CLA_INLINE int cla_getrinp(int n, cla_matrix A)
{
    const cla_matrix At = cla_transposed(A);
    int info = 0;
    for (int unit = 0; unit < 2; unit++) info += cla_trtri(n, unit ? CLA_UNIT : CLA_NONUNIT, unit ? A : At);
    for (int p = 0; p < n; p += CLA_TILE)
        for (int q = 0; q < n; q += CLA_TILE) {
            const int behind = max(p, q) + CLA_TILE, right = q > p;
            if (p == q) {
                cla_tile x = cla_tile_multiply_triangles(cla_tile_at(A, p, p, n), n - p);
                x = cla_tile_multiply(x, cla_from(A, 0, behind), p, n, cla_from(A, behind, 0), p, n, n - behind);
                cla_tile_store(x, A, p, n, p, n);
            } else {
                const cla_matrix T = right ? A : At;
                const cla_tile x = cla_tile_product(T, min(p, q), max(p, q), n, right ? CLA_UNIT : CLA_RECIPROCAL,
                                                    n - behind);
                cla_tile_store(x, T, min(p, q), n, max(p, q), n);
            }
        }
    return info;
}

#ifdef GETRINP_BATCH
/* info[q] for the first nm lanes, those that hold a matrix; aconj is 0: A is as it is */
__kernel void getrinp_batch(long lanes, long nm, long n, CLA_OPERAND(CLA_REAL *A, a), __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int first = cla_getrinp(n, CLA_MATRIX(A, a, q, 0));
    if (q < nm) info[q] = first;
}
#endif

/* Batches whose size and strides are known when this is compiled: define N and, in numbers, ARS, ACS. Tunables:
 *
 * GETRINP_ITEM  one work-item a matrix, all of it in registers
 *   GROUP     work-items of a work-group
 * GETRINP_TEAM  one work-group for LANES matrices of a pack, which go to local memory; a work-item solves for COLUMNS
 *             columns of the inverse, TEAM apart, in registers: COLUMNS N lanes.
 *   LANES     matrices of a work-group, a divisor of V
 *   COLUMNS   columns of a work-item
 *   TEAM      work-items of a matrix, ceil(N / COLUMNS)
 */
#if defined(GETRINP_ITEM) || defined(GETRINP_TEAM)
#include "known.h"

#if CLA_SWAPS /* of getri.cl: column i becomes column order[i * STEP] */
#define SWAPS __global const int *restrict ipiv, long ipiv0, long ipivps,
#define ORDER(order, step) CLA_ORDER(N, ipiv + ipiv0 + cla_lane_place(q, ipivps), order, step)
#define TO(i) order[(i) * STEP]
#define FENCES (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE) /* a team stores columns that other members have loaded */
#else
#define SWAPS
#define TO(i) (i)
#define FENCES CLK_LOCAL_MEM_FENCE
#endif
#endif

#ifdef GETRINP_ITEM
#define AT(i, j) a[i][j]
__kernel CLA_GROUP_OF(GROUP) void getrinp_item(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                               SWAPS __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
#if CLA_SWAPS
#define STEP 1
    int order[N];
    ORDER(order, STEP)
#endif
    cla_lane a[N][N];
    int bad = 0;
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) AT(i, j) = cla_lane_load(A, i * ARS + j * ACS);
    CLA_UNROLL for (int i = 0; i < N; i++) { /* row i of inv(L), column i of inv(U) */
        if (bad == 0 && cla_lane_is_zero(AT(i, i))) bad = i + 1;
        AT(i, i) = cla_lane_recip(AT(i, i));
        CLA_UNROLL for (int j = 0; j < i; j++) {
            cla_lane l = AT(i, j), u = cla_lane_mul(AT(j, i), AT(j, j));
            CLA_UNROLL for (int k = j + 1; k < i; k++) {
                l = cla_lane_fma(AT(i, k), AT(k, j), l);
                u = cla_lane_fma(AT(k, i), AT(j, k), u);
            }
            AT(i, j) = CLA_MINUS(l);
            AT(j, i) = cla_lane_mul(CLA_MINUS(u), AT(i, i));
        }
    }
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) {
            cla_lane x = i > j ? cla_lane_mul(AT(i, i), AT(i, j)) : AT(i, j);
            CLA_UNROLL for (int k = (i > j ? i : j) + 1; k < N; k++) x = cla_lane_fma(AT(i, k), AT(k, j), x);
            AT(i, j) = x;
            cla_lane_store(A, i * ARS + TO(j) * ACS, x);
        }
    if (q < nm) info[q] = bad;
}
#undef AT
#endif

#ifdef GETRINP_TEAM
__kernel CLA_GROUP_OF(LANES * TEAM) void getrinp_team(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                      SWAPS __global int *info)
{
    __local cla_lane factors_part[N * N * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    CLA_LOCAL cla_lane *factors = factors_part + l;
#if CLA_SWAPS
#define STEP LANES
    __local int order_part[N * LANES];
    CLA_LOCAL int *order = order_part + l;
    if (c == 0) { ORDER(order, STEP) }
#endif
#define FACTOR(i, j) factors[((i) * N + (j)) * LANES]
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j0 = 0; j0 < N; j0 += TEAM)
            if (j0 + c < N) FACTOR(i, j0 + c) = cla_lane_load(A, i * ARS + (j0 + c) * ACS);
    barrier(FENCES);
    int bad = 0;
    cla_lane x[COLUMNS][N];
    CLA_UNROLL for (int i = 0; i < N; i++) {
        CLA_FORGET
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) x[j][i] = cla_lane_real(i == j * TEAM + c);
        CLA_UNROLL for (int k = 0; k < i; k++) {
            const cla_lane a = FACTOR(i, k);
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
                if (k >= j * TEAM) x[j][i] = cla_lane_fnma(a, x[j][k], x[j][i]);
        }
    }
    CLA_UNROLL for (int i = N - 1; i >= 0; i--) {
        CLA_FORGET
        const cla_lane d = FACTOR(i, i), r = cla_lane_recip(d);
        if (cla_lane_is_zero(d)) bad = i + 1;
        CLA_UNROLL for (int k = i + 1; k < N; k++) {
            const cla_lane a = FACTOR(i, k);
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++) x[j][i] = cla_lane_fnma(a, x[j][k], x[j][i]);
        }
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) x[j][i] = cla_lane_mul(x[j][i], r);
    }
#undef FACTOR
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            if (CLA_HAS_COLUMN(j, N)) cla_lane_store(A, i * ARS + TO(CLA_COLUMN(j)) * ACS, x[j][i]);
    if (c == 0 && q < nm) info[q] = bad;
}
#endif

#endif
