/* Kronecker products of a batch, of two or three common factors, on the matrix units of NVIDIA's GPUs, in doubles, of real
 * numbers; see kron_items.h. A slice of an item is what there is for one number of axis A, of three factors, or all of
 * it, of two. A warp takes slices into its registers, and the factors of their rows and columns; the factor of axis A is
 * applied to what local memory has of them.
 *
 * On an H200 items of 8 x 8 and 10 x 10 doubles take 1.04 to 1.08 times as long with the best of kron_team, 16 x 16 1.3
 * times, 32 x 32 2.5 times, and 16 x 16 x 16 1.4 times.
 *
 * GROUP, WIDE, ROUNDS   as in kron_team.cl; warps are 32 work-items
 * AHEAD    likewise; 1: all slices of ITEMS are in registers at once
 * ITEMS    items of a work-group
 * SLICES   that a warp has in its registers at a time
 * TALL     of mma.h
 */
#include "kron_items.h"
#include "mma.h"
#if !defined(CLA_MMA)
#error "matrix units are those of NVIDIA's GPUs"
#endif

#define WARPS (GROUP / 32)
#define BLOCKS(m) (((m) + 7) / 8)
#define STEPS(n) (((n) + 3) / 4)
/* What is at place p of block k of n numbers, n or more if nothing is. If a last block has four at most they are at its
 * even places, which is one step: step s has place 2 r + s % 2 of block s / 2 in work-item r. */
#define NUMBER(n, k, p) (8 * (k) + 4 < (n) ? 8 * (k) + (p) : (p) % 2 ? (n) : 8 * (k) + (p) / 2)
#define STEP(n, s) NUMBER(n, (s) / 2, 2 * r + (s) % 2)
#define FRAGMENT(F, f, m, n, scale) \
    double f[BLOCKS(m)][STEPS(n)]; \
    CLA_UNROLL for (int i = 0; i < BLOCKS(m); i++) \
        CLA_UNROLL for (int s = 0; s < STEPS(n); s++) \
            f[i][s] = 8 * i + g < (m) && STEP(n, s) < (n) \
                          ? (scale) * cla_lane_load_apart(F, F##0 + (8 * i + g) * F##r + STEP(n, s) * F##c, F##V) \
                          : 0;
#define ZERO(d, rows, columns) \
    double d[rows][columns][2]; \
    CLA_UNROLL for (int i = 0; i < (rows); i++) CLA_UNROLL for (int j = 0; j < (columns); j++) d[i][j][0] = d[i][j][1] = 0;
#if FACTORS == 3
#define ITEM_SLICES NA
#define NR NB /* rows of a slice */
#define MR MB
#define X_NUMBER(l, a, i, j) X[X_PLACE(l, a, i, j)]
#define X_PAIR(l, a, i, j) X_AT(l, a, i, j)
#else
#define ITEM_SLICES 1
#define NR NA
#define MR MA
#define X_NUMBER(l, a, i, j) X[X_PLACE(l, i, 0, j)]
#define X_PAIR(l, a, i, j) X_AT(l, i, 0, j)
#endif
#define ALL_SLICES (ITEMS * ITEM_SLICES)
#define SLICE ((MB * MC + 1) / 4 * 4 + 2) /* room in the tile: axis A is in different banks */
#define FETCH(x, u) \
    { \
        const int l = min(u, ALL_SLICES - 1) / ITEM_SLICES, a = min(u, ALL_SLICES - 1) % ITEM_SLICES; \
        CLA_UNROLL for (int j = 0; j < BLOCKS(NR); j++) \
            CLA_UNROLL for (int s = 0; s < STEPS(NC); s++) { \
                const int i = NUMBER(NR, j, g), k = STEP(NC, s); \
                if (WIDE == 1 || 8 * (s / 2) + 4 >= NC) x[j][s] = i < NR && k < NC ? X_NUMBER(l, a, i, k) : 0; \
                else if (s % 2 == 0) { \
                    cla_lane pair[2] = {0, 0}; \
                    if (i < NR && k < NC) SPLIT(X_PAIR(l, a, i, k / WIDE), 0, pair); \
                    x[j][s] = pair[0]; \
                    x[j][s + 1] = pair[1]; \
                } \
            } \
    }

__kernel CLA_GROUP_OF(GROUP) void kron_mma(COMMON)
{
    const int t = get_local_id(0), warp = t / 32, g = t % 32 / 4, r = t % 4;
    const long step = get_num_groups(0) * (long)ITEMS;
    long q0 = get_group_id(0) * (long)ITEMS;
    double x[SLICES][BLOCKS(NR)][STEPS(NC)];
#if FACTORS == 3
    __local cla_lane tile[ALL_SLICES * SLICE + 8];
    FRAGMENT(A, a_of, MA, NA, 1)
    FRAGMENT(B, r_of, MB, NB, 1)
#else
    FRAGMENT(A, r_of, MA, NA, 1)
#endif
    FRAGMENT(C, c_of, MC, NC, alpha)
    if (AHEAD) CLA_UNROLL for (int v = 0; v < SLICES; v++) FETCH(x[v], warp * SLICES + v)
    for (; q0 < nm; q0 += step) {
        for (int u0 = warp * SLICES; u0 < ALL_SLICES; u0 += WARPS * SLICES) {
            if (!AHEAD) CLA_UNROLL for (int v = 0; v < SLICES; v++) FETCH(x[v], u0 + v)
            CLA_UNROLL for (int v = 0; v < SLICES; v++) {
                ZERO(turned, BLOCKS(MC), BLOCKS(NR))
                ZERO(slice, BLOCKS(MR), BLOCKS(MC))
#define OF_X(j) x[v][j]
#define OF_TURNED(j) turned[j][0]
                CLA_MMA_BLOCKS(BLOCKS(MC), BLOCKS(NR), STEPS(NC), turned, c_of, OF_X)
                if (AHEAD && q0 + step < nm) {
                    const long now = q0, q0 = now + step;
                    FETCH(x[v], u0 + v)
                }
                CLA_MMA_BLOCKS(BLOCKS(MR), BLOCKS(MC), STEPS(NR), slice, r_of, OF_TURNED)
                CLA_UNROLL for (int i = 0; i < BLOCKS(MR); i++)
                    CLA_UNROLL for (int j = 0; j < BLOCKS(MC); j++) {
                        cla_lane pair[2] = {(cla_lane)slice[i][j][0], (cla_lane)slice[i][j][1]};
                        const int row = 8 * i + g, column = 8 * j + 2 * r;
                        CLA_UNROLL for (int h = 0; h < 2; h++)
                            if (u0 + v < ALL_SLICES && row < MR && column + h < MC) {
#if FACTORS == 3
                                tile[(u0 + v) * SLICE + row * MC + column + h] = pair[h];
#else
                                if (h % WIDE == 0) TO_Y(u0 + v, row, 0, column / WIDE + h, JOINED(pair, h))
#endif
                            }
                    }
            }
        }
#if FACTORS == 3
        BETWEEN
        for (int e = 0; e < (ITEMS * BLOCKS(MB * MC) + WARPS - 1) / WARPS; e++) {
            const int block = e * WARPS + warp, l = block / BLOCKS(MB * MC), p0 = block % BLOCKS(MB * MC) * 8;
            if (block < ITEMS * BLOCKS(MB * MC)) {
                double y[STEPS(NA)];
                ZERO(pencils, BLOCKS(MA), 1)
                CLA_UNROLL for (int s = 0; s < STEPS(NA); s++)
                    y[s] = STEP(NA, s) < NA ? tile[(l * NA + STEP(NA, s)) * SLICE + p0 + g] : 0;
#define OF_Y(j) y
                CLA_MMA_BLOCKS(BLOCKS(MA), 1, STEPS(NA), pencils, a_of, OF_Y)
                CLA_UNROLL for (int i = 0; i < BLOCKS(MA); i++) {
                    cla_lane pair[2] = {(cla_lane)pencils[i][0][0], (cla_lane)pencils[i][0][1]};
                    CLA_UNROLL for (int h = 0; h < 2; h += WIDE) {
                        const int p = p0 + 2 * r + h;
                        if (8 * i + g < MA && p < MB * MC)
                            TO_Y(l, 8 * i + g, p / MC, p % MC / WIDE, JOINED(pair, h / WIDE))
                    }
                }
            }
        }
        if (ROUNDS > 1) BETWEEN
#endif
        if (ROUNDS == 1) break;
    }
}
