/* Factorization of lines of blocks as by thomas.cl, which says what becomes of them, by teams that are parts of warps.
 *
 * Members of a warp run in step on NVIDIA's GPUs, so that no step of an elimination waits for other warps; elsewhere
 * this is right, but slower. A member has every TEAM-th column of the blocks in registers. For a step, the member that
 * has the column of the pivot leaves it in local memory, with the pivot's reciprocal, which it begins to compute before
 * all other work of the step before. Define FACTOR_WARP and BLOCK. Tunables:
 *
 * FACTOR_WARP  one work-group for a pack of lines
 *   LANES      lines of a work-group: V, a multiple of 4
 *   TEAM       work-items of a line, a power of 2; lines of a warp are neighbours
 *   AHEAD      block rows that are copied to local memory in advance, as they lie, by bulk_copy.h
 */
#include "bulk_copy.h"
#include "elimination.h"
#include "inverses.h"
#include "room.h"

#ifndef BLOCK
#define BLOCK 4
#define LANES 32
#define TEAM 4
#define AHEAD 1
#endif
#if defined(__CUDACC__) || defined(__NV_CL_C_VERSION)
#define CLA_WARP 2 /* bulk copies, too, need more than all that this has */
#endif
#include "warp.h"

#ifdef FACTOR_WARP
#define OF_A_WARP (LANES * TEAM < 32 ? LANES : 32 / TEAM) /* lines */
#define COLUMNS ((BLOCK + TEAM - 1) / TEAM)               /* of a member */
#define OWNER(k) ((k) % TEAM)                             /* the member with column k, and its number there */
#define PLACE(k) ((k) / TEAM)
#define HAS(j) ((j + 1) * TEAM <= BLOCK || (j) * TEAM + c < BLOCK) /* else a column of zeros */
#define EACH_COLUMN CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
#define EACH_ROW CLA_UNROLL for (int i = 0; i < BLOCK; i++)

/* A column in local memory and what follows it: so many elements that those of the lines of a warp are in different
 * banks, and so aligned that several elements are moved at once. There is one for this step and one for the next. */
#define AT_ONCE (16 / (int)sizeof(cla_lane))
#define COLUMN (((BLOCK + AT_ONCE) / AT_ONCE | 1) * AT_ONCE)
#define STAGE (3 * CLA_SLOT) /* blocks of a block row */
#define LOCAL_LANES (2 * LANES * COLUMN + AHEAD * 3 * BLOCK * BLOCK * LANES)
#define IN_BLOCK(x, i, j) cla_lane_of(x[CLA_ELEMENT(i, j)], x[CLA_ELEMENT(i, j) + CLA_VLEN * CLA_COMPLEX])
#define LOADED(p, i, j) (HAS(j) ? cla_lane_load(p, CLA_ELEMENT(i, (j) * TEAM)) : cla_lane_real(0))
#define STAGED(x, i, j) (HAS(j) ? IN_BLOCK(x, i, (j) * TEAM) : cla_lane_real(0))

/* Copies for the elimination of a block row and what follows it: its lower, and diag and upper of the next one. */
#define FETCH_BLOCKS(number) \
    if ((number) < count - 1) { \
        const long from = (number) * (long)CLA_SLOT; \
        const uint bytes = CLA_SLOT * sizeof(CLA_REAL), more = (number) < count - 2; \
        CLA_LOCAL CLA_REAL *to = staged + (number) % AHEAD * STAGE; \
        cla_arrivals_expect(arrivals + (number) % AHEAD, (2 + more) * bytes); \
        cla_bulk_copy(to, lower + from, bytes, arrivals + (number) % AHEAD); \
        cla_bulk_copy(to + CLA_SLOT, diag + from + CLA_SLOT, bytes, arrivals + (number) % AHEAD); \
        if (more) cla_bulk_copy(to + 2 * CLA_SLOT, upper + from + CLA_SLOT, bytes, arrivals + (number) % AHEAD); \
    }

#if CLA_WARP && !CLA_COMPLEX
#define RECIPROCAL(a) cla_near_reciprocal(a)
/* Whether that is not near: where x is very large or small, or no number. */
CLA_INLINE int IS_UNSURE(CLA_REAL x)
{
    const uint least = 0x02000000, most = 0x7c000000;
    return (cla_high(x) & INT_MAX) - least >= most - least;
}
#else
#define RECIPROCAL(a) cla_lane_recip(a)
#define IS_UNSURE(a) cla_lane_is_zero(a)
#endif

/* Leaves column k of d in local memory and makes it a column of the identity: the inverse grows there. What the column
 * needs but for its pivot is done `first`, and what else there is while the reciprocal is on its way, the `rest`. */
#define PUBLISH(k, first, rest) { \
        CLA_LOCAL cla_lane *to = column + (k) % 2 * LANES * COLUMN; \
        const int own = c == OWNER(k); \
        const cla_lane pivot = d[PLACE(k)][k]; \
        cla_lane reciprocal = RECIPROCAL(pivot); \
        first \
        if (own) EACH_ROW to[i] = d[PLACE(k)][i]; \
        EACH_ROW d[PLACE(k)][i] = cla_lane_select(own, cla_lane_real(i == (k)), d[PLACE(k)][i]); \
        rest \
        if (own) { \
            if (IS_UNSURE(pivot)) reciprocal = cla_pivot(pivot, k, &zero); \
            to[BLOCK] = reciprocal; \
        } \
    }
/* Element i of column j of x after step k, and all of them but those of d's column `next` */
#define STEPPED(x, j, i) (i == k ? x##_k[j] : cla_lane_fnma(a[i], x##_k[j], x[j][i]))
#define REST { \
        EACH_COLUMN if (j != next) EACH_ROW d[j][i] = STEPPED(d, j, i); \
        EACH_COLUMN EACH_ROW f[j][i] = STEPPED(f, j, i); \
    }

__kernel CLA_GROUP_OF(LANES * TEAM) void factor_warp(long lanes, __global const CLA_REAL *restrict lower,
                                                     __global CLA_REAL *restrict diag,
                                                     __global CLA_REAL *restrict upper,
                                                     __global const long *restrict offset, __global int *info)
{
    CLA_ROOM_OF(cla_lane, room, LOCAL_LANES);
    __local cla_arrivals arrivals[AHEAD];
    const int id = get_local_id(0), c = id % 32 / OF_A_WARP, l = id / 32 * OF_A_WARP + id % OF_A_WARP;
    const int first = l + c * (CLA_PARTS * CLA_VLEN); /* of the own elements of a block */
    const long p = get_group_id(0);
    const int count = offset[p + 1] - offset[p];
    lower += (offset[p] - p) * CLA_SLOT;
    upper += (offset[p] - p) * CLA_SLOT;
    diag += offset[p] * CLA_SLOT;
    __global CLA_REAL *own_upper = upper + first, *own_diag = diag + first;
    CLA_LOCAL cla_lane *column = room + l * COLUMN;
    CLA_LOCAL CLA_REAL *staged = (CLA_LOCAL CLA_REAL *)(room + 2 * LANES * COLUMN);
    if (id == 0) {
        for (int i = 0; i < AHEAD; i++) cla_arrivals_ready(arrivals + i);
        for (int i = 0; i < AHEAD - 1; i++) { FETCH_BLOCKS(i) }
    }
    cla_lane d[COLUMNS][BLOCK], f[COLUMNS][BLOCK];
    int bad = 0;
    EACH_COLUMN EACH_ROW {
        d[j][i] = LOADED(own_diag, i, j);
        f[j][i] = count > 1 ? LOADED(own_upper, i, j) : cla_lane_real(0);
    }
    for (int row = 0; row < count; row++) {
        int zero = 0;
        /* All have taken what was copied there before, and one copies what others store later. */
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (id == 0) { FETCH_BLOCKS(row + AHEAD - 1) }
        PUBLISH(0, , )
        CLA_UNROLL for (int k = 0; k < BLOCK; k++) { /* [d, f] <- inv(d) [1, f], column by column */
            CLA_LOCAL const cla_lane *from = column + k % 2 * LANES * COLUMN;
            cla_lane a[BLOCK], d_k[COLUMNS], f_k[COLUMNS];
            CLA_TOGETHER
            const cla_lane r = from[BLOCK];
            EACH_ROW a[i] = from[i];
            EACH_COLUMN {
                d_k[j] = cla_lane_mul(r, d[j][k]);
                f_k[j] = cla_lane_mul(r, f[j][k]);
            }
            const int next = k + 1 < BLOCK ? PLACE(k + 1) : COLUMNS;
            if (k + 1 < BLOCK) {
                d[next][k + 1] = STEPPED(d, next, k + 1);
                PUBLISH(k + 1, EACH_ROW if (i != k + 1) d[next][i] = STEPPED(d, next, i);, REST)
            } else REST
        }
        if (zero && bad == 0) bad = row * BLOCK + zero;
        const long at = row * (long)CLA_SLOT;
        EACH_COLUMN if (HAS(j)) EACH_ROW cla_lane_store(own_diag, at + CLA_ELEMENT(i, j * TEAM), d[j][i]);
        if (row == count - 1) break;
        EACH_COLUMN if (HAS(j)) EACH_ROW cla_lane_store(own_upper, at + CLA_ELEMENT(i, j * TEAM), f[j][i]);
        CLA_LOCAL const CLA_REAL *stage = staged + row % AHEAD * STAGE;
        CLA_LOCAL const CLA_REAL *staged_e = stage + l, *staged_n = stage + CLA_SLOT + first;
        CLA_LOCAL const CLA_REAL *staged_f = staged_n + CLA_SLOT;
        cla_arrivals_wait(arrivals + row % AHEAD, row / AHEAD);
        EACH_COLUMN EACH_ROW d[j][i] = STAGED(staged_n, i, j);
        CLA_UNROLL for (int k = 0; k < BLOCK; k++)
            EACH_ROW {
                const cla_lane e = IN_BLOCK(staged_e, i, k);
                EACH_COLUMN d[j][i] = cla_lane_fnma(e, f[j][k], d[j][i]);
            }
        if (row + 2 < count) EACH_COLUMN EACH_ROW f[j][i] = STAGED(staged_f, i, j);
    }
    CLA_LOCAL int *zeros = (CLA_LOCAL int *)room;
    barrier(CLK_LOCAL_MEM_FENCE);
    zeros[c * LANES + l] = bad;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (c == 0) {
        for (int i = 1; i < TEAM; i++) {
            const int other = zeros[i * LANES + l];
            if (other && (bad == 0 || other < bad)) bad = other;
        }
        info[p * LANES + l] = bad;
    }
}
#endif
