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
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); /* members store what others have copied */

/* Solves go by blocks of ABREAST rows of the factors of a work-item's matrix, and are not written out: instructions that
 * each warp runs once come too slowly, and take long to compile. For that, the COLUMNS columns x of right-hand sides turn
 * in registers: in the block from row k on, x[.][j] is number (k + j) % TURNED. What solves read of factors in columns from
 * N to TURNED is zero.
 */
#define ABREAST (N % 8 == 0 && N > 8 ? 8 : 4)
#define TURNED ((N + ABREAST - 1) / ABREAST * ABREAST)
#ifdef FACTOR_ROW /* rows lie where they belong */
#define OWN_ORDER
#else
#define OWN_ORDER CLA_LOCAL const int *own_order = order + l * N;
#define FACTOR_ROW(i) (factors + own_order[i] * TILE_LINE)
#endif
/* The matrix of a work-item, and the first of its columns. Neighbours have the same matrix, two by two: NVIDIA's GPUs read
 * local memory twice as fast then. */
#define NEAR (P % 2 ? 1 : 2)
#define OWN_MATRIX ((int)get_local_id(0) / NEAR % LANES)
#define OWN_COLUMN ((int)get_local_id(0) / (LANES * NEAR) * NEAR + (int)get_local_id(0) % NEAR)
#define EACH_OWN CLA_UNROLL for (int v = 0; v < COLUMNS; v++)
#define EACH_ABREAST(s) CLA_UNROLL for (int s = 0; s < ABREAST; s++)
#define HAS_OWN(r) ((r) % COLUMNS == 0 || c + v * apart < (r))
#define IN_MATRIX(i) (N % ABREAST == 0 ? (i) : min(i, N - 1))

/* For all blocks, downwards or upwards */
#define CLA_BLOCKS_DOWN(each) \
    CLA_ROLLED for (int k = 0; k < TURNED; k += ABREAST) { \
        CLA_BLOCK_ROWS \
        each \
        EACH_OWN { \
            cla_lane done[ABREAST]; \
            EACH_ABREAST(s) done[s] = N % ABREAST == 0 || k + s < N ? x[v][s] : cla_lane_real(0); \
            CLA_UNROLL for (int j = ABREAST; j < TURNED; j++) x[v][j - ABREAST] = x[v][j]; \
            EACH_ABREAST(s) x[v][TURNED - ABREAST + s] = done[s]; \
        } \
    }
#define CLA_BLOCKS_UP(each) \
    CLA_ROLLED for (int k = TURNED - ABREAST; k >= 0; k -= ABREAST) { \
        CLA_BLOCK_ROWS \
        EACH_OWN { \
            cla_lane next[ABREAST]; \
            EACH_ABREAST(s) next[s] = x[v][TURNED - ABREAST + s]; \
            CLA_UNROLL for (int j = TURNED - 1; j >= ABREAST; j--) x[v][j] = x[v][j - ABREAST]; \
            EACH_ABREAST(s) x[v][s] = next[s]; \
        } \
        each \
    }
#define CLA_BLOCK_ROWS \
    CLA_LOCAL const cla_lane *rows[ABREAST]; \
    EACH_ABREAST(s) rows[s] = FACTOR_ROW(IN_MATRIX(k + s));

/* F(s, j, e) for elements e of row k + s and of the column of number x[.][j]: those to the left of a block, or to its right */
#define CLA_BLOCK_BESIDE(there, first, F) \
    CLA_UNROLL for (int j0 = ABREAST; j0 < TURNED; j0 += ABREAST) \
        if (there) \
            EACH_ABREAST(s) EACH_ABREAST(i) { F(s, j0 + i, rows[s][(first) + j0 + i]) }
#define CLA_BLOCK_LEFT(F) CLA_BLOCK_BESIDE(j0 >= TURNED - k, k - TURNED, F)
#define CLA_BLOCK_RIGHT(F) CLA_BLOCK_BESIDE(j0 < TURNED - k, k, F)

/* x[.][s] less element (s, j) times x[.][j], or x[.][j] less it, conjugated, times x[.][s] */
#define CLA_ROW_TIMES(s, j, e) { \
        const cla_lane factor = e; \
        EACH_OWN x[v][s] = cla_lane_fnma(factor, x[v][j], x[v][s]); \
    }
#define CLA_ROW_AWAY(s, j, e) { \
        const cla_lane factor = cla_lane_conj(e); \
        EACH_OWN x[v][j] = cla_lane_fnma(factor, x[v][s], x[v][j]); \
    }
#define CLA_BELOW(s, F) CLA_UNROLL for (int j = 0; j < s; j++) F(s, j, rows[s][k + j])
#define CLA_ABOVE(s, F) CLA_UNROLL for (int j = s + 1; j < ABREAST; j++) F(s, j, rows[s][k + j])

/* x <- inv(L U) x */
#define CLA_ROWS_LU \
    CLA_BLOCKS_DOWN( \
        CLA_BLOCK_LEFT(CLA_ROW_TIMES) \
        EACH_ABREAST(s) CLA_BELOW(s, CLA_ROW_TIMES) \
    ) \
    CLA_BLOCKS_UP( \
        CLA_BLOCK_RIGHT(CLA_ROW_TIMES) \
        CLA_UNROLL for (int s = ABREAST - 1; s >= 0; s--) { \
            CLA_ABOVE(s, CLA_ROW_TIMES) \
            const cla_lane inverse = inverses[l * N + IN_MATRIX(k + s)]; \
            EACH_OWN x[v][s] = cla_lane_mul(inverse, x[v][s]); \
        } \
    )

/* For the columns c of r, of matrix l: first(i, c) is x[.][i], which is solved with, and then last(i, c, x[.][i]) is done. */
#define CLA_ROWS_SOLVE(r, first, solve, last) { \
        const int l = OWN_MATRIX, apart = ((r) + COLUMNS - 1) / COLUMNS; \
        CLA_LOCAL const cla_lane *factors = tiles + l * TILE; \
        OWN_ORDER \
        CLA_ROLLED for (int c = OWN_COLUMN; c < apart; c += P) { \
            cla_lane x[COLUMNS][TURNED]; \
            EACH_OWN CLA_UNROLL for (int i = 0; i < TURNED; i++) { \
                x[v][i] = cla_lane_real(0); \
                if (i < N && HAS_OWN(r)) x[v][i] = first(i, c + v * apart); \
            } \
            solve \
            EACH_OWN \
                if (HAS_OWN(r)) \
                    CLA_UNROLL for (int i = 0; i < N; i++) last(i, c + v * apart, x[v][i]) \
        } \
    }
