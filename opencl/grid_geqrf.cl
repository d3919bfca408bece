/* geqrf and gels on packs by teams of work-items, which hold a matrix in registers, of sizes and strides that are known
 * when this is compiled: macros and arguments are those of geqrf.cl and gels.cl. Tunables:
 *
 * GEQRF_GRID, GELS_GRID  one work-group for LANES matrices of a pack, each in a grid of P x Q work-items, as grid.h says;
 *                        right-hand sides are columns beside the matrix
 *   LANES  matrices of a work-group, a divisor of V
 *   P, Q   rows and columns of the grid, powers of 2
 */
#include "known.h"

#define PACKED 1
#ifdef GELS_GRID
#define HELD (N + R)
#define CONJ (ACONJ != (TRANS == 1))
#else
#define CONJ 0
#endif
#undef K
#define K (M < N ? M : N)
#define LONG (P == 1)
#include "grid_reflectors.h"

#define LINES_OF(k) ((k) % 2 * LINES)
#define SCALE_OF(j) scales[team * (OWN_COLUMNS * Q) + (j)] /* of what is computed */
#define GET_A(i, j) cla_lane_load_as(CONJ, A, (long)(i) * ARS + (long)(j) * ACS)
#define FACTOR(i, j, x) \
    cla_lane_select(i > j, cla_lane_mul(x, inverses[team * K + min(j, K - 1)]), (x) * SCALE_OF(j))
#define PUT_A(i, j, x) cla_lane_store_as(CONJ, A, (long)(i) * ARS + (long)(j) * ACS, FACTOR(i, j, x));

#ifdef GEQRF_GRID
#define KEEP(k, h) \
    taus[team * K + k] = h.tau; \
    inverses[team * K + k] = h.inverse;

__kernel CLA_GROUP_OF(MEMBERS * LANES) void geqrf_grid(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                       __global CLA_REAL *tau, long tau0, long taups)
{
    __local cla_lane lines[TEAMS * ROOM] __attribute__((aligned(16)));
    __local cla_lane taus[TEAMS * K], inverses[TEAMS * K];
    __local CLA_REAL scales[TEAMS * OWN_COLUMNS * Q];
    CLA_GRID_SUMS(OWN_COLUMNS + 1)
    CLA_GRID_HEAD
    A += a0 + cla_lane_place(q, aps);
    tau += tau0 + cla_lane_place(q, taups);
    cla_lane a[OWN_ROWS][OWN_COLUMNS];
    CLA_GRID_READ(a, M, N, 1, GET_A)
    CLA_GRID_SCALE_COLUMNS
#define STEP 0
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#undef STEP
    CLA_TOGETHER
    CLA_GRID_WRITE(a, M, N, PUT_A)
    for (int k = t; k < K; k += MEMBERS) cla_lane_store(tau, k * TAURS, taus[team * K + k]);
}
#endif

#ifdef GELS_GRID
#define B_AT(i, j) ((long)(i) * BRS + (long)((j) - N) * BCS)
#define GET_B(i, j) (TRANS ? cla_lane_real(0) : cla_lane_load(B, B_AT(i, j)))
#define GET(i, j) ((j) < N ? GET_A(i, j) : GET_B(i, j))
#define KEEP(k, h) \
    if (h.beta == 0 && bad == 0) bad = k + 1; \
    taus[team * N + k] = h.tau * cla_add_square(h.inverse, 0); \
    tops[team * N + k] = h.top; \
    inverses[team * N + k] = h.inverse;
#define EACH_OF_B(code) \
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) \
        CLA_UNROLL for (int v = FIRST_OF_B; v < OWN_COLUMNS; v++) { \
            const int i = u * P + p, j = v * Q + c; \
            if (CLA_GRID_HAS(i, M, P) && j >= N && CLA_GRID_HAS(j, HELD, Q)) { code } \
        }

__kernel CLA_GROUP_OF(MEMBERS * LANES) void gels_grid(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                                      __global CLA_REAL *B, long b0, long bps,
                                                      __global CLA_REAL *room, long tau0, long taups, __global int *info)
{
    __local cla_lane lines[TEAMS * ROOM] __attribute__((aligned(16)));
    __local cla_lane taus[TEAMS * N], tops[TEAMS * N], inverses[TEAMS * N];
    __local CLA_REAL scales[TEAMS * OWN_COLUMNS * Q];
    CLA_GRID_SUMS(OWN_COLUMNS + 1)
    CLA_GRID_HEAD
    int bad = 0;
    A += a0 + cla_lane_place(q, aps);
    B += b0 + cla_lane_place(q, bps);
    cla_lane a[OWN_ROWS][OWN_COLUMNS];
    CLA_GRID_READ(a, M, HELD, 1, GET)
    CLA_GRID_SCALE_COLUMNS
#define STEP 0
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#undef STEP
    CLA_TOGETHER
    CLA_GRID_WRITE(a, M, N, PUT_A)
    if (TRANS) { EACH_OF_B(if (i < N) a[u][v] = cla_lane_load(B, B_AT(i, j)) / SCALE_OF(i);) }
#define STEP 0
#include "grid_triangle_step.h"
#include "grid_triangle_step.h"
#include "grid_triangle_step.h"
#include "grid_triangle_step.h"
#undef STEP
#if TRANS
#define ALONG 0
    CLA_TOGETHER
#define STEP 0
#include "grid_reflect_step.h"
#include "grid_reflect_step.h"
#include "grid_reflect_step.h"
#include "grid_reflect_step.h"
#undef STEP
#endif
    EACH_OF_B(
        const cla_lane x = TRANS ? a[u][v] : a[u][v] * SCALE_OF(j);
        cla_lane_store(B, B_AT(i, j), TRANS || i >= N ? x : x / SCALE_OF(i));)
    if (t == 0 && q < nm) info[q] = bad;
}
#endif
