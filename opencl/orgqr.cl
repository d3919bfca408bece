/* orgqr: A <- the first n columns of the Q that geqrf left there, for one lane (pack level) and for a batch (define
 * ORGQR_BATCH).
 *
 * A is m x n, m >= n; tau has n numbers. The last reflector comes first, which is applied to columns of the identity.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane.
 */
#ifndef CLA_ORGQR_CL
#define CLA_ORGQR_CL

#include "ormqr.cl"

CLA_INLINE void cla_orgqr(int m, int n, cla_matrix A, cla_matrix tau)
{
    const cla_lane zero = cla_lane_real(0);
    for (int k = n - 1; k >= 0; k--) {
        const cla_lane t = cla_get(tau, k, 0);
        for (int j = k + 1; j < n; j++) cla_set(A, k, j, zero);
        cla_reflect(m - k, n - k - 1, cla_from(A, k + 1, k), t, cla_from(A, k, k + 1));
        cla_set(A, k, k, cla_lane_real(1) - t);
        for (int i = k + 1; i < m; i++) cla_set(A, i, k, CLA_MINUS(cla_lane_mul(t, cla_get(A, i, k))));
    }
}

#ifdef ORGQR_BATCH
/* aconj and tauconj are 0: both are as they are */
__kernel void orgqr_batch(long lanes, long nm, long n, long m, CLA_OPERAND(CLA_REAL *restrict A, a),
                          CLA_OPERAND(const CLA_REAL *restrict tau, tau))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_orgqr(m, n, CLA_MATRIX(A, a, q, 0), CLA_MATRIX(tau, tau, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in numbers, ARS, ACS, TAURS.
 * Tunables:
 *
 * ORGQR_ITEM  one work-item a matrix, all of it in registers: M N lanes
 *   GROUP     work-items of a work-group
 * ORGQR_TEAM  one work-group for LANES matrices of a pack: the reflectors go to local memory, N M - N (N - 1) / 2 lanes
 *             for each matrix; a work-item makes COLUMNS columns of Q, TEAM apart, in registers: COLUMNS M lanes. A
 *             work-group has LANES TEAM work-items.
 *   LANES     matrices of a work-group, a divisor of V
 *   COLUMNS   columns of a work-item
 *   TEAM      work-items of a matrix, ceil(N / COLUMNS)
 */
#ifdef ORGQR_ITEM
#include "known.h"

#define AT(i, j) a[i][j]
#define SET(i, j, x) AT(i, j) = x;
#define EACH_ROW_OF(F, k, s, j) CLA_UNROLL for (int i = k + 1; i < M; i++) F(k, s, j, i)

__kernel CLA_GROUP_OF(GROUP) void orgqr_item(long lanes, long nm, __global CLA_REAL *restrict A, long a0, long aps,
                                             __global const CLA_REAL *restrict tau, long tau0, long taups)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    tau += tau0 + cla_lane_place(q, taups);
    cla_lane a[M][N];
    CLA_UNROLL for (int j = 0; j < N; j++) {
        CLA_UNROLL for (int i = 0; i < j; i++) AT(i, j) = cla_lane_real(0);
        CLA_UNROLL for (int i = j + 1; i < M; i++) AT(i, j) = cla_lane_load(A, i * ARS + j * ACS);
    }
    CLA_UNROLL for (int k = N - 1; k >= 0; k--) {
        const cla_lane t = cla_lane_load(tau, k * TAURS);
        CLA_UNROLL for (int j = k + 1; j < N; j++) CLA_REFLECT(k, k, t, j)
        AT(k, k) = cla_lane_real(1) - t;
        CLA_UNROLL for (int i = k + 1; i < M; i++) AT(i, k) = CLA_MINUS(cla_lane_mul(t, AT(i, k)));
    }
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) cla_lane_store(A, i * ARS + j * ACS, AT(i, j));
}
#endif

#ifdef ORGQR_TEAM
#include "known.h"

#define TAU_AT(k) cla_lane_load(tau, (k) * TAURS)
#define A_AT(i, j) cla_lane_load(A, (i) * ARS + (j) * ACS)

__kernel CLA_GROUP_OF(LANES * TEAM) void orgqr_team(long lanes, long nm, __global CLA_REAL *restrict A, long a0,
                                                    long aps, __global const CLA_REAL *restrict tau, long tau0,
                                                    long taups)
{
    __local cla_lane vectors_part[PLACE(N, N) * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    tau += tau0 + cla_lane_place(q, taups);
    CLA_LOCAL cla_lane *vectors = vectors_part + l;
    SHARE_REFLECTORS(N)
    cla_lane x[COLUMNS][M]; /* columns of the identity: of reflectors behind a column nothing comes in */
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) x[j][i] = cla_lane_real(j * TEAM + c == i);
    barrier(CLK_LOCAL_MEM_FENCE);
    CLA_UNROLL for (int k = N - 1; k >= 0; k--) REFLECT(k, k / TEAM)
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            if (N == COLUMNS * TEAM || j * TEAM + c < N)
                cla_lane_store(A, i * ARS + (j * TEAM + c) * ACS, x[j][i]);
}
#endif

#endif
