/* Systems with band matrices in ordinary arrays, one work-item for each. Define one of
 *
 * FACTOR_BANDS  the factors, in packs
 * SOLVE_BANDS   x <- inv(A) rhs with them
 * BOTH_BANDS    x <- inv(A) rhs; nothing is kept
 *
 * and KL, KU and SOURCE, which band_rows.h explains, PIVOTING, REACH (KU + KL where rows are swapped, else KU) and
 *
 * COLUMNS       right-hand sides at a time, 0 in FACTOR_BANDS
 * COMMON        1: all systems have the matrix of the first, in SOLVE_BANDS
 * TURNS         rows of a tile, a divisor of the vector length
 * ALONG_A, ALONG_B, ALONG_X  what neighbouring work-items follow in the arrays: 0 the unknowns, 1 the systems
 * WIDE          1 if the rows that a pivot touches are too many for registers
 *
 * A work-group takes a pack of systems at a time. Rows go through local memory, a tile of them at a time, while the next
 * is on its way. Row k of the factors has, in packs, the reciprocal of the pivot, REACH elements of U, which are divided
 * by it, and KL multiples of the row that were subtracted; of wide bands it is as in gbtrf.cl. What the way back needs
 * is in memory that is used again by the packs that follow: it stays in a cache.
 */
#include "band_rows.h"
#include "gbtrs.cl"

#ifndef TURNS
#define PIVOTING 0
#define REACH KU
#define COLUMNS 1
#define COMMON 0
#define TURNS 4
#define ALONG_A 0
#define ALONG_B 0
#define ALONG_X 0
#define WIDE 0
#endif

#define LINE (CLA_VLEN + 1)
#define SPACE(n) ((n) > 0 ? (n) : 1)

#if WIDE

#ifdef FACTOR_BANDS
__kernel void factor_bands(long nsys, long size, long inner, ORDINARY(a), ORDINARY(b), ORDINARY(c),
                           __global CLA_REAL *factors, __global int *swaps, __global int *info)
{
    const long q = get_global_id(0);
    if (q >= nsys) return;
    const int n = size;
    const ordinary A = AS_ORDINARY(a);
    const cla_matrix F = cla_matrix_of_batch(factors, q, n, KL + REACH + 1);
    const long place = system_place(A, q, inner);
    for (int k = 0; k < n; k++) {
        cla_lane number[WIDTH], row[WIDTH];
        for (int s = 0; s < WIDTH; s++) {
            const int i = band_place(s, k, n);
            number[s] = cla_lane_real(0);
            if (i >= 0) number[s] = cla_lane_load_apart(A.p, place + i * A.rs + band_diagonal(s) * A.cs, 1);
        }
        band_row(number, k, n, row);
        for (int t = 0; t <= KL + REACH; t++) cla_set(F, k, t, t < WIDTH ? row[t] : cla_lane_real(0));
    }
    info[q] = cla_gbtrf(n, KL, REACH, PIVOTING, SOURCE >= 3, F, cla_ints_of_batch(swaps, q, PIVOTING ? n : 0));
}
#endif

#ifdef SOLVE_BANDS
__kernel void solve_bands(long nsys, long size, long inner, long columns, ORDINARY(r), ORDINARY(x),
                          __global CLA_REAL *factors, __global int *swaps, __global CLA_REAL *work)
{
    const long q = get_global_id(0), own = COMMON ? 0 : q;
    if (q >= nsys) return;
    const int n = size;
    const ordinary R = AS_ORDINARY(r), S = AS_ORDINARY(x);
    const long from = system_place(R, q, inner);
    cla_matrix X = cla_matrix_at(S.p + system_place(S, q, inner), S.rs, S.cs);
    X.im = 1;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < columns; j++) cla_set(X, i, j, cla_lane_load_apart(R.p, from + i * R.rs + j * R.cs, 1));
    cla_gbtrs(n, columns, KL, REACH, PIVOTING, 0, cla_matrix_of_batch(factors, own, n, KL + REACH + 1),
              cla_ints_of_batch(swaps, own, PIVOTING ? n : 0), X);
}
#endif

#else

#define AT(k) (SOURCE == 2 ? cla_folded(k, n) : (k))
#define TILE(s, e) tile[((s) * TURNS + (e)) * LINE + l]

/* Lane v and row e of a tile, for all that this work-item moves. If a tile is one row, that is its own. */
#if TURNS == 1
#define MEET
#define EACH_MOVED(along) for (int u = 0, v = l, e = 0; u < 1; u++)
#else
#define MEET barrier(CLK_LOCAL_MEM_FENCE);
#define EACH_MOVED(along) \
    CLA_UNROLL for (int u = 0, v = (along) ? l : l / TURNS, e = (along) ? 0 : l % TURNS; u < TURNS; \
                    u++, v += (along) ? 0 : CLA_VLEN / TURNS, e += (along) ? 1 : 0)
#endif

/* next <- the numbers of the matrices and right-hand sides in the tile that begins with row k0. */
#define MINE(along) ((along) ? 0 : l % TURNS) /* the first row of a tile that this work-item moves */
#define FETCH_NUMBERS(k0) \
    CLA_UNROLL for (int s = 0; s < NUMBERS; s++) { \
        const int which = APART ? s : 0; \
        const ordinary D = which == 0 ? A : which == 1 ? B : C; \
        const long row = SOURCE == 2 ? max(band_place(s, (k0) + MINE(ALONG_A), n), 0) \
                                     : (k0) + MINE(ALONG_A) + band_shift(s); \
        __global const CLA_REAL *at = D.p + row * D.rs + band_diagonal(s) * D.cs; \
        CLA_FOUND(at) \
        EACH_MOVED(ALONG_A) { \
            const int i = band_place(s, (k0) + e, n); \
            if (ALONG_A && SOURCE == 2) at = D.p + max(i, 0) * D.rs; \
            next[s][u] = cla_lane_real(0); \
            if (i >= 0) next[s][u] = cla_lane_load_apart(at, place[which][v], 1); \
            if (ALONG_A) at += D.rs; \
        } \
    }
#define FETCH_RIGHT(first, k0) \
    CLA_UNROLL for (int j = 0; j < COLUMNS; j++) { \
        __global const CLA_REAL *at = R.p + AT(min((k0) + MINE(ALONG_B), n - 1)) * R.rs + j * R.cs; \
        CLA_FOUND(at) \
        EACH_MOVED(ALONG_B) { \
            if (ALONG_B && SOURCE == 2) at = R.p + AT(min((k0) + e, n - 1)) * R.rs + j * R.cs; \
            next[first + j][u] = cla_lane_real(0); \
            if ((k0) + e < n && j < columns) next[first + j][u] = cla_lane_load_apart(at, place[3][v], 1); \
            if (ALONG_B) at += R.rs; \
        } \
    }
/* The tile <- what was fetched. */
#define SHARE(first, count, along) \
    CLA_UNROLL for (int s = first; s < (first) + (count); s++) \
        EACH_MOVED(along) tile[(s * TURNS + e) * LINE + v] = next[s][u];

#if defined(FACTOR_BANDS) || defined(BOTH_BANDS)
#define ALL (NUMBERS + COLUMNS)
/* Down a pack: what U and Y, the right-hand sides, become is stored, and multiples if L counts. */
CLA_INLINE int eliminate(int n, int columns, int l, ordinary A, ordinary B, ordinary C, ordinary R,
                         CLA_LOCAL const long (*place)[CLA_VLEN], CLA_LOCAL cla_lane *tile, cla_matrix U, cla_matrix Y,
                         cla_matrix F, __global int *swaps)
{
    cla_lane next[ALL][TURNS], w[KL + 1][WIDTH + COLUMNS];
    int info = 0;
    CLA_UNROLL for (int i = 0; i <= KL; i++)
        CLA_UNROLL for (int t = 0; t < WIDTH + COLUMNS; t++) w[i][t] = cla_lane_real(0);
    FETCH_NUMBERS(0)
    FETCH_RIGHT(NUMBERS, 0)
    for (int k0 = 0; k0 < n + KL; k0 += TURNS) {
        MEET
        SHARE(0, NUMBERS, ALONG_A)
        SHARE(NUMBERS, COLUMNS, ALONG_B)
        MEET
        FETCH_NUMBERS(k0 + TURNS)
        FETCH_RIGHT(NUMBERS, k0 + TURNS)
        const int end = min(TURNS, n + KL - k0);
        for (int e = 0; e < end; e++) {
            const int k = k0 + e - KL; /* before 0 there is nothing but zeros to eliminate */
            cla_lane number[NUMBERS], top[WIDTH + COLUMNS];
            CLA_UNROLL for (int s = 0; s < NUMBERS; s++) number[s] = TILE(s, e);
            band_row(number, k0 + e, n, w[KL]);
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++) w[KL][WIDTH + j] = TILE(NUMBERS + j, e);
            if (PIVOTING) {
                int swapped = 0;
                CLA_REAL best = cla_lane_abs1(w[0][0]);
                CLA_UNROLL for (int i = 1; i <= KL; i++) {
                    const CLA_REAL magnitude = cla_lane_abs1(w[i][0]);
                    if (magnitude > best && k + i < n) {
                        best = magnitude;
                        swapped = i;
                    }
                }
#ifdef FACTOR_BANDS
                if (k >= 0) cla_int_store(swaps, k, swapped);
#endif
                CLA_UNROLL for (int i = 1; i <= KL; i++)
                    CLA_UNROLL for (int t = 0; t < WIDTH + COLUMNS; t++) {
                        const cla_lane x = w[0][t], y = w[i][t];
                        w[0][t] = swapped == i ? y : x;
                        w[i][t] = swapped == i ? x : y;
                    }
            }
            CLA_UNROLL for (int t = 0; t < WIDTH + COLUMNS; t++) top[t] = w[0][t];
            const int zero = cla_lane_is_zero(top[0]);
            if (info == 0 && k >= 0 && (SOURCE >= 3 ? !(cla_lane_re(top[0]) > 0) : zero)) info = k + 1;
            const cla_lane inverse = zero ? cla_lane_real(1) : cla_lane_recip(top[0]);
            CLA_UNROLL for (int i = 1; i <= KL; i++) {
                const cla_lane multiple = cla_lane_mul(w[i][0], inverse);
#ifdef FACTOR_BANDS
                if (k >= 0) cla_set(F, k, REACH + i, multiple);
#endif
                CLA_UNROLL for (int t = 1; t < WIDTH; t++) w[i - 1][t - 1] = cla_lane_fnma(multiple, top[t], w[i][t]);
                w[i - 1][WIDTH - 1] = cla_lane_real(0);
                CLA_UNROLL for (int t = WIDTH; t < WIDTH + COLUMNS; t++)
                    w[i - 1][t] = cla_lane_fnma(multiple, top[t], w[i][t]);
            }
            if (k < 0) continue;
#ifdef FACTOR_BANDS
            cla_set(F, k, 0, inverse);
#endif
            CLA_UNROLL for (int t = 1; t <= REACH; t++) cla_set(U, k, t - 1, cla_lane_mul(top[t], inverse));
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++) cla_set(Y, k, j, cla_lane_mul(top[WIDTH + j], inverse));
        }
    }
    return info;
}
#endif

#if defined(SOLVE_BANDS)
/* Down a pack with factors: Y <- the right-hand sides, as far as they are eliminated. */
CLA_INLINE void forward(int n, int columns, int l, ordinary R, CLA_LOCAL const long (*place)[CLA_VLEN],
                        CLA_LOCAL cla_lane *tile, cla_matrix Y, cla_matrix F, __global const int *swaps)
{
    cla_lane next[COLUMNS][TURNS], f_next[TURNS][KL + 1], w[KL + 1][COLUMNS];
    int swapped_next[TURNS];
#define FETCH_FACTORS(k0) \
    CLA_UNROLL for (int e = 0; e < TURNS; e++) { \
        const int k = min(max((k0) + e - KL, 0), n - 1); \
        CLA_UNROLL for (int i = 0; i <= KL; i++) f_next[e][i] = cla_get(F, k, i ? REACH + i : 0); \
        swapped_next[e] = PIVOTING ? cla_int_load(swaps, k) : 0; \
    }
    CLA_UNROLL for (int i = 0; i <= KL; i++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) w[i][j] = cla_lane_real(0);
    FETCH_RIGHT(0, 0)
    FETCH_FACTORS(0)
    for (int k0 = 0; k0 < n + KL; k0 += TURNS) {
        cla_lane f[TURNS][KL + 1];
        int swapped[TURNS];
        MEET
        SHARE(0, COLUMNS, ALONG_B)
        CLA_UNROLL for (int e = 0; e < TURNS; e++) {
            CLA_UNROLL for (int i = 0; i <= KL; i++) f[e][i] = f_next[e][i];
            swapped[e] = swapped_next[e];
        }
        MEET
        FETCH_RIGHT(0, k0 + TURNS)
        FETCH_FACTORS(k0 + TURNS)
        CLA_UNROLL for (int e = 0; e < TURNS; e++) {
            const int k = k0 + e - KL;
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++) {
                w[KL][j] = TILE(j, e);
                CLA_UNROLL for (int i = 1; i <= KL && PIVOTING; i++) {
                    const cla_lane x = w[0][j], y = w[i][j];
                    w[0][j] = swapped[e] == i && k >= 0 ? y : x;
                    w[i][j] = swapped[e] == i && k >= 0 ? x : y;
                }
                const cla_lane top = w[0][j];
                if (k >= 0 && k < n) cla_set(Y, k, j, cla_lane_mul(top, f[e][0]));
                CLA_UNROLL for (int i = 1; i <= KL; i++) {
                    const cla_lane multiple = cla_lane_select(k >= 0 && k + i < n, f[e][i], cla_lane_real(0));
                    w[i - 1][j] = cla_lane_fnma(multiple, top, w[i][j]);
                }
            }
        }
    }
}
#endif

#if defined(SOLVE_BANDS) || defined(BOTH_BANDS)
/* Up a pack: x <- what is stored. */
CLA_INLINE void backward(int n, int columns, int l, int count, ordinary X, CLA_LOCAL const long (*place)[CLA_VLEN],
                         CLA_LOCAL cla_lane *tile, cla_matrix U, cla_matrix Y)
{
    cla_lane u_next[TURNS][SPACE(REACH)], y_next[TURNS][COLUMNS], w[SPACE(REACH)][COLUMNS];
#define FETCH_BACK(k0) \
    CLA_UNROLL for (int e = 0; e < TURNS; e++) { \
        const int k = min(max((k0) + e, 0), n - 1); \
        CLA_UNROLL for (int t = 0; t < REACH; t++) u_next[e][t] = cla_get(U, k, t); \
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) y_next[e][j] = cla_get(Y, k, j); \
    }
    CLA_UNROLL for (int t = 0; t < SPACE(REACH); t++)
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) w[t][j] = cla_lane_real(0);
    int k0 = (n - 1) / TURNS * TURNS;
    FETCH_BACK(k0)
    for (; k0 >= 0; k0 -= TURNS) {
        cla_lane u[TURNS][SPACE(REACH)], y[TURNS][COLUMNS];
        CLA_UNROLL for (int e = 0; e < TURNS; e++) {
            CLA_UNROLL for (int t = 0; t < REACH; t++) u[e][t] = u_next[e][t];
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++) y[e][j] = y_next[e][j];
        }
        FETCH_BACK(k0 - TURNS)
        MEET
        CLA_UNROLL for (int e = TURNS - 1; e >= 0; e--)
            if (k0 + e < n)
                CLA_UNROLL for (int j = 0; j < COLUMNS; j++) {
                    cla_lane x = y[e][j];
                    CLA_UNROLL for (int t = REACH - 1; t >= 0; t--) x = cla_lane_fnma(u[e][t], w[t][j], x);
                    CLA_UNROLL for (int t = REACH - 1; t > 0; t--) w[t][j] = w[t - 1][j];
                    w[0][j] = x;
                    TILE(j, e) = x;
                }
        MEET
        CLA_UNROLL for (int j = 0; j < COLUMNS; j++) {
            __global CLA_REAL *at = X.p + AT(min(k0 + MINE(ALONG_X), n - 1)) * X.rs + j * X.cs;
            CLA_FOUND(at)
            EACH_MOVED(ALONG_X)
            {
                if (SOURCE == 2 && ALONG_X) at = X.p + AT(min(k0 + e, n - 1)) * X.rs + j * X.cs;
                if (k0 + e < n && v < count && j < columns)
                    cla_lane_store_apart(at, place[4][v], 1, tile[(j * TURNS + e) * LINE + v]);
                if (ALONG_X) at += X.rs;
            }
        }
    }
}
#endif

/* Packs of systems, one after the other: p and the number of them, and where they are in the arrays. */
#define EACH_PACK for (long p = get_group_id(0); p < (nsys + CLA_VLEN - 1) / CLA_VLEN; p += get_num_groups(0))
#define FIND(i, a) place[i][l] = system_place(a, min(p * CLA_VLEN + l, nsys - 1), inner);

#ifdef FACTOR_BANDS
__kernel CLA_GROUP_OF(CLA_VLEN) void factor_bands(long nsys, long size, long inner, ORDINARY(a), ORDINARY(b),
                                                  ORDINARY(c), __global CLA_REAL *factors, __global int *swaps,
                                                  __global int *info)
{
    __local cla_lane tile[ALL * TURNS * LINE];
    __local long place[3][CLA_VLEN];
    const int n = size, l = get_local_id(0);
    const ordinary A = AS_ORDINARY(a), B = AS_ORDINARY(b), C = AS_ORDINARY(c);
    EACH_PACK
    {
        const long q = p * CLA_VLEN + l;
        const cla_matrix F = cla_matrix_of_batch(factors, q, n, KL + REACH + 1);
        MEET
        FIND_MATRICES
        MEET
        info[q] = eliminate(n, 0, l, A, B, C, A, place, tile, cla_from(F, 0, 1), F, F,
                            cla_ints_of_batch(swaps, q, PIVOTING ? n : 0));
    }
}
#endif

#ifdef BOTH_BANDS
__kernel CLA_GROUP_OF(CLA_VLEN) void both_bands(long nsys, long size, long inner, ORDINARY(a), ORDINARY(b), ORDINARY(c),
                                                ORDINARY(r), ORDINARY(x), __global int *info, __global CLA_REAL *work)
{
    __local cla_lane tile[ALL * TURNS * LINE];
    __local long place[5][CLA_VLEN];
    const int n = size, l = get_local_id(0);
    const ordinary A = AS_ORDINARY(a), B = AS_ORDINARY(b), C = AS_ORDINARY(c), R = AS_ORDINARY(r), X = AS_ORDINARY(x);
    const cla_matrix U = cla_matrix_of_batch(work, get_group_id(0) * (long)CLA_VLEN + l, n, REACH + COLUMNS);
    const cla_matrix Y = cla_from(U, 0, REACH);
    EACH_PACK
    {
        MEET
        FIND_MATRICES
        FIND_VECTORS
        MEET
        info[p * CLA_VLEN + l] = eliminate(n, COLUMNS, l, A, B, C, R, place, tile, U, Y, U, 0);
        backward(n, COLUMNS, l, min((long)CLA_VLEN, nsys - p * CLA_VLEN), X, place, tile, U, Y);
    }
}
#endif

#ifdef SOLVE_BANDS
__kernel CLA_GROUP_OF(CLA_VLEN) void solve_bands(long nsys, long size, long inner, long all, ORDINARY(r), ORDINARY(x),
                                                 __global CLA_REAL *factors, __global int *swaps,
                                                 __global CLA_REAL *work)
{
    __local cla_lane tile[COLUMNS * TURNS * LINE];
    __local long place[5][CLA_VLEN];
    const long h0 = get_group_id(1) * COLUMNS; /* the first of its right-hand sides */
    const int n = size, l = get_local_id(0), columns = min((long)COLUMNS, all - h0);
    ordinary R = AS_ORDINARY(r), X = AS_ORDINARY(x);
    R.p += h0 * R.cs;
    X.p += h0 * X.cs;
    const long slot = get_group_id(1) * get_num_groups(0) + get_group_id(0);
    const cla_matrix Y = cla_matrix_of_batch(work, slot * CLA_VLEN + l, n, COLUMNS);
    EACH_PACK
    {
        const long q = COMMON ? 0 : p * CLA_VLEN + l;
        const cla_matrix F = cla_matrix_of_batch(factors, q, n, KL + REACH + 1);
        MEET
        FIND_VECTORS
        MEET
        forward(n, columns, l, R, place, tile, Y, F, cla_ints_of_batch(swaps, q, PIVOTING ? n : 0));
        backward(n, columns, l, min((long)CLA_VLEN, nsys - p * CLA_VLEN), X, place, tile, cla_from(F, 0, 1), Y);
    }
}
#endif

#endif
