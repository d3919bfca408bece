/* getrsnp: B <- inv(op(A)) B with A = L\U as getrfnp left it, for one lane (pack level) and for a batch (define
 * GETRSNP_BATCH).
 *
 * A is n x n, B n x r. The conjugate of A is a flag of the matrix.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane of B.
 */
#ifndef CLA_GETRSNP_CL
#define CLA_GETRSNP_CL

#include "trsm.cl"

/* trans is 0, or 1 for a transposed A. */
CLA_INLINE void cla_getrsnp(int n, int r, int trans, cla_matrix A, cla_matrix B)
{
    if (trans) A = cla_transposed(A);
    for (int upper = 0; upper < 2; upper++) { /* L, which has ones on its diagonal, is lower unless transposed */
        cla_trsm(n, r, upper == trans ? CLA_UNIT : CLA_NONUNIT, cla_lane_real(1), A, B);
        A = cla_reversed(A, n, n);
        B = cla_rows_reversed(B, n);
    }
}

#ifdef GETRSNP_BATCH
/* trans is 0, 1 or 2, which is 1 with aconj; bconj is 0: B is as it is */
__kernel void getrsnp_batch(long lanes, long nm, long n, long r, long trans, CLA_OPERAND(const CLA_REAL *restrict A, a),
                            CLA_OPERAND(CLA_REAL *restrict B, b))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_getrsnp(n, r, trans != 0, CLA_MATRIX(A, a, q, aconj), CLA_MATRIX(B, b, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define N, R and, in numbers, ARS, ACS, BRS, BCS;
 * ACONJ, 1 to conjugate A; TRANS, 0 unless A is transposed. Tunables:
 *
 * GETRSNP_ITEM  one work-item a matrix: the factors in its registers, the columns of B pass by: N N + N lanes.
 *   GROUP     work-items of a work-group
 * GETRSNP_TEAM  one work-group for LANES matrices of a pack: the factors go to local memory, N N lanes for each matrix;
 *             a work-item solves for COLUMNS columns, TEAM apart, in registers: COLUMNS N lanes. A work-group has
 *             LANES TEAM work-items.
 *   LANES     matrices of a work-group, a divisor of V
 *   COLUMNS   columns of a work-item
 *   TEAM      work-items of a matrix, ceil(R / COLUMNS)
 */
#if defined(GETRSNP_ITEM) || defined(GETRSNP_TEAM)
#include "known.h"

#define A_AT(i, j) cla_lane_load_as(ACONJ, A, TRANS ? (j) * ARS + (i) * ACS : (i) * ARS + (j) * ACS) /* of op(A) */
#define B_AT(i, j) ((i) * BRS + (j) * BCS)
#if CLA_SWAPS /* of getrs.cl: row order[i * STEP] of B becomes row i before the solves, or the other way round behind */
#define SWAPS __global const int *restrict ipiv, long ipiv0, long ipivps,
#define ORDER(order, step) CLA_ORDER(N, ipiv + ipiv0 + cla_lane_place(q, ipivps), order, step)
#define FROM(i) (TRANS ? (i) : order[(i) * STEP])
#define TO(i) (TRANS ? order[(i) * STEP] : (i))
#else
#define SWAPS
#define FROM(i) (i)
#define TO(i) (i)
#endif
#endif

#ifdef GETRSNP_ITEM
__kernel CLA_GROUP_OF(GROUP) void getrsnp_item(long lanes, long nm,
                                               __global const CLA_REAL *restrict A, long a0, long aps, SWAPS
                                               __global CLA_REAL *restrict B, long b0, long bps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
#if CLA_SWAPS
#define STEP 1
    int order[N];
    ORDER(order, STEP)
#endif
    cla_lane a[N][N];
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) a[i][j] = i == j ? cla_lane_recip(A_AT(i, i)) : A_AT(i, j);
    CLA_UNROLL for (int j = 0; j < R; j++) {
        cla_lane x[N];
        CLA_UNROLL for (int i = 0; i < N; i++) x[i] = cla_lane_load(B, B_AT(FROM(i), j));
        CLA_UNROLL for (int k = 0; k < N; k++) {
            if (TRANS) x[k] = cla_lane_mul(a[k][k], x[k]);
            CLA_UNROLL for (int i = k + 1; i < N; i++) x[i] = cla_lane_fnma(a[i][k], x[k], x[i]);
        }
        CLA_UNROLL for (int k = N - 1; k >= 0; k--) {
            if (!TRANS) x[k] = cla_lane_mul(a[k][k], x[k]);
            CLA_UNROLL for (int i = 0; i < k; i++) x[i] = cla_lane_fnma(a[i][k], x[k], x[i]);
        }
        CLA_UNROLL for (int i = 0; i < N; i++) cla_lane_store(B, B_AT(TO(i), j), x[i]);
    }
}
#endif

#ifdef GETRSNP_TEAM
#define FACTOR(i, j) factors[((i) * N + (j)) * LANES] /* reciprocals on the diagonal */

__kernel CLA_GROUP_OF(LANES * TEAM) void getrsnp_team(long lanes, long nm,
                                                      __global const CLA_REAL *restrict A, long a0, long aps, SWAPS
                                                      __global CLA_REAL *restrict B, long b0, long bps)
{
    __local cla_lane factors_part[N * N * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    CLA_LOCAL cla_lane *factors = factors_part + l;
#if CLA_SWAPS
#define STEP LANES
    __local int order_part[N * LANES];
    CLA_LOCAL int *order = order_part + l;
    if (c == 0) { ORDER(order, STEP) }
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j0 = 0; j0 < N; j0 += TEAM)
            if (j0 + c < N && j0 + c != i) FACTOR(i, j0 + c) = A_AT(i, j0 + c);
    CLA_UNROLL for (int i = 0; i < N; i += TEAM)
        if (i + c < N) FACTOR(i + c, i + c) = cla_lane_recip(A_AT(i + c, i + c));
    cla_lane x[COLUMNS][N];
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            x[j][i] = cla_lane_load_if(CLA_HAS_COLUMN(j, R), B, B_AT(FROM(i), CLA_COLUMN_OF(j, R)));
    barrier(CLK_LOCAL_MEM_FENCE);
#define SOLVE(k, unit, first, end) { \
        CLA_FORGET \
        const cla_lane d = FACTOR(k, k); \
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) if (!(unit)) x[j][k] = cla_lane_mul(d, x[j][k]); \
        CLA_UNROLL for (int i = first; i < end; i++) { \
            const cla_lane a = FACTOR(i, k); \
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++) x[j][i] = cla_lane_fnma(a, x[j][k], x[j][i]); \
        } \
    }
    CLA_UNROLL for (int k = 0; k < N; k++) SOLVE(k, !TRANS, k + 1, N)
    CLA_UNROLL for (int k = N - 1; k >= 0; k--) SOLVE(k, TRANS, 0, k)
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            if (CLA_HAS_COLUMN(j, R)) cla_lane_store(B, B_AT(TO(i), CLA_COLUMN(j)), x[j][i]);
}
#endif

#endif
