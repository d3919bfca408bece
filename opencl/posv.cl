/* posv: A <- L with A = L L^H and B <- inv(A) B, for one lane (pack level) and for a batch (define POSV_BATCH).
 *
 * A is n x n, and its lower triangle all that is read and written, as potrf does; B is n x r.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane.
 */
#ifndef CLA_POSV_CL
#define CLA_POSV_CL

#include "potrf.cl"
#include "potrs.cl"

/* Returns 0 or 1 + the index of the first pivot that is not positive, or NaN: A and B hold anything then. */
CLA_INLINE int cla_posv(int n, int r, cla_matrix A, cla_matrix B)
{
    const int info = cla_potrf(n, A);
    cla_potrs(n, r, A, B);
    return info;
}

#ifdef POSV_BATCH
/* info[q] for the first nm lanes, those that hold a matrix; bconj is 0: B is as it is */
__kernel void posv_batch(long lanes, long nm, long n, long r, CLA_OPERAND(CLA_REAL *A, a),
                         CLA_OPERAND(CLA_REAL *restrict B, b), __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int first = cla_posv(n, r, CLA_MATRIX(A, a, q, aconj), CLA_MATRIX(B, b, q, 0));
    if (q < nm) info[q] = first;
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define N, R and, in numbers, ARS, ACS, BRS, BCS;
 * ACONJ, 1 if memory holds the conjugates of A. Tunables:
 *
 * POSV_ITEM   one work-item a matrix: the triangle in its registers, the columns of B pass by, as in potrs.cl
 *   GROUP     work-items of a work-group
 * POSV_TEAM   one work-group for LANES matrices of a pack: the triangle is factored in local memory, N (N - 1) / 2 + 1
 *             lanes and 2 N CLA_REAL numbers for each matrix, of which a work-item does every TEAM-th row; then it solves
 *             for COLUMNS columns, TEAM apart, in registers: COLUMNS N lanes. A work-group has LANES TEAM work-items.
 *   LANES     matrices of a work-group, a divisor of V
 *   COLUMNS   columns of a work-item
 *   TEAM      work-items of a matrix, ceil(R / COLUMNS)
 */
#if defined(POSV_ITEM) || defined(POSV_TEAM)
#include "known.h"

#define PUT_A(i, j, a) cla_lane_store_as(ACONJ, A, (i) * ARS + (j) * ACS, a)
#endif

#ifdef POSV_ITEM
__kernel CLA_GROUP_OF(GROUP) void posv_item(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                            __global CLA_REAL *restrict B, long b0, long bps, __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    cla_lane a[N][N];
    CLA_REAL d[N]; /* reciprocals of the diagonal */
    int bad = 0;
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j <= i; j++) a[i][j] = A_AT(i, j);
    CLA_UNROLL for (int k = 0; k < N; k++) {
        CLA_REAL r;
        PUT_A(k, k, cla_lane_real(cla_root(cla_lane_re(a[k][k]), k, &bad, &r)));
        d[k] = r;
        CLA_UNROLL for (int i = k + 1; i < N; i++) {
            a[i][k] = a[i][k] * r;
            PUT_A(i, k, a[i][k]);
            CLA_UNROLL for (int j = k + 1; j <= i; j++) a[i][j] = cla_lane_fnma(a[i][k], cla_lane_conj(a[j][k]), a[i][j]);
        }
    }
    SOLVE_B
    if (q < nm) info[q] = bad;
}
#endif

#ifdef POSV_TEAM
__kernel CLA_GROUP_OF(LANES * TEAM) void posv_team(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                   __global CLA_REAL *restrict B, long b0, long bps,
                                                   __global int *info)
{
    __local cla_lane triangle_part[(BELOW(N, 0) + 1) * LANES];
    __local CLA_REAL pivots_part[N * LANES], diagonal_part[N * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    CLA_LOCAL cla_lane *triangle = triangle_part + l;
    CLA_LOCAL CLA_REAL *pivots = pivots_part + l, *diagonal = diagonal_part + l; /* of L L^H; reciprocals of L's */
    int bad = 0;
    for (int i = c; i < N; i += TEAM) {
        for (int j = 0; j < i; j++) L_AT(i, j) = A_AT(i, j);
        pivots[i * LANES] = cla_lane_re(A_AT(i, i));
    }
    LOAD_B
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < N; k++) {
        CLA_REAL r;
        const CLA_REAL root = cla_root(pivots[k * LANES], k, &bad, &r);
        if (c == k % TEAM) {
            PUT_A(k, k, cla_lane_real(root));
            INVERSE(k) = r;
        }
        for (int i = c; i < N; i += TEAM)
            if (i > k) {
                const cla_lane x = L_AT(i, k) * r;
                L_AT(i, k) = x;
                PUT_A(i, k, x);
                pivots[i * LANES] = cla_lane_re(cla_lane_fnma(x, cla_lane_conj(x), cla_lane_real(pivots[i * LANES])));
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = c; i < N; i += TEAM)
            if (i > k) {
                const cla_lane x = L_AT(i, k);
                for (int j = k + 1; j < i; j++) L_AT(i, j) = cla_lane_fnma(x, cla_lane_conj(L_AT(j, k)), L_AT(i, j));
            }
    }
    SOLVE_B
    if (c == 0 && q < nm) info[q] = bad;
}
#endif

#endif
