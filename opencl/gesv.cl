/* gesv: A <- L\U with row interchanges and B <- inv(A) B, for one lane (pack level) and for a batch (define GESV_BATCH).
 *
 * A is n x n, B n x r; rows of both are swapped together, and which they were is not kept.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item does one lane.
 */
#ifndef CLA_GESV_CL
#define CLA_GESV_CL

#include "getrf.cl"
#include "getrsnp.cl"

/* Returns 0 or 1 + the index of the first pivot that is exactly zero; B is not finite then. */
CLA_INLINE int cla_gesv(int n, int r, cla_matrix A, cla_matrix B)
{
    const int info = cla_getrf(n, n, 1, A, 0, r, B);
    cla_getrsnp(n, r, 0, A, B);
    return info;
}

#ifdef GESV_BATCH
/* info[q] for the first nm lanes, those that hold a matrix; aconj and bconj are 0: A and B are as they are */
__kernel void gesv_batch(long lanes, long nm, long n, long r, CLA_OPERAND(CLA_REAL *A, a), CLA_OPERAND(CLA_REAL *B, b),
                         __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int first = cla_gesv(n, r, CLA_MATRIX(A, a, q, 0), CLA_MATRIX(B, b, q, 0));
    if (q < nm) info[q] = first;
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define N, R and, in numbers, ARS, ACS, BRS, BCS. The
 * columns of B are beside those of A. Tunables:
 *
 * GESV_ITEM  one work-item a matrix, all of it in registers: N (N + R) lanes
 *   GROUP    work-items of a work-group
 * GESV_TEAM  one work-group for LANES matrices of a pack, in local memory: N (N + R) lanes and N ints for each matrix.
 *            A work-item does the columns that are TEAM apart.
 *   LANES    matrices of a work-group, a divisor of V
 *   TEAM     work-items of a matrix
 */
#if defined(GESV_ITEM) || defined(GESV_TEAM)
#include "known.h"

#define ALL (N + R)
#define LOAD(i, j) ((j) < N ? cla_lane_load(A, (i) * ARS + (j) * ACS) : cla_lane_load(B, (i) * BRS + ((j) - N) * BCS))
#define STORE(i, j, x) { \
        if ((j) < N) cla_lane_store(A, (i) * ARS + (j) * ACS, x); \
        else cla_lane_store(B, (i) * BRS + ((j) - N) * BCS, x); \
    }
#endif

#ifdef GESV_ITEM
__kernel CLA_GROUP_OF(GROUP) void gesv_item(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                            __global CLA_REAL *B, long b0, long bps, __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    cla_lane a[N][ALL];
    int bad = 0;
#define LIMIT 1
#define AT(i, j) a[i][j]
#define SET(i, j, x) AT(i, j) = x;
#define EACH_ROW(F, k, s) CLA_UNROLL for (int i = k + 1; i < N; i++) F(k, s, i)
#define EACH_COLUMN(F, k, s, i) CLA_UNROLL for (int j = 0; j < ALL; j++) F(k, s, i, j)
#define KEEP(k, place)
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j < ALL; j++) a[i][j] = LOAD(i, j);
    CLA_UNROLL for (int k = 0; k < N; k++) CLA_PIVOTED_STEP(k)
    CLA_UNROLL for (int k = N - 1; k >= 0; k--) {
        const cla_lane r = cla_lane_recip(AT(k, k));
        CLA_UNROLL for (int j = N; j < ALL; j++) {
            AT(k, j) = cla_lane_mul(r, AT(k, j));
            CLA_UNROLL for (int i = 0; i < k; i++) AT(i, j) = cla_lane_fnma(AT(i, k), AT(k, j), AT(i, j));
        }
    }
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j < ALL; j++) STORE(i, j, AT(i, j))
    if (q < nm) info[q] = bad;
}
#endif

#ifdef GESV_TEAM
__kernel CLA_GROUP_OF(LANES * TEAM) void gesv_team(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                   __global CLA_REAL *B, long b0, long bps, __global int *info)
{
    __local cla_lane elements[N * ALL * LANES];
    __local int swaps[N * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    CLA_LOCAL cla_lane *a = elements + l;
#define AT(i, j) a[((j) * N + (i)) * LANES]
    for (int j = c; j < ALL; j += TEAM)
        for (int i = 0; i < N; i++) AT(i, j) = LOAD(i, j);
    const int bad = cla_getrf_team(N, ALL, N, 1, LANES, TEAM, c, a, swaps + l);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = N - 1; k >= 0; k--) {
        const cla_lane r = cla_lane_recip(AT(k, k));
        for (int j = N + c; j < ALL; j += TEAM) {
            const cla_lane x = cla_lane_mul(r, AT(k, j));
            AT(k, j) = x;
            for (int i = 0; i < k; i++) AT(i, j) = cla_lane_fnma(AT(i, k), x, AT(i, j));
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = c; j < ALL; j += TEAM)
        for (int i = 0; i < N; i++) STORE(i, j, AT(i, j))
    if (c == 0 && q < nm) info[q] = bad;
}
#endif

#endif
