/* syrk and herk: the lower triangle of C <- alpha A A^T + beta C, or of alpha A A^H + beta C for real alpha and beta,
 * for one lane (pack level) and for a batch (define SYRK_BATCH or HERK_BATCH).
 *
 * A is n x k, C n x n, and its lower triangle all that is stored; imaginary parts on a Hermitian diagonal count as 0
 * and become 0. An upper triangle is the lower one of the transposed C, where A is conjugated if that is Hermitian.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane of C.
 */
#ifndef CLA_SYRK_CL
#define CLA_SYRK_CL

#include "tile.h"

/* Element (i, j) of C, of what was computed for it. */
CLA_INLINE cla_lane cla_symmetrical(int hermitian, int i, int j, cla_lane c)
{
    return hermitian && i == j ? cla_lane_real(cla_lane_re(c)) : c;
}

CLA_INLINE void cla_multiply_half(int hermitian, int n, int k, cla_lane alpha, cla_matrix A, cla_lane beta,
                                  cla_matrix C)
{
    const cla_matrix right = hermitian ? cla_conjugated(cla_transposed(A)) : cla_transposed(A);
    if (cla_lane_is_zero(alpha)) k = 0;
    for (int p = 0; p < n; p += CLA_TILE)
        for (int r = 0; r < min(p + CLA_TILE, n); r += CLA_COLS) {
            cla_tile c = cla_tile_multiply(cla_tile_zero(), A, p, n, right, r, n, k);
            c = cla_tile_combine(alpha, c, beta, C, p, n, r, n);
#define STORE(s, i, j) \
    if (p + i < n && r + j <= p + i) cla_set(C, p + i, r + j, cla_symmetrical(hermitian, p + i, r + j, c.c##i##j));
            CLA_CELLS(STORE, 0)
#undef STORE
        }
}

/* As BLAS: beta = 0 does not read C, alpha = 0 does not read A. C does not overlap A. */
CLA_INLINE void cla_syrk(int n, int k, cla_lane alpha, cla_matrix A, cla_lane beta, cla_matrix C)
{
    cla_multiply_half(0, n, k, alpha, A, beta, C);
}

CLA_INLINE void cla_herk(int n, int k, CLA_REAL alpha, cla_matrix A, CLA_REAL beta, cla_matrix C)
{
    cla_multiply_half(CLA_COMPLEX, n, k, cla_lane_real(alpha), A, cla_lane_real(beta), C);
}

#if defined(HERK_BATCH) || defined(HERK_ITEM) || defined(HERK_TEAM) || defined(HERK_TILES)
#define HERMITIAN 1
#define KERNEL(shape) herk_##shape
#elif defined(SYRK_BATCH) || defined(SYRK_ITEM) || defined(SYRK_TEAM) || defined(SYRK_TILES)
#define HERMITIAN 0
#define KERNEL(shape) syrk_##shape
#endif

#if defined(SYRK_BATCH) || defined(HERK_BATCH)
/* cconj is 0: C is as it is */
__kernel void KERNEL(batch)(long lanes, long nm, long n, long k, CLA_SCALAR(alpha), CLA_SCALAR(beta),
                            CLA_OPERAND(const CLA_REAL *restrict A, a), CLA_OPERAND(CLA_REAL *restrict C, c))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_multiply_half(HERMITIAN, n, k, CLA_VALUE(alpha), CLA_MATRIX(A, a, q, aconj), CLA_VALUE(beta),
                      CLA_MATRIX(C, c, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define N, K and, in numbers, ARS, ACS, CRS, CCS;
 * ACONJ, 1 to conjugate A; ALPHA, 0 if alpha is 1, and BETA, 0 if beta is 0, else 1. Tunables:
 *
 * SYRK_ITEM  one work-item a matrix: A in its registers, the rows of C pass by.
 * HERK_ITEM
 *   GROUP    work-items of a work-group
 * SYRK_TEAM  one work-group for LANES matrices of a pack: A goes to local memory, a work-item multiplies it with COLUMNS
 * HERK_TEAM  columns of A^T, TEAM apart, that it holds in registers.
 *   LANES    matrices of a work-group, a divisor of V
 *   COLUMNS  columns of a work-item
 *   TEAM     work-items of a matrix, ceil(N / COLUMNS)
 * SYRK_TILES  likewise, but a work-item computes what every Q-th row has in every Q-th column, up to the diagonal: it
 * HERK_TILES  reads 2 N / Q numbers of local memory for N^2 / Q^2 / 2 products
 *   LANES    matrices of a work-group, a divisor of V
 *   Q        rows, and columns, of the grid of work-items of a matrix
 */
#if defined(SYRK_ITEM) || defined(SYRK_TEAM) || defined(SYRK_TILES) || defined(HERK_ITEM) || defined(HERK_TEAM) || \
    defined(HERK_TILES)
#include "known.h"
#ifndef Q
#define Q 2
#endif

#define A_AT(i, j) cla_lane_load_as(ACONJ, A, (i) * ARS + (j) * ACS)
#define C_AT(i, j) ((i) * CRS + (j) * CCS)
#define TURNED(a) (HERMITIAN ? cla_lane_conj(a) : (a))
#define SCALE(c) (ALPHA ? cla_lane_scale(CLA_VALUE(alpha), c) : (c))
#define WITH_C(c, i, j) \
    (BETA ? SCALE(c) + cla_lane_scale(CLA_VALUE(beta), cla_lane_load(C, C_AT(i, j))) : SCALE(c))
#define STORE(c, i, j) cla_lane_store(C, C_AT(i, j), cla_symmetrical(HERMITIAN, i, j, WITH_C(c, i, j)));
#endif

#if defined(SYRK_ITEM) || defined(HERK_ITEM)
__kernel CLA_GROUP_OF(GROUP) void KERNEL(item)(long lanes, long nm, CLA_SCALAR(alpha), CLA_SCALAR(beta),
                                               __global const CLA_REAL *restrict A, long a0, long aps,
                                               __global CLA_REAL *restrict C, long c0, long cps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    C += c0 + cla_lane_place(q, cps);
    cla_lane a[N][K];
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int k = 0; k < K; k++) a[i][k] = A_AT(i, k);
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j <= i; j++) {
            cla_lane c = cla_lane_real(0);
            CLA_UNROLL for (int k = 0; k < K; k++) c = cla_lane_fma(a[i][k], TURNED(a[j][k]), c);
            STORE(c, i, j)
        }
}
#endif

#if defined(SYRK_TEAM) || defined(HERK_TEAM)
__kernel CLA_GROUP_OF(LANES * TEAM) void KERNEL(team)(long lanes, long nm, CLA_SCALAR(alpha), CLA_SCALAR(beta),
                                                      __global const CLA_REAL *restrict A, long a0, long aps,
                                                      __global CLA_REAL *restrict C, long c0, long cps)
{
    __local cla_lane a_part[N * K * LANES];
    const int l = get_local_id(0) % LANES, t = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    C += c0 + cla_lane_place(q, cps);
    CLA_LOCAL cla_lane *all = a_part + l;
    CLA_UNROLL for (int e0 = 0; e0 < N * K; e0 += TEAM)
        if ((N * K) % TEAM == 0 || e0 + t < N * K) all[(e0 + t) * LANES] = A_AT((e0 + t) / K, (e0 + t) % K);
    barrier(CLK_LOCAL_MEM_FENCE);
    cla_lane own[COLUMNS][K];
    CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
        CLA_UNROLL for (int k = 0; k < K; k++) own[j][k] = TURNED(all[(min(j * TEAM + t, N - 1) * K + k) * LANES]);
#if N <= 16 /* else it takes long to compile */
    CLA_UNROLL
#endif
    for (int i = 0; i < N; i++) {
        cla_lane c[COLUMNS];
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) c[j] = cla_lane_real(0);
        CLA_UNROLL for (int k = 0; k < K; k++) {
            const cla_lane a = all[(i * K + k) * LANES];
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++) c[j] = cla_lane_fma(a, own[j][k], c[j]);
        }
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
            if (j * TEAM + t <= i) STORE(c[j], i, j * TEAM + t)
    }
}
#endif

#if defined(SYRK_TILES) || defined(HERK_TILES)
#define OWN ((N + Q - 1) / Q)

__kernel CLA_GROUP_OF(LANES * Q * Q) void KERNEL(tiles)(long lanes, long nm, CLA_SCALAR(alpha), CLA_SCALAR(beta),
                                                        __global const CLA_REAL *restrict A, long a0, long aps,
                                                        __global CLA_REAL *restrict C, long c0, long cps)
{
    __local cla_lane all[N * K * LANES];
    const int l = get_local_id(0) % LANES, t = get_local_id(0) / LANES, row = t / Q, column = t % Q;
    const long q = get_group_id(0) * (long)LANES + l;
    A += a0 + cla_lane_place(q, aps);
    C += c0 + cla_lane_place(q, cps);
    CLA_UNROLL for (int e0 = 0; e0 < N * K; e0 += Q * Q)
        if ((N * K) % (Q * Q) == 0 || e0 + t < N * K) all[(e0 + t) * LANES + l] = A_AT((e0 + t) % N, (e0 + t) / N);
    cla_lane c[OWN][OWN];
    CLA_UNROLL for (int i = 0; i < OWN; i++)
        CLA_UNROLL for (int j = 0; j <= i; j++) c[i][j] = cla_lane_real(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    CLA_UNROLL_SOME for (int k = 0; k < K; k++) {
        cla_lane left[OWN], right[OWN];
        CLA_UNROLL for (int i = 0; i < OWN; i++) left[i] = all[(k * N + min(i * Q + row, N - 1)) * LANES + l];
        CLA_UNROLL for (int j = 0; j < OWN; j++)
            right[j] = TURNED(all[(k * N + min(j * Q + column, N - 1)) * LANES + l]);
        CLA_UNROLL for (int i = 0; i < OWN; i++)
            CLA_UNROLL for (int j = 0; j <= i; j++) c[i][j] = cla_lane_fma(left[i], right[j], c[i][j]);
    }
    CLA_UNROLL for (int i = 0; i < OWN; i++)
        CLA_UNROLL for (int j = 0; j <= i; j++)
            if (i * Q + row < N && j * Q + column <= i * Q + row) STORE(c[i][j], i * Q + row, j * Q + column)
}
#endif

#endif
