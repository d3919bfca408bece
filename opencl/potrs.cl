/* potrs: B <- inv(A) B with A = L L^H as potrf left it, for one lane (pack level) and for a batch (define POTRS_BATCH).
 *
 * A is n x n, and its lower triangle, L with a real diagonal, all that is read; B is n x r. An upper triangle is the
 * lower one of the conjugated transposed matrix.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane of B.
 */
#ifndef CLA_POTRS_CL
#define CLA_POTRS_CL

#include "trsm.cl"

CLA_INLINE void cla_potrs(int n, int r, cla_matrix A, cla_matrix B)
{
    const cla_matrix Ah = cla_conjugated(cla_transposed(A));
    cla_trsm(n, r, CLA_NONUNIT, cla_lane_real(1), A, B);
    cla_trsm(n, r, CLA_NONUNIT, cla_lane_real(1), cla_reversed(Ah, n, n), cla_rows_reversed(B, n));
}

#ifdef POTRS_BATCH
/* bconj is 0: B is as it is */
__kernel void potrs_batch(long lanes, long nm, long n, long r,
                          __global const CLA_REAL *restrict A, long a0, long aps, long ars, long acs, long aconj,
                          __global CLA_REAL *restrict B, long b0, long bps, long brs, long bcs, long bconj)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_potrs(n, r, cla_matrix_of_packs(A, q, a0, aps, ars, acs, aconj),
              cla_matrix_of_packs(B, q, b0, bps, brs, bcs, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define N, R and, in numbers, ARS, ACS, BRS, BCS;
 * ACONJ, 1 if memory holds the conjugates of A. Tunables:
 *
 * POTRS_ITEM  one work-item a matrix: the triangle in its registers, the columns of B pass by: N (N + 1) / 2 + N lanes.
 *   GROUP     work-items of a work-group
 * POTRS_TEAM  one work-group for LANES matrices of a pack: the triangle goes to local memory, N (N - 1) / 2 + 1 lanes
 *             and N CLA_REAL numbers for each matrix; a work-item solves for COLUMNS columns, TEAM apart, in registers:
 *             COLUMNS N lanes. A work-group has LANES TEAM work-items.
 *   LANES     matrices of a work-group, a divisor of V
 *   COLUMNS   columns of a work-item
 *   TEAM      work-items of a matrix, ceil(R / COLUMNS)
 */
#if defined(POTRS_ITEM) || defined(POTRS_TEAM)
#define A_AT(i, j) cla_lane_load_as(ACONJ, A, (i) * ARS + (j) * ACS)
#define B_AT(i, j) ((i) * BRS + (j) * BCS)

/* x <- inv(L^H) inv(L) x for the columns x of a work-item, in registers: L_AT(i, j) is an element below the diagonal,
 * D_AT(i) the reciprocal of one on it. */
#define SOLVE CLA_UNROLL1(N, FORWARD) CLA_UNROLL1(N, BACKWARD)
#define FORWARD(k) { DIVIDE(k) CLA_UNROLL2(N, FORWARD_ROW, k) }
#define FORWARD_ROW(k, i) if (i > k) { const cla_lane l = L_AT(i, k); CLA_UNROLL3(COLUMNS, SUBTRACT, k, i) }
#define BACKWARD(s) { DIVIDE((N - 1 - s)) CLA_UNROLL2(N, BACKWARD_ROW, (N - 1 - s)) }
#define BACKWARD_ROW(k, i) \
    if (i < k) { \
        const cla_lane l = cla_lane_conj(L_AT(k, i)); \
        CLA_UNROLL3(COLUMNS, SUBTRACT, k, i) \
    }
#define DIVIDE(k) { const CLA_REAL d = D_AT(k); CLA_UNROLL2(COLUMNS, DIVIDE_COLUMN, k) }
#define DIVIDE_COLUMN(k, j) x[j][k] = x[j][k] * d;
#define SUBTRACT(k, i, j) x[j][i] = cla_lane_fnma(l, x[j][k], x[j][i]);
#endif

#ifdef POTRS_ITEM
__kernel CLA_GROUP_OF(GROUP) void potrs_item(long lanes, long nm,
                                             __global const CLA_REAL *restrict A, long a0, long aps,
                                             __global CLA_REAL *restrict B, long b0, long bps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    cla_lane a[N][N];
    CLA_REAL reciprocals[N]; /* of the diagonal */
#define COLUMNS 1
#define L_AT(i, j) a[i][j]
#define D_AT(i) reciprocals[i]
#define LOAD(i, j) if (i > j) L_AT(i, j) = A_AT(i, j);
#define LOAD_ROW(i) CLA_UNROLL2(N, LOAD, i) D_AT(i) = 1 / cla_lane_re(A_AT(i, i));
    CLA_UNROLL1(N, LOAD_ROW)
    CLA_UNROLL for (int j = 0; j < R; j++) {
        cla_lane x[1][N];
#define TAKE(i) x[0][i] = cla_lane_load(B, B_AT(i, j));
#define STORE(i) cla_lane_store(B, B_AT(i, j), x[0][i]);
        CLA_UNROLL1(N, TAKE)
        SOLVE
        CLA_UNROLL1(N, STORE)
    }
}
#endif

#ifdef POTRS_TEAM
#define BELOW(i, j) ((i) * ((i) - 1) / 2 + (j)) /* where element (i, j) of the strict triangle is in local memory */
#define COLUMN(j) ((j) * TEAM + c)              /* column j of this work-item */
#define L_AT(i, j) triangle[BELOW(i, j) * LANES]
#define D_AT(i) diagonal[(i) * LANES]

__kernel CLA_GROUP_OF(LANES * TEAM) void potrs_team(long lanes, long nm,
                                                    __global const CLA_REAL *restrict A, long a0, long aps,
                                                    __global CLA_REAL *restrict B, long b0, long bps)
{
    __local cla_lane triangle_part[(BELOW(N, 0) + 1) * LANES];
    __local CLA_REAL diagonal_part[N * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    __local cla_lane *triangle = triangle_part + l;
    __local CLA_REAL *diagonal = diagonal_part + l;
    CLA_UNROLL for (int i = 1; i < N; i++)
        CLA_UNROLL for (int j0 = 0; j0 < i; j0 += TEAM)
            if (j0 + c < i) L_AT(i, j0 + c) = A_AT(i, j0 + c);
    CLA_UNROLL for (int i = 0; i < N; i += TEAM)
        if (i + c < N) D_AT(i + c) = 1 / cla_lane_re(A_AT(i + c, i + c));
    cla_lane x[COLUMNS][N];
#define TAKE(i, j) x[j][i] = cla_lane_load(B, B_AT(i, min(COLUMN(j), R - 1)));
#define TAKE_ROW(i) CLA_UNROLL2(COLUMNS, TAKE, i)
#define STORE(i, j) if (R % TEAM == 0 || COLUMN(j) < R) cla_lane_store(B, B_AT(i, COLUMN(j)), x[j][i]);
#define STORE_ROW(i) CLA_UNROLL2(COLUMNS, STORE, i)
    CLA_UNROLL1(N, TAKE_ROW)
    barrier(CLK_LOCAL_MEM_FENCE);
    SOLVE
    CLA_UNROLL1(N, STORE_ROW)
}
#endif

#endif
