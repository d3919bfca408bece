/* gemm: C <- alpha A B + beta C for one lane (pack level) and for a batch (define GEMM_BATCH).
 *
 * A is m x k, B k x n, C m x n; transposes are strides, conjugates a flag of the matrix (lane.h).
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane of C.
 */
#ifndef GEMM_CL
#define GEMM_CL

#include "tile.h"

/* As BLAS: beta = 0 does not read C, alpha = 0 does not read A and B. C overlaps neither A nor B. */
INLINE void gemm(int m, int n, int k, lane alpha, matrix A, matrix B, lane beta, matrix C)
{
    if (lane_is_zero(alpha)) k = 0;
    for (int i = 0; i < m; i += TILE)
        for (int j = 0; j < n; j += COLS) {
            tile c = tile_multiply(tile_zero(), A, i, m, B, j, n, k);
            c = tile_combine(alpha, c, beta, C, i, m, j, n);
            tile_store(c, C, i, m, j, n);
        }
}

#ifdef GEMM_BATCH
__kernel void gemm_batch(long lanes, long m, long n, long k, REAL alpha, REAL alpha_im,
                         __global const REAL *restrict A, long a0, long aps, long ars, long acs, long conja,
                         __global const REAL *restrict B, long b0, long bps, long brs, long bcs, long conjb,
                         REAL beta, REAL beta_im, __global REAL *restrict C, long c0, long cps, long crs, long ccs)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    matrix a = matrix_at(A + a0 + q / V * aps + q % V, ars, acs);
    matrix b = matrix_at(B + b0 + q / V * bps + q % V, brs, bcs);
    a.conj = conja;
    b.conj = conjb;
    gemm(m, n, k, lane_of(alpha, alpha_im), a, b, lane_of(beta, beta_im),
         matrix_at(C + c0 + q / V * cps + q % V, crs, ccs));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N, K and, in REAL elements, ARS, ACS, BRS,
 * BCS, CRS, CCS; CONJA and CONJB, 1 to conjugate; SCALED, 0 if alpha is 1; BETA, 0 if C is only written. Tunables:
 *
 * GEMM_ITEM  one work-item a matrix: all of B in its registers, the rows of A and C pass by.
 *   GROUP    work-items of a work-group
 * GEMM_TEAM  one work-group for LANES matrices of a pack: A and B go through local memory, DEPTH columns of A and rows
 *            of B at a time; a work-item computes a tile of C.
 *   LANES    matrices of a work-group, a divisor of V
 *   TI, TJ   rows and columns of a tile; a work-item's rows are neighbours, its columns are TEAMJ apart, so that the
 *            work-items of a warp read different banks
 *   DEPTH    columns of A in local memory
 *   AHEAD    1: loads of the next DEPTH columns are under way during the products; 2: and the loop is written out
 *   ROUNDS   how often LANES matrices a work-group takes on, where there are many: the first loads of the next are
 *            under way during the products of the last
 */
#if defined(GEMM_ITEM) || defined(GEMM_TEAM)
#include "unroll.h"

#define A_AT(i, k) lane_load(A, (i) * ARS + (k) * ACS)
#define B_AT(k, j) lane_load(B, (k) * BRS + (j) * BCS)
#define C_AT(i, j) ((i) * CRS + (j) * CCS)
#define CONJUGATED(flag, a) ((flag) ? lane_conj(a) : (a))
#define SCALE(b) (SCALED ? lane_scale(lane_of(alpha, alpha_im), b) : (b)) /* alpha goes to B */
#endif

#ifdef GEMM_ITEM
__kernel GROUP_OF(GROUP) void gemm_item(long lanes, REAL alpha, REAL alpha_im,
                                        __global const REAL *restrict A, long a0, long aps,
                                        __global const REAL *restrict B, long b0, long bps,
                                        REAL beta, REAL beta_im, __global REAL *restrict C, long c0, long cps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + q / V * aps + q % V;
    B += b0 + q / V * bps + q % V;
    C += c0 + q / V * cps + q % V;
    lane b[K][N];
    UNROLL for (int k = 0; k < K; k++)
        UNROLL for (int j = 0; j < N; j++)
            b[k][j] = SCALE(CONJUGATED(CONJB, B_AT(k, j)));
    UNROLL for (int i = 0; i < M; i++) {
        lane a[K], c[N];
        UNROLL for (int k = 0; k < K; k++) a[k] = CONJUGATED(CONJA, A_AT(i, k));
        UNROLL for (int j = 0; j < N; j++)
            c[j] = BETA ? lane_scale(lane_of(beta, beta_im), lane_load(C, C_AT(i, j))) : lane_real(0);
        UNROLL for (int k = 0; k < K; k++)
            UNROLL for (int j = 0; j < N; j++) c[j] = lane_fma(a[k], b[k][j], c[j]);
        UNROLL for (int j = 0; j < N; j++) lane_store(C, C_AT(i, j), c[j]);
    }
}
#endif

#ifdef GEMM_TEAM
#define TEAMI ((M + TI - 1) / TI)
#define TEAMJ ((N + TJ - 1) / TJ)
#define WORK_ITEMS (LANES * TEAMI * TEAMJ)
#define A_SIZE (M * DEPTH * LANES) /* what is in local memory of A and of B, and a work-item's share in moving it */
#define B_SIZE (DEPTH * N * LANES)
#define A_SHARE ((A_SIZE + WORK_ITEMS - 1) / WORK_ITEMS)
#define B_SHARE ((B_SIZE + WORK_ITEMS - 1) / WORK_ITEMS)
#define WHOLE (K % DEPTH == 0)

/* This work-item's share of columns k0 to k0 + DEPTH of A and of these rows of B; zeros past the last. */
#define FETCH(k0) \
    UNROLL for (int u = 0; u < A_SHARE; u++) { \
        const int e = u * WORK_ITEMS + t, k = e / LANES % DEPTH, i = e / LANES / DEPTH; \
        if (A_SIZE % WORK_ITEMS == 0 || e < A_SIZE) \
            a_next[u] = WHOLE || k0 + k < K ? lane_load(A, e % LANES + i * ARS + (k0 + k) * ACS) : lane_real(0); \
    } \
    UNROLL for (int u = 0; u < B_SHARE; u++) { \
        const int e = u * WORK_ITEMS + t, j = e / LANES % N, k = e / LANES / N; \
        if (B_SIZE % WORK_ITEMS == 0 || e < B_SIZE) \
            b_next[u] = WHOLE || k0 + k < K ? lane_load(B, e % LANES + (k0 + k) * BRS + j * BCS) : lane_real(0); \
    }

__kernel GROUP_OF(WORK_ITEMS) void gemm_team(long lanes, REAL alpha, REAL alpha_im,
                                             __global const REAL *restrict A, long a0, long aps,
                                             __global const REAL *restrict B, long b0, long bps,
                                             REAL beta, REAL beta_im, __global REAL *restrict C, long c0, long cps)
{
    __local lane a_part[A_SIZE], b_part[B_SIZE];
    const int t = get_local_id(0), l = t % LANES, tj = t / LANES % TEAMJ, ti = t / LANES / TEAMJ;
    __global const REAL *const all_of_a = A + a0, *const all_of_b = B + b0;
    __global REAL *const all_of_c = C + c0 + l;
    const long step = get_num_groups(0) * (long)LANES;
    lane a_next[A_SHARE], b_next[B_SHARE], c[TI][TJ];
#define ROW(i) (ti * TI + (i))
#define COLUMN(j) ((j) * TEAMJ + tj)
#define TURN_TO(q) \
    A = all_of_a + (q) / V * aps + GROUP_LANE(q); \
    B = all_of_b + (q) / V * bps + GROUP_LANE(q);
    long q = get_group_id(0) * (long)LANES;
    TURN_TO(q)
    if (AHEAD) { FETCH(0) }
#if ROUNDS > 1
    for (; q < lanes; q += step)
#endif
    {
        C = all_of_c + q / V * cps + GROUP_LANE(q);
        UNROLL for (int i = 0; i < TI; i++)
            UNROLL for (int j = 0; j < TJ; j++)
                c[i][j] = BETA ? lane_scale(lane_of(beta, beta_im),
                                            lane_load(C, C_AT(min(ROW(i), M - 1), min(COLUMN(j), N - 1))))
                               : lane_real(0);
#if AHEAD == 2
        UNROLL
#endif
        for (int k0 = 0; k0 < K; k0 += DEPTH) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (!AHEAD) { FETCH(k0) }
            UNROLL for (int u = 0; u < A_SHARE; u++)
                if (A_SIZE % WORK_ITEMS == 0 || u * WORK_ITEMS + t < A_SIZE)
                    a_part[u * WORK_ITEMS + t] = CONJUGATED(CONJA, a_next[u]);
            UNROLL for (int u = 0; u < B_SHARE; u++)
                if (B_SIZE % WORK_ITEMS == 0 || u * WORK_ITEMS + t < B_SIZE)
                    b_part[u * WORK_ITEMS + t] = SCALE(CONJUGATED(CONJB, b_next[u]));
            barrier(CLK_LOCAL_MEM_FENCE);
            if (k0 + DEPTH < K) {
                if (AHEAD) { FETCH(k0 + DEPTH) }
            } else if (ROUNDS > 1 && q + step < lanes) {
                TURN_TO(q + step)
                if (AHEAD) { FETCH(0) }
            }
            UNROLL for (int k = 0; k < DEPTH; k++) {
                lane a[TI], b[TJ];
                UNROLL for (int i = 0; i < TI; i++) a[i] = a_part[(min(ROW(i), M - 1) * DEPTH + k) * LANES + l];
                UNROLL for (int j = 0; j < TJ; j++) b[j] = b_part[(k * N + min(COLUMN(j), N - 1)) * LANES + l];
                UNROLL for (int i = 0; i < TI; i++)
                    UNROLL for (int j = 0; j < TJ; j++) c[i][j] = lane_fma(a[i], b[j], c[i][j]);
            }
        }
        UNROLL for (int i = 0; i < TI; i++)
            UNROLL for (int j = 0; j < TJ; j++)
                if (M % TI == 0 || ROW(i) < M)
                    if (N % TJ == 0 || COLUMN(j) < N) lane_store(C, C_AT(ROW(i), COLUMN(j)), c[i][j]);
    }
}
#endif

#endif
