/* geqrf, gels and geqp3 on packs, where a work-item holds a column of a matrix in registers, as column.h says, of sizes
 * and strides that are known when this is compiled: macros and arguments are those of geqrf.cl, gels.cl and geqp3.cl.
 * Tunables:
 *
 * GEQRF_COLUMN, GELS_COLUMN, GEQP3_COLUMN  one work-group for LANES matrices of a pack, with a work-item for each
 *                                          column; right-hand sides are columns too. Columns are not moved, but by way
 *                                          of local memory when they are written
 *   LANES  matrices of a work-group, a divisor of V
 */
#include "known.h"

#ifdef GELS_COLUMN
#define WIDTH (N + R)
#define FACTORED (TRANS ? N : WIDTH)
#else
#define WIDTH N
#define FACTORED N
#endif
#include "gels.cl"
#include "geqp3.cl"
#include "column.h"

#define STEPS (M < N ? M : N)
#define GROUP_ITEMS (LANES * WIDTH)
#define CHAINS 4 /* of sums, which need not wait for each other */
#define FROM_ROW(k, i) cla_lane_select(i >= (k), a[i], cla_lane_real(0)) /* element i, or 0 above row k */

/* The column of this work-item becomes that of R and of the reflector of step k, which goes to `line`. */
#define QR_REFLECTOR(k, line) { \
        const cla_lane alpha = cla_column_take(a, k); \
        CLA_REAL sums[CHAINS], squares[CHAINS]; \
        CLA_UNROLL for (int j = 0; j < CHAINS; j++) sums[j] = squares[j] = 0; \
        EACH_ROW { \
            const cla_lane x = FROM_ROW((k) + 1, i); \
            sums[i % CHAINS] += cla_lane_abs1(x); \
            squares[i % CHAINS] = cla_add_square(x, squares[i % CHAINS]); \
        } \
        CLA_UNROLL for (int j = 1; j < CHAINS; j++) { \
            sums[0] += sums[j]; \
            squares[0] += squares[j]; \
        } \
        const CLA_REAL scale = cla_scale_of(alpha, squares[0]); \
        if (scale != 1) { \
            squares[0] = 0; \
            EACH_ROW squares[0] = cla_add_square(FROM_ROW((k) + 1, i) * scale, squares[0]); \
        } \
        const cla_coefficients h = cla_coefficients_of(alpha, sums[0], squares[0], scale); \
        tau = h.tau; \
        EACH_ROW { \
            const cla_lane v = cla_lane_mul(a[i] * scale, h.inverse), r = cla_lane_real(h.beta); \
            (line)[i] = cla_lane_select(i > (k), v, cla_lane_real(i == (k))); \
            a[i] = cla_lane_select(i > (k), v, cla_lane_select(i == (k), r, a[i])); \
        } \
    }

/* a <- a - t v (v^H a) */
#define QR_REFLECT(v, t) { \
        cla_lane sums[CHAINS]; \
        CLA_UNROLL for (int j = 0; j < CHAINS; j++) sums[j] = cla_lane_real(0); \
        EACH_ROW sums[i % CHAINS] = cla_lane_fma(cla_lane_conj((v)[i]), a[i], sums[i % CHAINS]); \
        CLA_UNROLL for (int j = 1; j < CHAINS; j++) sums[0] = sums[0] + sums[j]; \
        const cla_lane w = cla_lane_mul(t, sums[0]); \
        EACH_ROW a[i] = cla_lane_fnma((v)[i], w, a[i]); \
    }

/* Columns in their order, and those of right-hand sides where these are not to wait; each work-item has its tau afterwards. */
#define QR_FACTOR \
    if (c == 0) { \
        QR_REFLECTOR(0, lines + l * LINE) \
        taus[l] = tau; \
    } \
    CLA_ROLLED for (int k = 0; k < STEPS; k++) { \
        barrier(CLK_LOCAL_MEM_FENCE); \
        if (c > k && c < FACTORED) { \
            QR_REFLECT(lines + (k % 2 * LANES + l) * LINE, cla_lane_conj(taus[k % 2 * LANES + l])) \
            if (c == k + 1 && k + 1 < STEPS) { \
                QR_REFLECTOR(k + 1, lines + ((k + 1) % 2 * LANES + l) * LINE) \
                taus[(k + 1) % 2 * LANES + l] = tau; \
            } \
        } \
    }

#define QR_HEAD \
    __local cla_lane lines[2 * LANES * LINE] __attribute__((aligned(16))); \
    __local cla_lane taus[2 * LANES]; \
    CLA_COLUMN_HEAD \
    cla_lane a[M], tau = cla_lane_real(0);

#ifdef GEQRF_COLUMN
__kernel CLA_GROUP_OF(GROUP_ITEMS) void geqrf_column(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                     __global CLA_REAL *tau_of, long tau0, long taups)
{
    QR_HEAD
    A += a0 + cla_lane_place(q, aps);
    tau_of += tau0 + cla_lane_place(q, taups);
    EACH_ROW a[i] = cla_lane_load(A, i * ARS + c * ACS);
    QR_FACTOR
    EACH_ROW cla_lane_store(A, i * ARS + c * ACS, a[i]);
    if (c < STEPS) cla_lane_store(tau_of, c * TAURS, tau);
}
#endif

#ifdef GELS_COLUMN
#define CONJ (ACONJ != (TRANS == 1))
#define GIVEN (TRANS ? N : M) /* rows of B that are read */

/* The largest of what the work-items from `first` to `end` have for a lane */
#define LARGEST_OF(largest, first, end) \
    for (int j = first; j < end; j++) largest = fmax(largest, sizes[j * LANES + l]);

__kernel CLA_GROUP_OF(GROUP_ITEMS) void gels_column(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                    __global CLA_REAL *B, long b0, long bps,
                                                    __global CLA_REAL *room, long tau0, long taups, __global int *info)
{
    __local CLA_REAL sizes[GROUP_ITEMS];
    QR_HEAD
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    CLA_REAL largest = 0, largest_of_b = 0;
    if (c < N) {
        EACH_ROW a[i] = cla_lane_load_as(CONJ, A, i * ARS + c * ACS);
    } else {
        EACH_ROW a[i] = i < GIVEN ? cla_lane_load(B, i * BRS + (c - N) * BCS) : cla_lane_real(0);
    }
    EACH_ROW largest = fmax(largest, cla_lane_abs1(a[i]));
    sizes[c * LANES + l] = largest;
    barrier(CLK_LOCAL_MEM_FENCE);
    largest = 0;
    LARGEST_OF(largest, 0, N)
    LARGEST_OF(largest_of_b, N, WIDTH)
    const CLA_REAL size = cla_scale_to_range(largest), size_of_b = cla_scale_to_range(largest_of_b);
    EACH_ROW a[i] = a[i] * (c < N ? size : size_of_b);
    QR_FACTOR
    const cla_lane pivot = cla_column_take(a, min(c, N - 1)); /* real, but for B */
    barrier(CLK_LOCAL_MEM_FENCE);
    if (c < N) {
        sizes[c * LANES + l] = cla_lane_re(pivot);
        EACH_ROW cla_lane_store_as(CONJ, A, i * ARS + c * ACS, a[i]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (c == 0 && q < nm) {
        int bad = 0;
        for (int k = N; k > 0; k--) bad = sizes[(k - 1) * LANES + l] == 0 ? k : bad;
        info[q] = bad;
    }
    CLA_ROLLED for (int t = 0; t < N; t++) { /* substitution, a column of R or a row of it and an element of X in a step */
        const int k = TRANS ? t : N - 1 - t;
        CLA_LOCAL cla_lane *line = lines + (t % 2 * LANES + l) * LINE;
        if (TRANS && c < N) line[c] = cla_lane_select(c > k, cla_lane_conj(cla_column_take(a, k)), cla_lane_real(0));
        if (TRANS && c == 0)
            for (int i = N; i < M; i++) line[i] = cla_lane_real(0);
        if (!TRANS && c == k) EACH_ROW line[i] = cla_lane_select(i < k, a[i], cla_lane_real(0));
        barrier(CLK_LOCAL_MEM_FENCE);
        if (c >= N) {
            const cla_lane x = cla_column_take(a, k) / sizes[k * LANES + l];
            EACH_ROW a[i] = i == k ? x : cla_lane_fnma(line[i], x, a[i]);
        }
    }
    if (TRANS) {
        CLA_ROLLED for (int k = N - 1; k >= 0; k--) {
            CLA_LOCAL cla_lane *line = lines + (k % 2 * LANES + l) * LINE;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (c == k) {
                EACH_ROW line[i] = cla_lane_select(i > k, a[i], cla_lane_real(i == k));
                taus[l] = tau;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (c >= N) QR_REFLECT(line, taus[l])
        }
    }
    const CLA_REAL back = size / size_of_b;
    if (c >= N) EACH_ROW cla_lane_store(B, i * BRS + (c - N) * BCS, TRANS || i < N ? a[i] * back : a[i] / size_of_b);
}
#endif

#ifdef GEQP3_COLUMN
#define ROWS_AT_ONCE 4 /* that are written together */

__kernel CLA_GROUP_OF(GROUP_ITEMS) void geqp3_column(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                     __global int *jpvt, long jpvt0, long jpvtps,
                                                     __global CLA_REAL *tau_of, long tau0, long taups)
{
    __local CLA_REAL norms[N * LANES]; /* of what is left of the columns, by their places */
    __local cla_lane tile[ROWS_AT_ONCE * N * LANES];
    QR_HEAD
    A += a0 + cla_lane_place(q, aps);
    jpvt += jpvt0 + cla_lane_place(q, jpvtps);
    tau_of += tau0 + cla_lane_place(q, taups);
    EACH_ROW a[i] = cla_lane_load(A, i * ARS + c * ACS);
    CLA_LOCAL cla_lane *line = lines + l * LINE;
    int place = c;
    CLA_ROLLED for (int k = 0; k < STEPS; k++) {
        if (place >= k) {
            CLA_REAL squares[CHAINS];
            CLA_UNROLL for (int j = 0; j < CHAINS; j++) squares[j] = 0;
            EACH_ROW squares[i % CHAINS] = cla_add_square(FROM_ROW(k, i), squares[i % CHAINS]);
            CLA_UNROLL for (int j = 1; j < CHAINS; j++) squares[0] += squares[j];
            const CLA_REAL scale = cla_scale_of(cla_lane_real(0), squares[0]);
            if (scale != 1) {
                squares[0] = 0;
                EACH_ROW squares[0] = cla_add_square(FROM_ROW(k, i) * scale, squares[0]);
            }
            norms[place * LANES + l] = cla_lane_sqrt(squares[0]) / scale;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        cla_longest longest = cla_none_seen(k);
        for (int j = k; j < N; j++) longest = cla_see(longest, j, norms[j * LANES + l]);
        place = place == longest.column ? k : place == k ? longest.column : place;
        if (place == k) {
            QR_REFLECTOR(k, line)
            taus[l] = tau;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (place > k) QR_REFLECT(line, cla_lane_conj(taus[l]))
    }
    CLA_UNROLL for (int first = 0; first < M; first += ROWS_AT_ONCE) {
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH_ROW
        if (i >= first && i < first + ROWS_AT_ONCE) tile[((i - first) * N + place) * LANES + l] = a[i];
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH_ROW
        if (i >= first && i < first + ROWS_AT_ONCE)
            cla_lane_store(A, i * ARS + c * ACS, tile[((i - first) * N + c) * LANES + l]);
    }
    cla_int_store(jpvt, place, c);
    if (place < STEPS) cla_lane_store(tau_of, place * TAURS, tau);
}
#endif
