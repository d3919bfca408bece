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
__kernel void potrs_batch(long lanes, long nm, long n, long r, CLA_OPERAND(const CLA_REAL *restrict A, a),
                          CLA_OPERAND(CLA_REAL *restrict B, b))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_potrs(n, r, CLA_MATRIX(A, a, q, aconj), CLA_MATRIX(B, b, q, 0));
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
#if defined(POTRS_ITEM) || defined(POTRS_TEAM) || defined(POSV_ITEM) || defined(POSV_TEAM)
#include "known.h"

#define A_AT(i, j) cla_lane_load_as(ACONJ, A, (i) * ARS + (j) * ACS)
#define B_AT(i, j) ((i) * BRS + (j) * BCS)

/* x <- inv(L L^H) x for some columns in x[column][row], where L_AT(i, k) is an element of L below its diagonal and
 * INVERSE(k) a reciprocal of that. */
#define SOLVE(x, columns) \
    CLA_UNROLL for (int k = 0; k < N; k++) { \
        CLA_FORGET \
        const CLA_REAL inverse = INVERSE(k); \
        CLA_UNROLL for (int j = 0; j < columns; j++) x[j][k] = x[j][k] * inverse; \
        CLA_UNROLL for (int i = k + 1; i < N; i++) { \
            const cla_lane e = L_AT(i, k); \
            CLA_UNROLL for (int j = 0; j < columns; j++) x[j][i] = cla_lane_fnma(e, x[j][k], x[j][i]); \
        } \
    } \
    READ_AGAIN \
    CLA_UNROLL for (int k = N - 1; k >= 0; k--) { \
        CLA_FORGET \
        const CLA_REAL inverse = INVERSE(k); \
        CLA_UNROLL for (int j = 0; j < columns; j++) x[j][k] = x[j][k] * inverse; \
        CLA_UNROLL for (int i = 0; i < k; i++) { \
            const cla_lane e = cla_lane_conj(L_AT(k, i)); \
            CLA_UNROLL for (int j = 0; j < columns; j++) x[j][i] = cla_lane_fnma(e, x[j][k], x[j][i]); \
        } \
    }
#endif

#if defined(POTRS_ITEM) || defined(POSV_ITEM)
#define L_AT(i, k) a[i][k]
#define INVERSE(k) d[k]
#define READ_AGAIN

/* The columns of B pass by. */
#define SOLVE_B \
    CLA_UNROLL for (int j = 0; j < R; j++) { \
        cla_lane x[1][N]; \
        CLA_UNROLL for (int i = 0; i < N; i++) x[0][i] = cla_lane_load(B, B_AT(i, j)); \
        SOLVE(x, 1) \
        CLA_UNROLL for (int i = 0; i < N; i++) cla_lane_store(B, B_AT(i, j), x[0][i]); \
    }
#endif

#if defined(POTRS_TEAM) || defined(POSV_TEAM)
#define BELOW(i, j) ((i) * ((i) - 1) / 2 + (j)) /* where element (i, j) of the strict triangle is in local memory */
#define L_AT(i, k) triangle[BELOW(i, k) * LANES]
#define INVERSE(k) diagonal[(k) * LANES]
#define READ_AGAIN mem_fence(CLK_LOCAL_MEM_FENCE); /* L, which registers have no room for */

/* The columns of this work-item, after all have loaded theirs of L and of B. */
#define LOAD_B \
    cla_lane x[COLUMNS][N]; \
    CLA_UNROLL for (int i = 0; i < N; i++) \
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) \
            x[j][i] = cla_lane_load_if(CLA_HAS_COLUMN(j, R), B, B_AT(i, CLA_COLUMN_OF(j, R)));
#define SOLVE_B \
    SOLVE(x, COLUMNS) \
    CLA_UNROLL for (int i = 0; i < N; i++) \
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) \
            if (CLA_HAS_COLUMN(j, R)) cla_lane_store(B, B_AT(i, CLA_COLUMN(j)), x[j][i]);
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
    CLA_REAL d[N]; /* reciprocals of the diagonal */
    CLA_UNROLL for (int i = 0; i < N; i++) {
        CLA_UNROLL for (int j = 0; j < i; j++) a[i][j] = A_AT(i, j);
        d[i] = 1 / cla_lane_re(A_AT(i, i));
    }
    SOLVE_B
}
#endif

#ifdef POTRS_TEAM
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
    CLA_LOCAL cla_lane *triangle = triangle_part + l;
    CLA_LOCAL CLA_REAL *diagonal = diagonal_part + l; /* reciprocals */
    CLA_UNROLL for (int i = 1; i < N; i++)
        CLA_UNROLL for (int j0 = 0; j0 < i; j0 += TEAM)
            if (j0 + c < i) triangle[BELOW(i, j0 + c) * LANES] = A_AT(i, j0 + c);
    CLA_UNROLL for (int i = 0; i < N; i += TEAM)
        if (i + c < N) diagonal[(i + c) * LANES] = 1 / cla_lane_re(A_AT(i + c, i + c));
    LOAD_B
    barrier(CLK_LOCAL_MEM_FENCE);
    SOLVE_B
}
#endif

#endif
