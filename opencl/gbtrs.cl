/* gbtrs: B <- inv(A) B with the factors of gbtrf, for one lane (pack level) and for a batch (define GBTRS_BATCH). */
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

#ifdef GBTRS_BATCH
#define AT(k) (FOLD ? cla_folded(k, n) : (k)), c
/* The same, with what is carried on in registers. */
CLA_INLINE void cla_gbtrs_in_registers(int n, int r, cla_matrix F, __global const int *swaps, cla_matrix B)
{
    for (int c = 0; c < r; c++) {
        cla_lane w[KL + 1], u[REACH + 1];
        CLA_UNROLL for (int i = 0; i <= KL; i++) w[i] = cla_get(B, AT(min(i, n - 1)));
        for (int k = 0; k < n; k++) {
            const int place = PIVOTING ? cla_int_load(swaps, k) : 0;
            CLA_UNROLL for (int i = 1; i <= KL; i++) {
                const cla_lane x = w[0], y = w[i];
                w[0] = place == i ? y : x;
                w[i] = place == i ? x : y;
            }
            const cla_lane top = w[0];
            cla_set(B, AT(k), top);
            CLA_UNROLL for (int i = 1; i <= KL; i++) {
                const int row = min(k + i, n - 1); /* what is behind the last is not used */
                w[i - 1] = cla_lane_fnma(cla_matrix_load(F, cla_band_place(row, k, KL, F)), top, w[i]);
            }
            w[KL] = cla_get(B, AT(min(k + KL + 1, n - 1)));
        }
        CLA_UNROLL for (int t = 0; t <= REACH; t++) u[t] = cla_lane_real(0);
        for (int k = n - 1; k >= 0; k--) {
            cla_lane x = cla_get(B, AT(k));
            CLA_UNROLL for (int t = REACH; t > 0; t--) {
                x = cla_lane_fnma(cla_matrix_load(F, cla_band_place(k, k + t, KL, F)), u[t], x);
                if (t > 1) u[t] = u[t - 1];
            }
            u[REACH ? 1 : 0] = x = cla_lane_mul(x, cla_matrix_load(F, cla_band_place(k, k, KL, F)));
            cla_set(B, AT(k), x);
        }
    }
}
#undef AT

/* With COMMON all lanes have the factors of the first. */
__kernel void gbtrs_batch(long lanes, long n, long r, __global const CLA_REAL *f, __global const int *swaps,
                          __global CLA_REAL *b)
{
    const long q = get_global_id(0), own = COMMON ? 0 : q;
    if (q >= lanes) return;
    const cla_matrix F = cla_matrix_of_batch(f, own, n, KL + REACH + 1), B = cla_matrix_of_batch(b, q, n, r);
    __global const int *const swapped = cla_ints_of_batch(swaps, own, PIVOTING ? n : 0);
#if KL + KU <= CLA_NARROW
    cla_gbtrs_in_registers(n, r, F, swapped, B);
#else
    cla_gbtrs(n, r, KL, REACH, PIVOTING, FOLD, F, swapped, B);
#endif
}
#endif
