/* LANES matrices of a pack in the local memory of a work-group, where their rows lie as those of ordinary matrices do, so
 * that a team of P neighbours has each: a warp, or a part of one. What is read and written of memory is the same element
 * of neighbouring matrices. And solves, of which a work-item has a column of the right-hand sides.
 *
 * A work-group has ITEMS work-items. Element (i, j) of matrix l is at tiles[l * TILE + i * TILE_LINE + j], and row i of
 * the factors is row order[l * N + i].
 */
#include "async_copy.h"

#define ITEMS (LANES * P)

/* F(l, i, j) for all elements of m x n matrices, shared out so that neighbours have neighbours in memory, in columns of a
 * matrix for `down` */
#define CLA_STRIP(m, n, down, F) \
    CLA_UNROLL_SOME for (int e0 = 0; e0 < (m) * (n) * LANES; e0 += ITEMS) { \
        const int e = e0 + get_local_id(0), l = e % LANES; \
        const int i = (down) ? e / LANES % (m) : e / LANES / (n), j = (down) ? e / LANES / (m) : e / LANES % (n); \
        if ((m) * (n) * LANES % ITEMS == 0 || e < (m) * (n) * LANES) { F(l, i, j) } \
    }

/* Tiles <- A, where matrices of this work-group begin, but for elements that nobody READS. All come here. */
#ifndef READS
#define READS(i, j) 1
#endif
#define GET_STRIP(l, i, j) \
    if (READS(i, j)) cla_copy_begin(tiles + (l) * TILE + (i) * TILE_LINE + (j), A, (l) + (long)(i) * ARS + (long)(j) * ACS);
#define CLA_ROWS_READ \
    CLA_STRIP(M, N, ARS < ACS, GET_STRIP) \
    cla_copies_wait(); \
    barrier(CLK_LOCAL_MEM_FENCE);

/* Row i of the factors of the matrix of a work-item that has COLUMNS columns x of right-hand sides, and x[.][i] less its
 * product with some of x, by two sums: what is read of it is for all columns, since reads of local memory take longer than
 * the arithmetic. */
#ifdef FACTOR_ROW /* rows lie where they belong */
#define OWN_ORDER
#else
#define OWN_ORDER CLA_LOCAL const int *own_order = order + l * N;
#define FACTOR_ROW(i) (factors + own_order[i] * TILE_LINE)
#endif
#define EACH_OWN CLA_UNROLL for (int v = 0; v < COLUMNS; v++)
#define HAS_OWN(r) ((r) % COLUMNS == 0 || c + v * apart < (r))
#define CLA_ROW_TIMES(i, from, to) \
    CLA_FORGET \
    CLA_LOCAL const cla_lane *row = FACTOR_ROW(i); \
    cla_lane sums[COLUMNS][2]; \
    EACH_OWN { \
        sums[v][0] = x[v][i]; \
        sums[v][1] = cla_lane_real(0); \
    } \
    CLA_UNROLL for (int j = (from); j < (to); j++) { \
        const cla_lane e = row[j]; \
        EACH_OWN sums[v][j % 2] = cla_lane_fnma(e, x[v][j], sums[v][j % 2]); \
    } \
    EACH_OWN x[v][i] = sums[v][0] + sums[v][1];
/* x[.][j] less that row, conjugated, times x[.][i], for some j */
#define CLA_ROW_AWAY(i, from, to) \
    CLA_FORGET \
    CLA_LOCAL const cla_lane *row = FACTOR_ROW(i); \
    CLA_UNROLL for (int j = (from); j < (to); j++) { \
        const cla_lane e = cla_lane_conj(row[j]); \
        EACH_OWN x[v][j] = cla_lane_fnma(e, x[v][i], x[v][j]); \
    }

/* x[.][i] times the reciprocal of an element on the diagonal */
#define CLA_ROW_DIVIDED(i) { \
        const cla_lane inverse = inverses[l * N + (i)]; \
        EACH_OWN x[v][i] = cla_lane_mul(inverse, x[v][i]); \
    }

/* x <- inv(L U) x */
#define CLA_ROWS_LU \
    CLA_UNROLL for (int i = 1; i < N; i++) { CLA_ROW_TIMES(i, 0, i) } \
    CLA_UNROLL for (int i = N - 1; i >= 0; i--) { \
        CLA_ROW_TIMES(i, i + 1, N) \
        CLA_ROW_DIVIDED(i) \
    }

/* For the columns c of r, of matrix l: first(i, c) is x[.][i], which is solved with, and then last(i, c, x[.][i]) is done. */
#define CLA_ROWS_SOLVE(r, first, solve, last) { \
        const int l = get_local_id(0) % LANES, apart = ((r) + COLUMNS - 1) / COLUMNS; \
        CLA_LOCAL const cla_lane *factors = tiles + l * TILE; \
        OWN_ORDER \
        CLA_ROLLED for (int c = get_local_id(0) / LANES; c < apart; c += P) { \
            cla_lane x[COLUMNS][N]; \
            EACH_OWN CLA_UNROLL for (int i = 0; i < N; i++) { \
                x[v][i] = cla_lane_real(0); \
                if (HAS_OWN(r)) x[v][i] = first(i, c + v * apart); \
            } \
            solve \
            EACH_OWN \
                if (HAS_OWN(r)) \
                    CLA_UNROLL for (int i = 0; i < N; i++) last(i, c + v * apart, x[v][i]) \
        } \
    }
