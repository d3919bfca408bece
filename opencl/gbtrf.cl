/* gbtrf: the LU factors of a band matrix in its rows, for one lane (pack level) and for a batch (define GBTRF_BATCH).
 *
 * F is n x (kl + reach + 1): element (i, j) of the matrix is its element (i, j - i + kl). Where rows are swapped,
 * `reach` is ku + kl, else ku. Element (k, k) becomes the reciprocal of its pivot, what is left of it the multiples of
 * rows that were subtracted, as they were then, what is right of it U.
 * Batch: the matrix is read from packs first, of the diagonals as SciPy orders them, or, with SOURCE 1 and 2, of the
 * lower, main and upper diagonal, which with 2 are closed to a ring and folded: unknowns are in the order 0, n - 1, 1,
 * n - 2, ... Of a Hermitian matrix one triangle is read, with 3 the lower, with 4 the upper one.
 */
#ifndef CLA_GBTRF_CL
#define CLA_GBTRF_CL

#include "lane.h"

/* Where element (i, j) of a band matrix is in its rows. */
CLA_INLINE long cla_band_place(int i, int j, int kl, cla_matrix F) { return i * F.rs + (j - i + kl) * F.cs; }

/* Which unknown of a folded ring is in place k. */
CLA_INLINE int cla_folded(int k, int n) { return k & 1 ? n - 1 - k / 2 : k / 2; }

/* swaps: n ints, how many rows further the row is that row k was swapped with. Returns 0 or 1 + the index of the first
 * pivot that is zero, for which 1 counts, or, of a `definite` matrix, not positive. */
CLA_INLINE int cla_gbtrf(int n, int kl, int reach, int pivoting, int definite, cla_matrix F, __global int *swaps)
{
    int info = 0;
    for (int k = 0; k < n; k++) {
        const int below = min(kl, n - 1 - k), right = min(reach, n - 1 - k);
        cla_lane pivot = cla_matrix_load(F, cla_band_place(k, k, kl, F));
        if (pivoting) {
            int place = 0;
            CLA_REAL best = cla_lane_abs1(pivot);
            for (int i = 1; i <= below; i++) {
                const CLA_REAL size = cla_lane_abs1(cla_matrix_load(F, cla_band_place(k + i, k, kl, F)));
                if (size > best) {
                    best = size;
                    place = i;
                }
            }
            cla_int_store(swaps, k, place);
            for (int j = 0; j <= right && place; j++) {
                const long p = cla_band_place(k, k + j, kl, F), q = cla_band_place(k + place, k + j, kl, F);
                const cla_lane x = cla_matrix_load(F, p);
                cla_matrix_store(F, p, cla_matrix_load(F, q));
                cla_matrix_store(F, q, x);
            }
            pivot = cla_matrix_load(F, cla_band_place(k, k, kl, F));
        }
        const int zero = cla_lane_is_zero(pivot);
        if (info == 0 && (definite ? !(cla_lane_re(pivot) > 0) : zero)) info = k + 1;
        const cla_lane inverse = zero ? cla_lane_real(1) : cla_lane_recip(pivot);
        cla_matrix_store(F, cla_band_place(k, k, kl, F), inverse);
        for (int i = k + 1; i <= k + below; i++) {
            const long p = cla_band_place(i, k, kl, F);
            const cla_lane multiple = cla_lane_mul(cla_matrix_load(F, p), inverse);
            cla_matrix_store(F, p, multiple);
            for (int j = k + 1; j <= k + right; j++) {
                const cla_lane top = cla_matrix_load(F, cla_band_place(k, j, kl, F));
                const long q = cla_band_place(i, j, kl, F);
                cla_matrix_store(F, q, cla_lane_fnma(multiple, top, cla_matrix_load(F, q)));
            }
        }
    }
    return info;
}
#endif

#ifdef GBTRF_BATCH
#define ROW(t) F, k * F.rs + (t) * F.cs

#if SOURCE == 2
/* Add x to element (k, j), where j is k + 2 unless there is no such column; a ring ends with two neighbours. */
static void couple(cla_matrix F, int k, int j, cla_lane x)
{
    const long p = cla_band_place(k, j, KL, F);
    cla_matrix_store(F, p, cla_matrix_load(F, p) + x);
}
#endif

__kernel void gbtrf_batch(long lanes, long size, __global const CLA_REAL *a, __global const CLA_REAL *b,
                          __global const CLA_REAL *c, __global CLA_REAL *f, __global int *swaps, __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int n = size;
    const cla_matrix F = cla_matrix_of_batch(f, q, n, KL + REACH + 1);
    for (int k = 0; k < n; k++)
        for (int t = 0; t <= KL + REACH; t++) cla_matrix_store(ROW(t), cla_lane_real(0));
#if SOURCE == 1 || SOURCE == 2
    const cla_matrix diag = cla_matrix_of_batch(b, q, 1, n);
    const cla_matrix lower = cla_matrix_of_batch(a, q, 1, COUPLINGS), upper = cla_matrix_of_batch(c, q, 1, COUPLINGS);
#endif
    for (int k = 0; k < n; k++) {
#if SOURCE == 1
        if (k > 0) cla_matrix_store(ROW(0), cla_get(lower, 0, k - 1));
        cla_matrix_store(ROW(1), cla_get(diag, 0, k));
        if (k < n - 1) cla_matrix_store(ROW(2), cla_get(upper, 0, k));
#elif SOURCE == 2
        const int odd = k & 1, i = cla_folded(k, n), left = i ? i - 1 : n - 1;
        const cla_lane low = cla_get(lower, 0, left), up = cla_get(upper, 0, i);
        couple(F, k, k, cla_get(diag, 0, i));
        couple(F, k, k >= 2 ? k - 2 : 1 - k, odd ? up : low);
        couple(F, k, k + 2 < n ? k + 2 : k + 2 == n ? k + 1 : k - 1, odd ? low : up);
#else
        const cla_matrix A = cla_matrix_of_batch(a, q, STORED, n);
        for (int t = 0; t < STORED; t++) {
            const int j = k + t - (SOURCE == 4 ? 0 : KL), stored = STORED - 1 - t;
            if (j < 0 || j >= n) continue;
            const cla_lane x = cla_get(A, stored, j);
#if SOURCE == 0
            cla_matrix_store(ROW(t), x);
#else
            cla_matrix_store(F, cla_band_place(k, j, KL, F), j == k ? cla_lane_real(cla_lane_re(x)) : x);
            if (j != k) cla_matrix_store(F, cla_band_place(j, k, KL, F), cla_lane_conj(x));
#endif
        }
#endif
    }
    info[q] = cla_gbtrf(n, KL, REACH, PIVOTING, SOURCE >= 3, F, cla_ints_of_batch(swaps, q, PIVOTING ? n : 0));
}
#endif
