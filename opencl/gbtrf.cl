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

#include "unroll.h"

#define CLA_NARROW 9 /* diagonals beside the main one of which rows are in registers, at most */

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
#define WIDTH (KL + KU + 1)

/* Where the matrix is read from. */
typedef struct {
    cla_matrix a, b, c;
} cla_band_source;

/* Row k, from column k - KL to k + KU; zeros for what is outside of the matrix. */
CLA_INLINE void cla_band_row(cla_band_source D, int k, int n, cla_lane *row)
{
    CLA_UNROLL for (int t = 0; t < WIDTH; t++) row[t] = cla_lane_real(0);
    if (k >= n) return;
#if SOURCE == 1
    if (k > 0) row[0] = cla_get(D.a, 0, k - 1);
    row[1] = cla_get(D.b, 0, k);
    if (k < n - 1) row[2] = cla_get(D.c, 0, k);
#elif SOURCE == 2
    const int odd = k & 1, i = cla_folded(k, n), left = i ? i - 1 : n - 1;
    const cla_lane lower = cla_get(D.a, 0, left), upper = cla_get(D.c, 0, i);
    const cla_lane before = odd ? upper : lower, after = odd ? lower : upper;
    row[2] = cla_get(D.b, 0, i);
    if (k >= 2) row[0] = before;
    if (k == 1) row[1] = before;
    if (k == 0) row[3] = before;
    if (k < n - 2) row[4] = after;
    if (k == n - 2) row[3] = row[3] + after;
    if (k == n - 1) row[1] = row[1] + after;
#else
    CLA_UNROLL for (int t = 0; t < WIDTH; t++) {
        const int j = k + t - KL;
        if (j < 0 || j >= n) continue;
#if SOURCE == 0
        row[t] = cla_get(D.a, WIDTH - 1 - t, j);
#else
        const int there = SOURCE == 3 ? j <= k : j >= k; /* else the other triangle has it */
        const int distance = j < k ? k - j : j - k;
        const cla_lane x = cla_get(D.a, SOURCE == 3 ? distance : KU - distance, there ? j : k);
        row[t] = j == k ? cla_lane_real(cla_lane_re(x)) : there ? x : cla_lane_conj(x);
#endif
    }
#endif
}

/* gbtrf of what is read: rows k to k + KL are in registers, as far as they reach. */
CLA_INLINE int cla_gbtrf_in_registers(cla_band_source D, int n, cla_matrix F, __global int *swaps)
{
    cla_lane w[KL + 1][WIDTH];
    int info = 0;
    CLA_UNROLL for (int i = 0; i <= KL; i++) {
        cla_lane row[WIDTH];
        cla_band_row(D, i, n, row);
        CLA_UNROLL for (int t = 0; t < WIDTH; t++)
            w[i][t] = t + KL - i < WIDTH ? row[(t + KL - i) % WIDTH] : cla_lane_real(0);
    }
    for (int k = 0; k < n; k++) {
        if (PIVOTING) {
            int place = 0;
            CLA_REAL best = cla_lane_abs1(w[0][0]);
            CLA_UNROLL for (int i = 1; i <= KL; i++) {
                const CLA_REAL size = cla_lane_abs1(w[i][0]);
                if (size > best && k + i < n) {
                    best = size;
                    place = i;
                }
            }
            cla_int_store(swaps, k, place);
            CLA_UNROLL for (int i = 1; i <= KL; i++)
                CLA_UNROLL for (int t = 0; t < WIDTH; t++) {
                    const cla_lane x = w[0][t], y = w[i][t];
                    w[0][t] = place == i ? y : x;
                    w[i][t] = place == i ? x : y;
                }
        }
        const cla_lane pivot = w[0][0];
        cla_lane top[WIDTH];
        CLA_UNROLL for (int t = 0; t < WIDTH; t++) top[t] = w[0][t];
        const int zero = cla_lane_is_zero(pivot);
        if (info == 0 && (SOURCE >= 3 ? !(cla_lane_re(pivot) > 0) : zero)) info = k + 1;
        const cla_lane inverse = zero ? cla_lane_real(1) : cla_lane_recip(pivot);
        cla_matrix_store(F, cla_band_place(k, k, KL, F), inverse);
        CLA_UNROLL for (int t = 1; t <= REACH; t++) cla_matrix_store(F, cla_band_place(k, k + t, KL, F), top[t]);
        CLA_UNROLL for (int i = 1; i <= KL; i++) {
            const cla_lane multiple = cla_lane_mul(w[i][0], inverse);
            if (k + i < n) cla_matrix_store(F, cla_band_place(k + i, k, KL, F), multiple);
            CLA_UNROLL for (int t = 1; t < WIDTH; t++) w[i - 1][t - 1] = cla_lane_fnma(multiple, top[t], w[i][t]);
            w[i - 1][WIDTH - 1] = cla_lane_real(0);
        }
        cla_band_row(D, k + KL + 1, n, w[KL]);
    }
    return info;
}

__kernel void gbtrf_batch(long lanes, long size, __global const CLA_REAL *a, __global const CLA_REAL *b,
                          __global const CLA_REAL *c, __global CLA_REAL *f, __global int *swaps, __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int n = size;
    const cla_matrix F = cla_matrix_of_batch(f, q, n, KL + REACH + 1);
    __global int *const swapped = cla_ints_of_batch(swaps, q, PIVOTING ? n : 0);
    cla_band_source D;
#if SOURCE == 1 || SOURCE == 2
    D.a = cla_matrix_of_batch(a, q, 1, SOURCE == 2 ? n : n - 1);
    D.b = cla_matrix_of_batch(b, q, 1, n);
    D.c = cla_matrix_of_batch(c, q, 1, SOURCE == 2 ? n : n - 1);
#else
    D.a = D.b = D.c = cla_matrix_of_batch(a, q, SOURCE == 0 ? WIDTH : KU + 1, n);
#endif
#if KL + KU <= CLA_NARROW
    info[q] = cla_gbtrf_in_registers(D, n, F, swapped);
#else
    for (int k = 0; k < n; k++) {
        cla_lane row[WIDTH];
        cla_band_row(D, k, n, row);
        for (int t = 0; t <= KL + REACH; t++)
            cla_matrix_store(F, k * F.rs + t * F.cs, t < WIDTH ? row[t] : cla_lane_real(0));
    }
    info[q] = cla_gbtrf(n, KL, REACH, PIVOTING, SOURCE >= 3, F, swapped);
#endif
}
#endif
