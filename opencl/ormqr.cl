/* ormqr: C <- Q C or Q^H C, for one lane (pack level) and for a batch (define ORMQR_BATCH).
 *
 * C is m x n; Q = H_1 .. H_k as geqrf leaves it: A is m x k, with the vectors of the reflectors below its diagonal, tau
 * has their scalars. A product from the right is one from the left of the transposed C, with conjugated reflectors.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane of C.
 */
#ifndef CLA_ORMQR_CL
#define CLA_ORMQR_CL

#include "householder.h"

/* adjoint is 0 for Q, 1 for Q^H. */
CLA_INLINE void cla_ormqr(int m, int n, int k, int adjoint, cla_matrix A, cla_matrix tau, cla_matrix C)
{
    for (int p = 0; p < k; p++) {
        const int i = adjoint ? p : k - 1 - p;
        const cla_lane t = cla_get(tau, i, 0);
        cla_reflect(m - i, n, cla_from(A, i + 1, i), adjoint ? cla_lane_conj(t) : t, cla_from(C, i, 0));
    }
}

#ifdef ORMQR_BATCH
/* cconj is 0: C is as it is */
__kernel void ormqr_batch(long lanes, long nm, long m, long n, long k, long trans,
                          CLA_OPERAND(const CLA_REAL *restrict A, a), CLA_OPERAND(const CLA_REAL *restrict tau, tau),
                          CLA_OPERAND(CLA_REAL *restrict C, c))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_ormqr(m, n, k, trans, CLA_MATRIX(A, a, q, aconj), CLA_MATRIX(tau, tau, q, tauconj), CLA_MATRIX(C, c, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N, K and, in numbers, ARS, ACS, TAURS,
 * CRS, CCS; ACONJ and TAUCONJ, 1 if both are to be conjugated; TRANS, 1 for Q^H. Tunables:
 *
 * ORMQR_ITEM  one work-item a matrix: the reflectors in its registers, M K + K lanes, the columns of C pass by
 *   GROUP     work-items of a work-group
 * ORMQR_TEAM  one work-group for LANES matrices of a pack: the reflectors go to local memory, K M - K (K - 1) / 2 lanes
 *             for each matrix; a work-item keeps COLUMNS columns of C, TEAM apart, in registers: COLUMNS M lanes. A
 *             work-group has LANES TEAM work-items.
 *   LANES     matrices of a work-group, a divisor of V
 *   COLUMNS   columns of a work-item
 *   TEAM      work-items of a matrix, ceil(N / COLUMNS)
 */
#if defined(ORMQR_ITEM) || defined(ORMQR_TEAM)
#include "known.h"

#define C_AT(i, j) ((i) * CRS + (j) * CCS)
#define TAU_AT(k) cla_lane_load_as(TAUCONJ != TRANS, tau, (k) * TAURS)
#define A_AT(i, k) cla_lane_load_as(ACONJ, A, (i) * ARS + (k) * ACS)
#endif

#if defined(ORMQR_TEAM) || defined(ORGQR_TEAM)
/* Where row i of reflector k is in local memory, i >= k: its scalar in row k, its vector below. K of them take
 * PLACE(K, K) lanes. */
#define PLACE(i, k) ((k) * M - (k) * ((k) + 1) / 2 + (i))
#define V_AT(i, k) vectors[PLACE(i, k) * LANES]

/* All `count` reflectors go there: work-item c of a matrix brings one of every TEAM. */
#define SHARE_REFLECTORS(count) \
    CLA_UNROLL for (int k = 0; k < count; k += TEAM) \
        if (k + c < count) V_AT(k + c, k + c) = TAU_AT(k + c); \
    CLA_UNROLL for (int i = 1; i < M; i++) \
        CLA_UNROLL for (int k = 0; k < (i < count ? i : count); k += TEAM) \
            if (k + c < (i < count ? i : count)) V_AT(i, k + c) = A_AT(i, k + c);

/* x <- H x for reflector k and columns x[column][row] of a work-item from `first` on. */
#define REFLECT(k, first) { \
        cla_lane w[COLUMNS]; \
        CLA_UNROLL for (int j = first; j < COLUMNS; j++) w[j] = x[j][k]; \
        CLA_UNROLL for (int i = k + 1; i < M; i++) { \
            const cla_lane v = cla_lane_conj(V_AT(i, k)); \
            CLA_UNROLL for (int j = first; j < COLUMNS; j++) w[j] = cla_lane_fma(v, x[j][i], w[j]); \
        } \
        CLA_UNROLL for (int j = first; j < COLUMNS; j++) { \
            w[j] = cla_lane_mul(V_AT(k, k), w[j]); \
            x[j][k] -= w[j]; \
        } \
        CLA_UNROLL for (int i = k + 1; i < M; i++) { \
            const cla_lane v = V_AT(i, k); \
            CLA_UNROLL for (int j = first; j < COLUMNS; j++) x[j][i] = cla_lane_fnma(v, w[j], x[j][i]); \
        } \
    }
#endif

#ifdef ORMQR_ITEM
__kernel CLA_GROUP_OF(GROUP) void ormqr_item(long lanes, long nm,
                                             __global const CLA_REAL *restrict A, long a0, long aps,
                                             __global const CLA_REAL *restrict tau, long tau0, long taups,
                                             __global CLA_REAL *restrict C, long c0, long cps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    tau += tau0 + cla_lane_place(q, taups);
    C += c0 + cla_lane_place(q, cps);
    cla_lane v[M][K], t[K];
    CLA_UNROLL for (int k = 0; k < K; k++) {
        t[k] = TAU_AT(k);
        CLA_UNROLL for (int i = k + 1; i < M; i++) v[i][k] = A_AT(i, k);
    }
    CLA_UNROLL for (int j = 0; j < N; j++) {
        cla_lane x[M];
        CLA_UNROLL for (int i = 0; i < M; i++) x[i] = cla_lane_load(C, C_AT(i, j));
        CLA_UNROLL for (int p = 0; p < K; p++) {
            const int k = TRANS ? p : K - 1 - p;
            cla_lane w = x[k];
            CLA_UNROLL for (int i = k + 1; i < M; i++) w = cla_lane_fma(cla_lane_conj(v[i][k]), x[i], w);
            w = cla_lane_mul(t[k], w);
            x[k] -= w;
            CLA_UNROLL for (int i = k + 1; i < M; i++) x[i] = cla_lane_fnma(v[i][k], w, x[i]);
        }
        CLA_UNROLL for (int i = 0; i < M; i++) cla_lane_store(C, C_AT(i, j), x[i]);
    }
}
#endif

#ifdef ORMQR_TEAM
__kernel CLA_GROUP_OF(LANES * TEAM) void ormqr_team(long lanes, long nm,
                                                    __global const CLA_REAL *restrict A, long a0, long aps,
                                                    __global const CLA_REAL *restrict tau, long tau0, long taups,
                                                    __global CLA_REAL *restrict C, long c0, long cps)
{
    __local cla_lane vectors_part[PLACE(K, K) * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    tau += tau0 + cla_lane_place(q, taups);
    C += c0 + cla_lane_place(q, cps);
    CLA_LOCAL cla_lane *vectors = vectors_part + l;
    SHARE_REFLECTORS(K)
    cla_lane x[COLUMNS][M];
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            x[j][i] = cla_lane_load_if(CLA_HAS_COLUMN(j, N), C, C_AT(i, CLA_COLUMN_OF(j, N)));
    barrier(CLK_LOCAL_MEM_FENCE);
    CLA_UNROLL for (int p = 0; p < K; p++) {
        const int k = TRANS ? p : K - 1 - p;
        REFLECT(k, 0)
    }
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            if (CLA_HAS_COLUMN(j, N)) cla_lane_store(C, C_AT(i, CLA_COLUMN(j)), x[j][i]);
}
#endif

#endif
