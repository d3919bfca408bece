/* getrf and gesv on packs, where a work-item holds a column of a matrix in registers, as column.h says, of sizes and
 * strides that are known when this is compiled: macros and arguments are those of getrf.cl and gesv.cl. Tunables:
 *
 * GETRF_COLUMN, GESV_COLUMN  one work-group for LANES matrices of a pack, with a work-item for each column; right-hand
 *                            sides are columns too. Rows are not moved, but by way of local memory when they are
 * written
 *   LANES  matrices of a work-group, a divisor of V
 */
#include "known.h"

#include "elimination.h"

#ifdef GESV_COLUMN
#undef M
#define M N
#define WIDTH (N + R)
#undef THRESHOLD
#define THRESHOLD 0
#define LIMIT 1
#else
#define WIDTH N
#define LIMIT (THRESHOLD ? threshold : 1)
#endif
#include "column.h"

#define STEPS (M < N ? M : N)
#define GROUP_ITEMS (LANES * WIDTH)
#define ROOM (16384 / (int)sizeof(cla_lane)) /* elements of local memory for columns on their way out */
#define AT_ONCE (GROUP_ITEMS * M <= ROOM ? GROUP_ITEMS : ROOM / M / 32 * 32) /* work-items that write at the same time */
#define WORDS ((M + 3) / 4)
#define PLACE_OF(i) (int)(words[(i) / 4] >> (i) % 4 * 8 & 255) /* of row i, by the words of its places */
#define NONE (1 << 20)
#define CHAINS 4 /* of comparisons, which need not wait for each other */

/* Places of rows: where LAPACK would have row i by now, as byte i of the words of a lane; which row is at a place; the
 * rows that steps took, two at a time; rows that were swapped; the first zero pivot. */
#define LU_HEAD \
    __local cla_lane lines[2 * LANES * LINE] __attribute__((aligned(16))); \
    __local cla_lane tile[AT_ONCE * M]; \
    __local uint places[LANES * WORDS]; \
    __local uchar rows[LANES * M]; \
    __local int taken[2 * LANES], swaps[STEPS * LANES], singular[LANES]; \
    CLA_COLUMN_HEAD \
    CLA_LOCAL uchar *place = (CLA_LOCAL uchar *)(places + l * WORDS), *row = rows + l * M; \
    cla_lane a[M], inverse = cla_lane_real(1); \
    if (c == 0) { \
        for (int i = 0; i < WORDS * 4; i++) place[i] = i; \
        for (int i = 0; i < M; i++) row[i] = i; \
        singular[l] = 0; \
    } \
    barrier(CLK_LOCAL_MEM_FENCE);

#define KEY_OF(i) (PLACE_OF(i) << 8 | i)
#define LU_COMPARE(counts, size, key, than, its_key) { \
        const int better = (counts) & (((size) > (than)) | (((size) == (than)) & ((key) < (its_key)))); /* no branches */ \
        than = better ? size : than; \
        its_key = better ? key : its_key; \
    }
/* The column of this work-item becomes that of L in step k: its largest element is the pivot, the first of several, and
 * goes to place k. */
#define LU_PIVOT(k, buffer) { \
        uint words[WORDS]; \
        CLA_UNROLL for (int w = 0; w < WORDS; w++) words[w] = places[l * WORDS + w]; \
        CLA_REAL best[CHAINS], own = 0; \
        int keys[CHAINS]; \
        CLA_UNROLL for (int j = 0; j < CHAINS; j++) { \
            best[j] = -1; \
            keys[j] = NONE; \
        } \
        EACH_ROW { \
            const CLA_REAL size = cla_lane_abs1(a[i]); \
            if (THRESHOLD) own = PLACE_OF(i) == (k) ? size : own; \
            LU_COMPARE(PLACE_OF(i) >= (k), size, KEY_OF(i), best[i % CHAINS], keys[i % CHAINS]) \
        } \
        CLA_UNROLL for (int j = 1; j < CHAINS; j++) LU_COMPARE(1, best[j], keys[j], best[0], keys[0]) \
        int key = keys[0]; \
        const int last = row[k]; \
        if (key == NONE || (THRESHOLD && own >= LIMIT * best[0])) key = (k) << 8 | last; \
        const int at = key >> 8, mine = key & 255; \
        place[last] = at; \
        row[at] = last; \
        place[mine] = k; \
        row[k] = mine; \
        swaps[(k) * LANES + l] = at; \
        taken[(buffer) * LANES + l] = mine; \
        int bad = singular[l]; \
        inverse = cla_pivot(cla_column_take(a, mine), k, &bad); \
        singular[l] = bad; \
        EACH_ROW { \
            const int below = (PLACE_OF(i) >= (k)) & (i != mine); \
            const cla_lane x = cla_lane_mul(a[i], inverse); \
            a[i] = cla_lane_select(below, x, a[i]); \
            lines[((buffer) * LANES + l) * LINE + i] = cla_lane_select(below, x, cla_lane_real(0)); \
        } \
    }

#define LU_FACTOR \
    if (c == 0) LU_PIVOT(0, 0) \
    CLA_ROLLED for (int k = 0; k < STEPS; k++) { \
        barrier(CLK_LOCAL_MEM_FENCE); \
        if (c > k) { \
            const CLA_LOCAL cla_lane *line = lines + (k % 2 * LANES + l) * LINE; \
            const int pivot_row = taken[k % 2 * LANES + l]; \
            const cla_lane u = cla_column_take(a, pivot_row); \
            EACH_ROW a[i] = cla_lane_fnma(line[i], u, a[i]); \
            if (c == k + 1 && k + 1 < STEPS) LU_PIVOT(k + 1, (k + 1) % 2) \
        } \
    }

/* A <- L\U with rows where they belong: work-items have elements of local memory for themselves, AT_ONCE of them. */
#define LU_WRITE \
    barrier(CLK_LOCAL_MEM_FENCE); \
    uint words[WORDS]; \
    CLA_UNROLL for (int w = 0; w < WORDS; w++) words[w] = places[l * WORDS + w]; \
    CLA_ROLLED for (int first = 0; first < LANES * N; first += AT_ONCE) { \
        const int own = get_local_id(0) - first; \
        if (own >= 0 && own < AT_ONCE && c < N) { \
            EACH_ROW tile[PLACE_OF(i) * AT_ONCE + own] = a[i]; \
            mem_fence(CLK_LOCAL_MEM_FENCE); \
            EACH_ROW cla_lane_store(A, i * ARS + c * ACS, tile[i * AT_ONCE + own]); \
        } \
        if (AT_ONCE < GROUP_ITEMS) barrier(CLK_LOCAL_MEM_FENCE); \
    } \
    if (c == 0 && q < nm) info[q] = singular[l];

#ifdef GETRF_COLUMN
__kernel CLA_GROUP_OF(GROUP_ITEMS) void getrf_column(long lanes, long nm, CLA_SCALAR(threshold),
                                                     __global CLA_REAL *A, long a0, long aps,
                                                     __global int *ipiv, long ipiv0, long ipivps, __global int *info)
{
    LU_HEAD
    A += a0 + cla_lane_place(q, aps);
    ipiv += ipiv0 + cla_lane_place(q, ipivps);
    EACH_ROW a[i] = cla_lane_load(A, i * ARS + c * ACS);
    LU_FACTOR
    LU_WRITE
    for (int k = c; k < STEPS; k += N) cla_int_store(ipiv, k, swaps[k * LANES + l]);
}
#endif

#ifdef GESV_COLUMN
__kernel CLA_GROUP_OF(GROUP_ITEMS) void gesv_column(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                    __global CLA_REAL *B, long b0, long bps, __global int *info)
{
    __local cla_lane inverses[2 * LANES];
    LU_HEAD
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    if (c < N) {
        EACH_ROW a[i] = cla_lane_load(A, i * ARS + c * ACS);
    } else {
        EACH_ROW a[i] = cla_lane_load(B, i * BRS + (c - N) * BCS);
    }
    LU_FACTOR
    LU_WRITE
    CLA_ROLLED for (int k = N - 1; k >= 0; k--) { /* back substitution, a column of U and an element of X in a step */
        CLA_LOCAL cla_lane *line = lines + (k % 2 * LANES + l) * LINE;
        if (c == k) {
            EACH_ROW line[i] = cla_lane_select(PLACE_OF(i) < k, a[i], cla_lane_real(0));
            inverses[k % 2 * LANES + l] = inverse;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (c >= N) {
            const cla_lane x = cla_lane_mul(inverses[k % 2 * LANES + l], cla_column_take(a, row[k]));
            cla_lane_store(B, k * BRS + (c - N) * BCS, x);
            EACH_ROW a[i] = cla_lane_fnma(line[i], x, a[i]);
        }
    }
}
#endif
