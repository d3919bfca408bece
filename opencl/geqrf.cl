/* geqrf: A <- Q\R for one lane (pack level) and for a batch (define GEQRF_BATCH).
 *
 * A is m x n; R is upper trapezoidal, below it are the vectors of min(m, n) reflectors, whose scalars go to tau, as in
 * LAPACK.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item factors one lane.
 */
#ifndef CLA_GEQRF_CL
#define CLA_GEQRF_CL

#include "householder.h"

/* tau is a column of min(m, n) numbers. */
CLA_INLINE void cla_geqrf(int m, int n, cla_matrix A, cla_matrix tau)
{
    for (int k = 0; k < min(m, n); k++) {
        const cla_lane t = cla_reflector(m - k, cla_from(A, k, k));
        cla_set(tau, k, 0, t);
        cla_reflect(m - k, n - k - 1, cla_from(A, k + 1, k), cla_lane_conj(t), cla_from(A, k, k + 1));
    }
}

#ifdef GEQRF_BATCH
/* aconj and tauconj are 0: both are as they are */
__kernel void geqrf_batch(long lanes, long nm, long m, long n, CLA_OPERAND(CLA_REAL *restrict A, a),
                          CLA_OPERAND(CLA_REAL *restrict tau, tau))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_geqrf(m, n, CLA_MATRIX(A, a, q, 0), CLA_MATRIX(tau, tau, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in numbers, ARS, ACS, TAURS.
 * Tunables:
 *
 * GEQRF_ITEM  one work-item a matrix, all of it in registers: M N lanes
 *   GROUP     work-items of a work-group
 * GEQRF_TEAM  one work-group for LANES matrices of a pack; a work-item keeps COLUMNS columns, TEAM apart, in registers,
 *             COLUMNS M lanes, and reflectors go through local memory, two at a time: 2 M LANES lanes. A work-group has
 *             LANES TEAM work-items.
 *   LANES     matrices of a work-group, a divisor of V
 *   COLUMNS   columns of a work-item
 *   TEAM      work-items of a matrix, ceil(N / COLUMNS)
 */
#if defined(GEQRF_ITEM) || defined(GEQRF_TEAM)
#include "known.h"

#define STEPS (M < N ? M : N)
#endif

#ifdef GEQRF_ITEM
#define AT(i, j) a[i][j]
#define SET(i, j, x) AT(i, j) = x;
#define EACH_ROW(F, k, s) CLA_UNROLL for (int i = k + 1; i < M; i++) F(k, s, i)
#define EACH_ROW_OF(F, k, s, j) CLA_UNROLL for (int i = k + 1; i < M; i++) F(k, s, j, i)

__kernel CLA_GROUP_OF(GROUP) void geqrf_item(long lanes, long nm, __global CLA_REAL *restrict A, long a0, long aps,
                                             __global CLA_REAL *restrict tau_part, long tau0, long taups)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    tau_part += tau0 + cla_lane_place(q, taups);
    cla_lane a[M][N];
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) AT(i, j) = cla_lane_load(A, i * ARS + j * ACS);
    CLA_UNROLL for (int k = 0; k < STEPS; k++) {
        cla_lane tau;
        CLA_REFLECTOR(k, k)
        cla_lane_store(tau_part, k * TAURS, tau);
        CLA_UNROLL for (int j = k + 1; j < N; j++) CLA_REFLECT(k, k, cla_lane_conj(tau), j)
    }
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) cla_lane_store(A, i * ARS + j * ACS, AT(i, j));
}
#endif

#ifdef GEQRF_TEAM
/* Which work-item has column k, and as which of its own */
#define OWNER(k) ((k) % TEAM)
#define OWN(k) ((k) / TEAM)
#define AT(i, j) a[j][i]
#define SET(i, j, x) AT(i, j) = x;
#define EACH_ROW(F, k, s) CLA_UNROLL for (int i = (k) + 1; i < M; i++) F(k, s, i)

__kernel CLA_GROUP_OF(LANES * TEAM) void geqrf_team(long lanes, long nm, __global CLA_REAL *restrict A, long a0,
                                                    long aps, __global CLA_REAL *restrict tau_part, long tau0,
                                                    long taups)
{
    __local cla_lane l_vectors[2 * M * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    tau_part += tau0 + cla_lane_place(q, taups);
    CLA_LOCAL cla_lane *vectors = l_vectors + l;
    cla_lane a[COLUMNS][M];
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            AT(i, j) = cla_lane_load_if(CLA_HAS_COLUMN(j, N), A, i * ARS + CLA_COLUMN_OF(j, N) * ACS);
#define STEP 0
#include "geqrf_step.h"
#include "geqrf_step.h"
#include "geqrf_step.h"
#include "geqrf_step.h"
#undef STEP
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            if (CLA_COLUMN(j) < N) cla_lane_store(A, i * ARS + CLA_COLUMN(j) * ACS, AT(i, j));
}
#endif

#endif
