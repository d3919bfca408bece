/* getrf: A <- L\U with row interchanges, for one lane (pack level) and for a batch (define GETRF_BATCH).
 *
 * A is m x n; L is unit lower trapezoidal, U upper. In column k the first row is taken of those with the largest
 * |re| + |im|, or row k where that is at least `threshold` times as large, and swapped with row k; which it was, is
 * number k of `ipiv`, of ints that are CLA_VLEN apart.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V], its ints likewise; one work-item factors one lane.
 */
#ifndef CLA_GETRF_CL
#define CLA_GETRF_CL

#include "elimination.h"
#include "laswp.h"

/* The rows of B, of which there are m too and r columns, are swapped with those of A; `ipiv` may be 0. Returns 0 or 1 +
 * the index of the first pivot that is exactly zero. */
CLA_INLINE int cla_getrf(int m, int n, CLA_REAL threshold, cla_matrix A, __global int *ipiv, int r, cla_matrix B)
{
    int info = 0;
#define AT(i, j) cla_get(A, i, j)
#define SET(i, j, x) cla_set(A, i, j, x);
#define EACH_ROW(F, k, s) for (int i = k + 1; i < m; i++) F(k, s, i)
#define EACH_COLUMN(F, k, s, i) for (int j = s + 1; j < n; j++) F(k, s, i, j)
    for (int k = 0; k < min(m, n); k++) {
        const int place = cla_largest_below(k, m, threshold, A);
        if (ipiv) cla_int_store(ipiv, k, place);
        cla_swap_rows(k, place, n, A);
        cla_swap_rows(k, place, r, B);
        const cla_lane r = cla_pivot(AT(k, k), k, &info);
        CLA_ELIMINATE(k, k)
    }
#undef AT
#undef SET
#undef EACH_ROW
#undef EACH_COLUMN
    return info;
}

#ifdef GETRF_BATCH
/* info[q] for the first nm lanes, those that hold a matrix; aconj is 0: A is as it is */
__kernel void getrf_batch(long lanes, long nm, long m, long n, CLA_SCALAR(threshold), CLA_OPERAND(CLA_REAL *A, a),
                          CLA_OPERAND(int *ipiv, ipiv), __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const cla_matrix a = CLA_MATRIX(A, a, q, 0);
    const int first = cla_getrf(m, n, threshold, a, ipiv + ipiv0 + cla_lane_place(q, ipivps), 0, a);
    if (q < nm) info[q] = first;
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in numbers, ARS, ACS; THRESHOLD, 0
 * if the threshold is 1, else 1. Tunables:
 *
 * GETRF_ITEM  one work-item a matrix, all of it in registers, where rows are swapped by selecting
 *   GROUP     work-items of a work-group
 * GETRF_TEAM  one work-group for LANES matrices of a pack, in local memory, where rows are swapped: M N LANES lanes,
 *             and min(M, N) LANES ints. A work-item does the columns that are TEAM apart.
 *   LANES     matrices of a work-group, a divisor of V
 *   TEAM      work-items of a matrix
 */
#if defined(GETRF_ITEM) || defined(GETRF_TEAM)
#include "known.h"

#define STEPS (M < N ? M : N)
#define LIMIT (THRESHOLD ? threshold : 1)
#endif

/* Step k in the registers of a work-item, where AT(i, j) is element (i, j), of `rows` rows and `columns` columns; EACH_ROW
 * and EACH_COLUMN are as in elimination.h, for all rows and all columns. KEEP(k, place) stores which row was swapped. */
#define CLA_PIVOTED_STEP(k) { \
        const CLA_REAL own = cla_lane_abs1(AT(k, k)); \
        CLA_REAL best = own; \
        int place = k; \
        EACH_ROW(CLA_COMPARE, k, k) \
        if (own >= LIMIT * best) place = k; \
        KEEP(k, place) \
        EACH_ROW(CLA_EXCHANGE_ROW, k, place) \
        const cla_lane r = cla_pivot(AT(k, k), k, &bad); \
        CLA_ELIMINATE(k, k) \
    }
#define CLA_COMPARE(k, s, i) \
    if (i > k) { \
        const CLA_REAL size = cla_lane_abs1(AT(i, k)); \
        place = size > best ? i : place; \
        best = size > best ? size : best; \
    }
#define CLA_EXCHANGE_ROW(k, place, i) \
    if (i > k) { \
        const int swapped = place == i; \
        EACH_COLUMN(CLA_EXCHANGE, k, swapped, i) \
    }
#define CLA_EXCHANGE(k, swapped, i, j) { \
        const cla_lane upper = AT(k, j), lower = AT(i, j); \
        SET(k, j, cla_lane_select(swapped, lower, upper)) \
        SET(i, j, cla_lane_select(swapped, upper, lower)) \
    }

#ifdef GETRF_ITEM
__kernel CLA_GROUP_OF(GROUP) void getrf_item(long lanes, long nm, CLA_SCALAR(threshold),
                                             __global CLA_REAL *A, long a0, long aps,
                                             __global int *ipiv, long ipiv0, long ipivps, __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    ipiv += ipiv0 + cla_lane_place(q, ipivps);
    cla_lane a[M][N];
    int bad = 0;
#define AT(i, j) a[i][j]
#define SET(i, j, x) AT(i, j) = x;
#define EACH_ROW(F, k, s) CLA_UNROLL for (int i = k + 1; i < M; i++) F(k, s, i)
#define EACH_COLUMN(F, k, s, i) CLA_UNROLL for (int j = 0; j < N; j++) F(k, s, i, j)
#define KEEP(k, place) cla_int_store(ipiv, k, place);
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) a[i][j] = cla_lane_load(A, i * ARS + j * ACS);
    CLA_UNROLL for (int k = 0; k < STEPS; k++) CLA_PIVOTED_STEP(k)
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) cla_lane_store(A, i * ARS + j * ACS, a[i][j]);
    if (q < nm) info[q] = bad;
}
#undef AT
#endif

/* Factor in `steps` steps a matrix of m rows and n columns in local memory, element (i, j) at a[(j * m + i) * lanes].
 * Work-item c of the `team` of a matrix does the columns that are so many apart; all of them have to come here, after
 * all have loaded theirs, and no other column is ready when one returns. places[k * lanes] gets the row that was
 * swapped with row k. Returns 0 or 1 + the index of the first zero pivot, in all of them. */
CLA_INLINE int cla_getrf_team(int m, int n, int steps, CLA_REAL threshold, int lanes, int team, int c,
                              CLA_LOCAL cla_lane *a, CLA_LOCAL int *places)
{
    int info = 0, place = 0;
    cla_lane top = cla_lane_real(0), r = top;
#define AT(i, j) a[((j) * m + (i)) * lanes]
#define COMPARE(i, x) { \
        const CLA_REAL size = cla_lane_abs1(x); \
        if (i == k + 1) own = size; \
        if (i == k + 1 || size > best) { \
            best = size; \
            next = i; \
        } \
    }
/* Column k becomes that of L, once nobody reads it any more. */
#define FINISH(k) \
    if (c == (k) % team) { \
        const cla_lane pivot = AT(place, k); \
        AT(place, k) = top; \
        AT(k, k) = pivot; \
        for (int i = k + 1; i < m; i++) AT(i, k) = cla_lane_mul(AT(i, k), r); \
    }
#define NEXT(k) places[(k + 1) * lanes] = own >= threshold * best ? k + 1 : next;
    CLA_REAL own = 0, best = 0;
    int next = 0;
    if (c == 0) {
        const int k = -1;
        for (int i = 0; i < m; i++) COMPARE(i, AT(i, 0))
        NEXT(k)
    }
    for (int k = 0; k < steps; k++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k > 0) FINISH(k - 1)
        place = places[k * lanes];
        top = AT(k, k);
        r = cla_pivot(AT(place, k), k, &info);
        for (int j = c; j < n; j += team) {
            if (j == k) continue;
            const cla_lane u = AT(place, j);
            AT(place, j) = AT(k, j);
            AT(k, j) = u;
            for (int i = k + 1; i < m && j > k; i++) {
                const cla_lane l = cla_lane_mul(i == place ? top : AT(i, k), r);
                const cla_lane x = cla_lane_fnma(l, u, AT(i, j));
                AT(i, j) = x;
                if (j == k + 1) COMPARE(i, x)
            }
            if (j == k + 1 && j < steps) NEXT(k)
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    FINISH(steps - 1)
#undef AT
#undef COMPARE
#undef FINISH
#undef NEXT
    return info;
}

#ifdef GETRF_TEAM
__kernel CLA_GROUP_OF(LANES * TEAM) void getrf_team(long lanes, long nm, CLA_SCALAR(threshold),
                                                    __global CLA_REAL *A, long a0, long aps,
                                                    __global int *ipiv, long ipiv0, long ipivps, __global int *info)
{
    __local cla_lane elements[M * N * LANES];
    __local int swaps[STEPS * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    ipiv += ipiv0 + cla_lane_place(q, ipivps);
    CLA_LOCAL cla_lane *a = elements + l;
    CLA_LOCAL int *places = swaps + l;
    for (int j = c; j < N; j += TEAM)
        for (int i = 0; i < M; i++) a[(j * M + i) * LANES] = cla_lane_load(A, i * ARS + j * ACS);
    const int bad = cla_getrf_team(M, N, STEPS, LIMIT, LANES, TEAM, c, a, places);
    for (int j = c; j < N; j += TEAM)
        for (int i = 0; i < M; i++) cla_lane_store(A, i * ARS + j * ACS, a[(j * M + i) * LANES]);
    for (int k = c; k < STEPS; k += TEAM) cla_int_store(ipiv, k, places[k * LANES]);
    if (c == 0 && q < nm) info[q] = bad;
}
#endif

#endif
