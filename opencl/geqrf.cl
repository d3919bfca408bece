/* geqrf: A <- Q\R for one lane (pack level) and for a batch (define GEQRF_BATCH).
 *
 * A is m x n; R is upper trapezoidal, below it are the vectors of min(m, n) reflectors, as LAPACK stores them.
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
/* aconj and tauconj are 0 */
__kernel void geqrf_batch(long lanes, long nm, long m, long n,
                          __global CLA_REAL *restrict A, long a0, long aps, long ars, long acs, long aconj,
                          __global CLA_REAL *restrict tau, long tau0, long taups, long taurs, long taucs, long tauconj)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_geqrf(m, n, cla_matrix_of_packs(A, q, a0, aps, ars, acs, 0),
              cla_matrix_of_packs(tau, q, tau0, taups, taurs, taucs, 0));
}
#endif

#endif
