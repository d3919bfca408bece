/* gbtrs: B <- inv(A) B with the factors of gbtrf, for one lane. */
#ifndef CLA_GBTRS_CL
#define CLA_GBTRS_CL

#include "gbtrf.cl"

/* B is n x r; if `fold` is set, the factors are those of a folded ring. */
CLA_INLINE void cla_gbtrs(int n, int r, int kl, int reach, int pivoting, int fold, cla_matrix F,
                          __global const int *swaps, cla_matrix B)
{
#define AT(k) (fold ? cla_folded(k, n) : (k)), c
    for (int c = 0; c < r; c++) {
        for (int k = 0; k < n; k++) {
            cla_lane x = cla_get(B, AT(k));
            const int place = pivoting ? cla_int_load(swaps, k) : 0;
            if (place) {
                const cla_lane y = cla_get(B, AT(k + place));
                cla_set(B, AT(k + place), x);
                cla_set(B, AT(k), y);
                x = y;
            }
            for (int i = k + 1; i <= min(k + kl, n - 1); i++) {
                const cla_lane multiple = cla_matrix_load(F, cla_band_place(i, k, kl, F));
                cla_set(B, AT(i), cla_lane_fnma(multiple, x, cla_get(B, AT(i))));
            }
        }
        for (int k = n - 1; k >= 0; k--) {
            cla_lane x = cla_get(B, AT(k));
            for (int j = min(k + reach, n - 1); j > k; j--)
                x = cla_lane_fnma(cla_matrix_load(F, cla_band_place(k, j, kl, F)), cla_get(B, AT(j)), x);
            cla_set(B, AT(k), cla_lane_mul(x, cla_matrix_load(F, cla_band_place(k, k, kl, F))));
        }
    }
#undef AT
}
#endif
