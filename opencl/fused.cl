/* Functions on stacks of ordinary matrices in one pass: one work-item a matrix, all of it in registers.
 *
 * Arguments and macros are those of ordinary.h. Define FUSED_NAME; GROUP, the work-items of a work-group; ASTAGED and
 * BSTAGED, 1 if the matrices lie one after the other without gaps: then they go through local memory, so that
 * neighbours read neighbours; and LINE, the elements of the largest matrix that goes there, or one more, for the sake
 * of the banks.
 */
#include "potrf.cl"
#include "getrf.cl"
#include "householder.h"
#include "ordinary.h"
#include "unroll.h"

#ifndef LINE
#define GROUP 32
#define ASTAGED 1
#define BSTAGED 1
#define LINE (N * N | 1)
#define UPLO 0
#endif
#ifndef CLEAN
#define CLEAN 1 /* what is not of a Cholesky factor is zero, or 0: as in A */
#endif

#define HEAD const long q0 = get_group_id(0) * (long)GROUP, q = q0 + get_local_id(0); \
    const int here = min((long)GROUP, nm - q0), l = get_local_id(0)
#if LINE
#define ROOM __local cla_lane tile[GROUP * LINE];
#else
#define ROOM CLA_LOCAL cla_lane *tile = 0;
#endif
#define BETWEEN barrier(CLK_LOCAL_MEM_FENCE);
/* what work-item l and others next to it move of matrices of `size` elements: element e of matrix v, number t of all */
#define EACH_SHARED(size, t, v, e) \
    CLA_UNROLL for (int u = 0; u < (size); u++) \
        for (int t = u * GROUP + l, v = t / (size), e = t % (size), once = 1; once && t < here * (size); once = 0)

/* x(i, j) <- element (i, j) of this work-item's matrix of A, m x n, or of the last where it has none */
#define READ(A, m, n, x) \
    if (A##STAGED) { \
        EACH_SHARED((m) * (n), t, v, e) \
            tile[v * LINE + e] = CLA_NUMBER_AT(A, A##0 + (q0 * ((m) * (n)) + t) * A##PARTS); \
        BETWEEN \
        CLA_UNROLL for (int i = 0; i < (m); i++) \
            CLA_UNROLL for (int j = 0; j < (n); j++) \
                x(i, j) = tile[min(l, here - 1) * LINE + (i * A##RS + j * A##CS) / A##PARTS]; \
        BETWEEN \
    } else { \
        const long first = A##0 + min(q, nm - 1) * A##step; \
        CLA_UNROLL for (int i = 0; i < (m); i++) \
            CLA_UNROLL for (int j = 0; j < (n); j++) x(i, j) = CLA_NUMBER_AT(A, first + i * A##RS + j * A##CS); \
    }

/* Matrices of X, m x n <- x(i, j) */
#if LINE
#define WRITE(X, m, n, x) \
    CLA_UNROLL for (int i = 0; i < (m); i++) \
        CLA_UNROLL for (int j = 0; j < (n); j++) tile[l * LINE + i * (n) + j] = x(i, j); \
    BETWEEN \
    EACH_SHARED((m) * (n), t, v, e) cla_put(X, q0 * ((m) * (n)) + t, tile[v * LINE + e]);
#else
#define WRITE(X, m, n, x) \
    if (q < nm) \
        CLA_UNROLL for (int i = 0; i < (m); i++) \
            CLA_UNROLL for (int j = 0; j < (n); j++) cla_put(X, (q * (m) + i) * (n) + j, x(i, j));
#endif

/* LU factorizations, of a matrix a with `LU_COLUMNS` columns; order[i] <- the row that has become row i */
#define LIMIT 1
#define AT(i, j) a[i][j]
#define SET(i, j, x) AT(i, j) = x;
#define EACH_ROW(F, k, s) CLA_UNROLL3(N, F, k, s)
#define EACH_COLUMN(F, k, s, i) CLA_UNROLL for (int j = 0; j < LU_COLUMNS; j++) F(k, s, i, j)
#define IN_B(i, j) a[i][N + (j)]

#ifdef FUSED_SOLVE
#define LU_COLUMNS (N + R)
#define KEEP(k, place)
#define SOLUTION(i, j) CLA_CHECKED(IN_B(i, j))
__kernel CLA_GROUP_OF(GROUP) void fused_solve(long nm, long told, __global int *failed CLA_ARGUMENT(A) CLA_ARGUMENT(B),
                                              __global TARGET *restrict X)
{
    ROOM
    HEAD;
    cla_lane a[N][LU_COLUMNS];
    int bad = 0;
    READ(A, N, N, AT)
    READ(B, N, R, IN_B)
    CLA_UNROLL1(N, CLA_PIVOTED_STEP)
    CLA_UNROLL for (int k = N - 1; k >= 0; k--) {
        const cla_lane r = cla_lane_recip(AT(k, k));
        CLA_UNROLL for (int j = N; j < LU_COLUMNS; j++) {
            AT(k, j) = cla_lane_mul(r, AT(k, j));
            CLA_UNROLL for (int i = 0; i < k; i++) AT(i, j) = cla_lane_fnma(AT(i, k), AT(k, j), AT(i, j));
        }
    }
    WRITE(X, N, R, SOLUTION)
    CLA_REPORT
}
#endif

#ifdef FUSED_INV
#define LU_COLUMNS N
#define KEEP(k, place) EACH_ROW(KEEP_ROW, k, place)
#define KEEP_ROW(k, place, i) \
    if (i > k) { \
        const int upper = order[k], lower = order[i]; \
        order[k] = place == i ? lower : upper; \
        order[i] = place == i ? upper : lower; \
    }
#define INVERSE(i, j) CLA_CHECKED(x[i])
__kernel CLA_GROUP_OF(GROUP) void fused_inv(long nm, long told, __global int *failed CLA_ARGUMENT(A),
                                            __global TARGET *restrict X)
{
    ROOM
    HEAD;
    cla_lane a[N][N], r[N];
    int bad = 0, order[N];
    CLA_UNROLL for (int i = 0; i < N; i++) order[i] = i;
    READ(A, N, N, AT)
    CLA_UNROLL1(N, CLA_PIVOTED_STEP)
    CLA_UNROLL for (int k = 0; k < N; k++) r[k] = cla_lane_recip(AT(k, k));
    CLA_UNROLL for (int j = 0; j < N; j++) {
        cla_lane x[N];
        CLA_UNROLL for (int i = 0; i < N; i++) x[i] = cla_lane_real(order[i] == j);
        CLA_UNROLL for (int k = 0; k < N; k++)
            CLA_UNROLL for (int i = k + 1; i < N; i++) x[i] = cla_lane_fnma(AT(i, k), x[k], x[i]);
        CLA_UNROLL for (int k = N - 1; k >= 0; k--) {
            x[k] = cla_lane_mul(r[k], x[k]);
            CLA_UNROLL for (int i = 0; i < k; i++) x[i] = cla_lane_fnma(AT(i, k), x[k], x[i]);
        }
#if LINE
        CLA_UNROLL for (int i = 0; i < N; i++) tile[l * LINE + i * N + j] = INVERSE(i, j);
#else
        if (q < nm)
            CLA_UNROLL for (int i = 0; i < N; i++) cla_put(X, (q * N + i) * N + j, INVERSE(i, j));
#endif
    }
#if LINE
    BETWEEN
    EACH_SHARED(N * N, t, v, e) cla_put(X, q0 * (N * N) + t, tile[v * LINE + e]);
#endif
    CLA_REPORT
}
#endif

#ifdef FUSED_CHOLESKY
#define LOWER(i, j) a[i][j]
#define UPPER(i, j) a[j][i] /* of the conjugates, which are lower */
#define OTHER(x) CLA_CHECKED(CLEAN ? cla_lane_real(0) : x)
#define FACTOR_OF_L(i, j) ((i) < (j) ? OTHER(a[i][j]) : CLA_CHECKED(a[i][j]))
#define FACTOR_OF_U(i, j) ((i) > (j) ? OTHER(a[j][i]) : CLA_CHECKED(cla_lane_conj(a[j][i])))
__kernel CLA_GROUP_OF(GROUP) void fused_cholesky(long nm, long told, __global int *failed CLA_ARGUMENT(A),
                                                 __global TARGET *restrict X)
{
    ROOM
    HEAD;
    cla_lane a[N][N];
    int bad = 0;
#if UPLO
    READ(A, N, N, UPPER)
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int j = 0; j < i; j++) a[i][j] = cla_lane_conj(a[i][j]);
#else
    READ(A, N, N, LOWER)
#endif
    CLA_UNROLL for (int k = 0; k < N; k++) {
        CLA_REAL r;
        a[k][k] = cla_lane_real(cla_root(cla_lane_re(a[k][k]), k, &bad, &r));
        CLA_UNROLL for (int i = k + 1; i < N; i++) a[i][k] = a[i][k] * r;
        CLA_UNROLL for (int j = k + 1; j < N; j++)
            CLA_UNROLL for (int i = j; i < N; i++)
                a[i][j] = cla_lane_fnma(a[i][k], cla_lane_conj(a[j][k]), a[i][j]);
    }
#if UPLO
    WRITE(X, N, N, FACTOR_OF_U)
#else
    WRITE(X, N, N, FACTOR_OF_L)
#endif
    CLA_REPORT
}
#endif

#if defined(FUSED_DET) || defined(FUSED_SLOGDET)
#include "determinant.h"
#define LU_COLUMNS N
#define KEEP(k, place) odd ^= place != k;
__kernel CLA_GROUP_OF(GROUP) void
#ifdef FUSED_DET
fused_det(long nm, long told, __global int *failed CLA_ARGUMENT(A), __global TARGET *restrict X)
#else
fused_slogdet(long nm, long told, __global int *failed CLA_ARGUMENT(A), __global TARGET *restrict X,
              __global TARGET *restrict logarithm)
#endif
{
    ROOM
    HEAD;
    cla_lane a[N][N];
    int bad = 0, odd = 0;
    READ(A, N, N, AT)
    CLA_UNROLL1(N, CLA_PIVOTED_STEP)
    cla_determinant d = cla_determinant_of(odd);
#ifdef FUSED_DET
    CLA_UNROLL for (int k = 0; k < N; k++) cla_determinant_times(&d, AT(k, k));
    if (q < nm) cla_put(X, q, cla_determinant_value(d));
#else
    CLA_UNROLL for (int k = 0; k < N; k++) cla_determinant_times_sign(&d, AT(k, k));
    if (q < nm) {
        cla_put(X, q, d.product);
        logarithm[q] = (TARGET)d.sum;
    }
#endif
}
#endif

#ifdef FUSED_QR
#include "qr_results.h"
#undef EACH_ROW
#define EACH_ROW(F, k, s) CLA_UNROLL for (int i = k + 1; i < M; i++) F(k, s, i)
#define EACH_ROW_OF(F, k, s, j) CLA_UNROLL for (int i = k + 1; i < M; i++) F(k, s, j, i)
#define R_AT(i, j) ((i) > (j) ? cla_lane_real(0) : a[i][j])
#define H_AT(j, i) a[i][j]
__kernel CLA_GROUP_OF(GROUP) void fused_qr(long nm, long told, __global int *failed CLA_ARGUMENT(A) CLA_QR_RESULTS)
{
    ROOM
    HEAD;
    cla_lane a[M][COLUMNS_OF_Q > N ? COLUMNS_OF_Q : N], taus[K];
    READ(A, M, N, AT)
    CLA_UNROLL for (int k = 0; k < K; k++) {
        cla_lane tau;
        CLA_REFLECTOR(k, k)
        taus[k] = tau;
        CLA_UNROLL for (int j = k + 1; j < N; j++) CLA_REFLECT(k, k, cla_lane_conj(tau), j)
    }
#if MODE == 3
    WRITE(h, N, M, H_AT)
    if (q < nm)
        CLA_UNROLL for (int k = 0; k < K; k++) cla_put(scalars, q * K + k, taus[k]);
#else
    WRITE(upper, ROWS_OF_R, N, R_AT)
#endif
#if HAS_Q
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS_OF_Q; j++)
            if (i <= j || j >= K) a[i][j] = cla_lane_real(i == j && j >= K);
    CLA_UNROLL for (int k = K - 1; k >= 0; k--) {
        CLA_UNROLL for (int j = k + 1; j < COLUMNS_OF_Q; j++) CLA_REFLECT(k, k, taus[k], j)
        a[k][k] = cla_lane_real(1) - taus[k];
        CLA_UNROLL for (int i = k + 1; i < M; i++) a[i][k] = cla_lane_fnma(taus[k], a[i][k], cla_lane_real(0));
    }
    BETWEEN
    WRITE(orthogonal, M, COLUMNS_OF_Q, AT)
#endif
}
#endif
