/* gbtrf: the LU factors of a band matrix in its rows, for one lane.
 *
 * F is n x (kl + reach + 1): element (i, j) of the matrix is its element (i, j - i + kl). Where rows are swapped,
 * `reach` is ku + kl, else ku. Element (k, k) becomes the reciprocal of its pivot, what is left of it the multiples of
 * rows that were subtracted, as they were then, what is right of it U.
 */
#ifndef CLA_GBTRF_CL
#define CLA_GBTRF_CL

#include "unroll.h"

/* Where element (i, j) of a band matrix is in its rows. */
CLA_INLINE long cla_band_place(int i, int j, int kl, cla_matrix F) { return i * F.rs + (j - i + kl) * F.cs; }

/* Which of n unknowns of a ring is in place k where it is folded: in the order 0, n - 1, 1, n - 2, ... */
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
