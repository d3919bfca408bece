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
                          __global const CLA_REAL *restrict A, long a0, long aps, long ars, long acs, long aconj,
                          __global const CLA_REAL *restrict tau, long tau0, long taups, long taurs, long taucs,
                          long tauconj,
                          __global CLA_REAL *restrict C, long c0, long cps, long crs, long ccs, long cconj)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_ormqr(m, n, k, trans, cla_matrix_of_packs(A, q, a0, aps, ars, acs, aconj),
              cla_matrix_of_packs(tau, q, tau0, taups, taurs, taucs, tauconj),
              cla_matrix_of_packs(C, q, c0, cps, crs, ccs, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N, K and, in numbers, ARS, ACS, TAURS,
 * CRS, CCS; ACONJ and TAUCONJ, 1 if both are to be conjugated; TRANS, 1 for Q^H. Tunables:
 *
 * ORMQR_ITEM  one work-item a matrix: the reflectors in its registers, M K + K lanes, the columns of C pass by
 *   GROUP     work-items of a work-group
 */
#ifdef ORMQR_ITEM
#define C_AT(i, j) ((i) * CRS + (j) * CCS)

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
        t[k] = cla_lane_load_as(TAUCONJ != TRANS, tau, k * TAURS);
        CLA_UNROLL for (int i = k + 1; i < M; i++) v[i][k] = cla_lane_load_as(ACONJ, A, i * ARS + k * ACS);
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

#endif
