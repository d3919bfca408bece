/* Factorization of lines of blocks whose size, BLOCK, is known when this is compiled: Thomas' algorithm with blocks and
 * their inverses, which thomas_solve.cl solves with.
 *
 * factor   diag[k] <- inv(diag[k]), upper[k] <- diag[k] upper[k], then diag[k + 1] <- diag[k + 1] - lower[k] upper[k]
 *
 * Where blocktridiag.cl stores factors, this stores inverses: lower stays as it was and is not written, and the rows of
 * a block of a solve don't wait for each other. Slots, offset and rows are as in blocktridiag.cl. Define one of
 * FACTOR_LINE, FACTOR_TEAM, and BLOCK. Tunables:
 *
 * FACTOR_LINE  one work-item a line, blocks in its registers
 *   GROUP      work-items of a work-group
 *   AHEAD      block rows that are loaded in advance, to registers
 * FACTOR_TEAM  one work-group for LANES lines of a pack
 *   LANES      lines of a work-group, a divisor of V
 *   COLUMNS    columns of a work-item: neighbours, which are eliminated at once
 *   TEAM       work-items of a line, BLOCK / COLUMNS; the last may have fewer columns
 *   AHEAD      0: blocks are loaded where they are needed; 1: those of lower and diag a row in advance; 2: upper too;
 *              3: all, to local memory, by async_copy.h, of teams of more than one and without WATCH; 4: likewise, but
 *              upper and diag by turns to the same place: half the room, and upper has less time; 5, 6: all, to local
 *              memory, as they lie, one or two rows in advance, by bulk_copy.h, of whole packs (LANES is V), without
 *              WATCH, and 5 of teams of more than one
 *   WATCH      1: pivots are watched as by watched_lu.cl, which says what PERTURB, SHIFT, PIVOTING, EPSILON, LEAST are
 */
#include "bulk_copy.h"
#include "elimination.h"
#include "inverses.h"
#include "room.h"

#ifndef BLOCK
#define BLOCK 4
#define GROUP 32
#define LANES 8
#define COLUMNS 2
#define TEAM 2
#define AHEAD 1
#define WATCH 0
#endif

#ifdef FACTOR_LINE
__kernel CLA_GROUP_OF(GROUP) void factor_line(long lanes, __global const CLA_REAL *restrict lower,
                                              __global CLA_REAL *restrict diag, __global CLA_REAL *restrict upper,
                                              __global const long *restrict offset, __global int *info)
{
    const long q = get_global_id(0), p = q / CLA_VLEN;
    if (q >= lanes) return;
    const int count = offset[p + 1] - offset[p];
    diag += offset[p] * CLA_SLOT + q % CLA_VLEN;
    lower += (offset[p] - p) * CLA_SLOT + q % CLA_VLEN;
    upper += (offset[p] - p) * CLA_SLOT + q % CLA_VLEN;
    long bad = 0;
    cla_lane d[BLOCK][BLOCK], e[AHEAD + 1][BLOCK][BLOCK], f[AHEAD + 1][BLOCK][BLOCK], n[AHEAD + 1][BLOCK][BLOCK];
#define EACH CLA_UNROLL for (int i = 0; i < BLOCK; i++) CLA_UNROLL for (int j = 0; j < BLOCK; j++)
#define FETCH(u, row) { /* couplings of block row `row` and the next, and that one's diagonal block */ \
        const long at = min(row, count - 2) * (long)CLA_SLOT; \
        EACH f[u][i][j] = cla_lane_load(upper, at + CLA_ELEMENT(i, j)); \
        EACH e[u][i][j] = cla_lane_load(lower, at + CLA_ELEMENT(i, j)); \
        EACH n[u][i][j] = cla_lane_load(diag, at + CLA_SLOT + CLA_ELEMENT(i, j)); \
    }
    EACH d[i][j] = cla_lane_load(diag, CLA_ELEMENT(i, j));
    if (count > 1) CLA_UNROLL for (int u = 0; u < AHEAD; u++) FETCH(u, u)
    else CLA_UNROLL for (int u = 0; u <= AHEAD; u++) EACH e[u][i][j] = f[u][i][j] = n[u][i][j] = cla_lane_real(0);
    for (int row0 = 0; row0 < count; row0 += AHEAD + 1)
        CLA_UNROLL for (int u = 0; u <= AHEAD; u++) {
            const int row = row0 + u; /* past the last row nothing is stored */
            int zero = 0;
            if (count > 1) FETCH((u + AHEAD) % (AHEAD + 1), row + AHEAD)
            CLA_UNROLL for (int k = 0; k < BLOCK; k++) { /* [d, f] <- inv(d) [1, f], column by column */
                const cla_lane r = cla_pivot(d[k][k], k, &zero);
                d[k][k] = cla_lane_real(1);
                CLA_UNROLL for (int j = 0; j < BLOCK; j++) d[k][j] = cla_lane_mul(r, d[k][j]);
                CLA_UNROLL for (int j = 0; j < BLOCK; j++) f[u][k][j] = cla_lane_mul(r, f[u][k][j]);
                CLA_UNROLL for (int i = 0; i < BLOCK; i++)
                    if (i != k) {
                        const cla_lane m = d[i][k];
                        d[i][k] = cla_lane_real(0);
                        CLA_UNROLL for (int j = 0; j < BLOCK; j++) d[i][j] = cla_lane_fnma(m, d[k][j], d[i][j]);
                        CLA_UNROLL for (int j = 0; j < BLOCK; j++)
                            f[u][i][j] = cla_lane_fnma(m, f[u][k][j], f[u][i][j]);
                    }
            }
            if (zero && bad == 0 && row < count) bad = (long)row * BLOCK + zero;
            if (row < count) EACH cla_lane_store(diag, row * (long)CLA_SLOT + CLA_ELEMENT(i, j), d[i][j]);
            if (row < count - 1) EACH cla_lane_store(upper, row * (long)CLA_SLOT + CLA_ELEMENT(i, j), f[u][i][j]);
            CLA_UNROLL for (int k = 0; k < BLOCK; k++)
                EACH n[u][i][j] = cla_lane_fnma(e[u][i][k], f[u][k][j], n[u][i][j]);
            EACH d[i][j] = n[u][i][j];
        }
    info[q] = bad;
}
#endif

#ifdef FACTOR_TEAM
#if WATCH
#include "watch.h"
#ifndef EPSILON
#define PERTURB 1
#define SHIFT 0
#define PIVOTING 1
#define EPSILON 1e-7f
#define LEAST 1e-30f
#endif
#define SEE(most, a) most = cla_larger_size(most, a);
#define TREATED(pivot) cla_watched_pivot(PERTURB, SHIFT, pivot, threshold, &here)
#define WATCHED_ARGUMENTS , __global const long *restrict rows, __global CLA_REAL *restrict watched
#else
#define SEE(most, a)
#define TREATED(pivot) pivot
#define WATCHED_ARGUMENTS
#endif
#ifndef PIVOTING
#define PIVOTING 0
#endif
#define COPIES (AHEAD == 3 || AHEAD == 4)
#define BY_TURNS (AHEAD == 4)
#define BULK (AHEAD >= 5)
#define DEPTH (AHEAD - 4) /* block rows in advance, of BULK */
#if COPIES
#define COPIED(F) OWN(F)
#else
#define COPIED(F)
#endif
#define IN_ADVANCE (AHEAD == 1 || AHEAD == 2)
#define COLUMN ((BLOCK + PIVOTING) * LANES) /* of a column in local memory, and the row that its pivot came from */
#define SQUARE (BLOCK * BLOCK * LANES)      /* of a block there */
#define OWN_COLUMNS (COLUMNS * BLOCK * LANES * TEAM)
#define LOCAL_LANES (2 * COLUMNS * COLUMN + (BULK ? 3 * DEPTH : 1) * SQUARE + (BY_TURNS ? 1 : 2 * COPIES) * OWN_COLUMNS)

/* Own columns: F(j, i) for element i of column j, or for element i of the transposed column: row j */
#define OWN(F) CLA_UNROLL3(BLOCK, OWN_ELEMENTS, F, 0)
#define OWN_ELEMENTS(F, unused, i) CLA_UNROLL4(COLUMNS, F, 0, 0, i)

#define HAS(j) (BLOCK % COLUMNS == 0 || c * COLUMNS + j < BLOCK) /* whether there is such a column, else one of zeros */
#define LOADED(p, at, i, j) (HAS(j) ? cla_lane_load(p, at + CLA_ELEMENT(i, j)) : cla_lane_real(0))
#define LOAD_D(a, b, i, j) d[j][i] = LOADED(own_diag, at_diag, i, j);
#define LOAD_F(a, b, i, j) f[j][i] = LOADED(own_upper, at, i, j);
#define LOAD_NEXT_F(a, b, i, j) f_next[j][i] = LOADED(own_upper, at, i, j);
#define LOAD_E(a, b, i, j) e[j][i] = LOADED(own_lower, at, i, j);
#define LOAD_N(a, b, i, j) n[j][i] = LOADED(own_diag, at_diag, i, j);
#define STORE_D(a, b, i, j) if (HAS(j)) cla_lane_store(own_diag, at_diag + CLA_ELEMENT(i, TARGET(j)), d[j][i]);
#define STORE_F(a, b, i, j) if (HAS(j)) cla_lane_store(own_upper, at + CLA_ELEMENT(i, j), f[j][i]);
#define IN_E(i, j) e_part[(i * BLOCK + c * COLUMNS + j) * LANES]
#define SHARE_E(a, b, i, j) \
    if (HAS(j)) { \
        IN_E(i, j) = e[j][i]; \
        SEE(here.largest, e[j][i]) \
    }
#define COPY_E(a, b, i, j) if (HAS(j)) cla_copy_begin(&IN_E(i, j), own_lower, at + CLA_ELEMENT(i, j));
#define COPY_F(a, b, i, j) if (HAS(j)) cla_copy_begin(&IN_OWN(f, i, j), own_upper, at + CLA_ELEMENT(i, j));
#define COPY_N(a, b, i, j) if (HAS(j)) cla_copy_begin(&IN_OWN(n, i, j), own_diag, at_diag + CLA_ELEMENT(i, j));
#define IN_OWN(x, i, j) x##_copied[((i) * COLUMNS + j) * (LANES * TEAM)]
#define TAKE_F(a, b, i, j) f[j][i] = HAS(j) ? IN_OWN(f, i, j) : cla_lane_real(0);
#define TAKE_N(a, b, i, j) n[j][i] = HAS(j) ? IN_OWN(n, i, j) : cla_lane_real(0);
#define IN_BLOCK(x, i, j) cla_lane_of(x[CLA_ELEMENT(i, j)], x[CLA_ELEMENT(i, j) + CLA_VLEN * CLA_COMPLEX])
#define STAGED_F(a, b, i, j) f[j][i] = HAS(j) ? IN_BLOCK(staged_f, i, c * COLUMNS + j) : cla_lane_real(0);
#define STAGED_N(a, b, i, j) n[j][i] = HAS(j) ? IN_BLOCK(staged_n, i, c * COLUMNS + j) : cla_lane_real(0);
#define SEE_F(a, b, i, j) SEE(here.largest, f[j][i])
#define SEE_D(a, b, i, j) SEE(norm, d[j][i])
#define SEE_N(a, b, i, j) SEE(norm, n[j][i])
#define CLEAR(a, b, i, j) f[j][i] = f_next[j][i] = cla_lane_real(0);
#define NEXT_D(a, b, i, j) d[j][i] = n[j][i];
#define NEXT_F(a, b, i, j) f[j][i] = f_next[j][i];

/* Rows are swapped by selects, since registers cannot be indexed. Four bits of `order` for each i say which row became row
 * i: column i of the inverse is stored as that column. */
#define SWAP_ROW(x, k, i) \
    if (i > (k)) { CLA_UNROLL4(COLUMNS, SWAP_AT, x, k, i) }
#define SWAP_AT(x, k, i, j) { \
        const cla_lane other = x[j][i]; \
        x[j][i] = cla_lane_select(place == i, x[j][k], other); \
        x[j][k] = cla_lane_select(place == i, other, x[j][k]); \
    }
#define FIND_ROW(s, k, i) \
    if (i > (k)) { \
        const CLA_REAL size = cla_lane_abs1(d[s][i]); \
        place = size > best ? i : place; \
        best = size > best ? size : best; \
    }
#if PIVOTING
#define FIND_PIVOT(s, k) { \
        CLA_REAL best = cla_lane_abs1(d[s][k]); \
        int place = k; \
        CLA_UNROLL3(BLOCK, FIND_ROW, s, k) \
        columns_next[s * COLUMN + BLOCK * LANES] = cla_lane_of_int(place); \
        if (place != k) { CLA_UNROLL3(BLOCK, SWAP_ROW, d, k) } \
    }
#define SWAP_ROWS(p, k) { \
        const int place = cla_lane_to_int(column[BLOCK * LANES]); \
        if (place != (k)) { \
            const ulong both = (order >> 4 * (k) ^ order >> 4 * place) & 15; \
            order ^= both << 4 * (k) | both << 4 * place; \
            CLA_UNROLL3(BLOCK, SWAP_ROW, f, (k)) \
            if (c != p) { CLA_UNROLL3(BLOCK, SWAP_ROW, d, (k)) } \
        } \
    }
#define TARGET(j) ((int)(order >> 4 * (c * COLUMNS + j) & 15) - c * COLUMNS)
#define FENCES (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE) /* a team stores columns that other members have loaded */
#else
#define FIND_PIVOT(s, k)
#define SWAP_ROWS(p, k)
#define TARGET(j) j
#if BULK
#define FENCES (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE) /* one has copied what others store */
#else
#define FENCES CLK_LOCAL_MEM_FENCE
#endif
#endif

/* Step k of Gauss-Jordan elimination: x <- x + m x[k], where x[k] counts as 0 in the sum, for all columns x of f, and for
 * those of d in work-items that do not have the pivot. The multiples m are in local memory. */
#define APPLY(p, s) \
    if ((p) * COLUMNS + s < BLOCK) { \
        CLA_LOCAL const cla_lane *column = columns + s * COLUMN; \
        cla_lane d_k[COLUMNS], f_k[COLUMNS]; \
        SWAP_ROWS(p, ((p) * COLUMNS + s)) \
        CLA_UNROLL3(COLUMNS, TAKE_ROW, (c == p), ((p) * COLUMNS + s)) \
        CLA_UNROLL for (int i = 0; i < BLOCK; i++) { \
            const cla_lane m = column[i * LANES]; \
            CLA_UNROLL for (int j = 0; j < COLUMNS; j++) { \
                d[j][i] = cla_lane_fma(m, d_k[j], d[j][i]); \
                f[j][i] = cla_lane_fma(m, f_k[j], f[j][i]); \
            } \
        } \
    }
#define TAKE_ROW(done, k, j) \
    if (c * COLUMNS > (k)) { SEE(here.factor, d[j][k]) } \
    if (!last) { SEE(here.factor, f[j][k]) } \
    f_k[j] = f[j][k]; \
    f[j][k] = cla_lane_real(0); \
    d_k[j] = done ? cla_lane_real(0) : d[j][k]; \
    d[j][k] = done ? d[j][k] : cla_lane_real(0);

/* Column s of this work-item has the pivot: it becomes the multiples m, which go to local memory, and are applied to the
 * other columns of this work-item. */
#define PIVOT_STEP(p, s) \
    if ((p) * COLUMNS + s < BLOCK) { \
        const int k = (p) * COLUMNS + s; \
        FIND_PIVOT(s, k) \
        const cla_lane r = CLA_MINUS(cla_pivot(TREATED(d[s][k]), k, &zero)); \
        d[s][k] = cla_lane_real(-1); \
        CLA_UNROLL for (int i = 0; i < BLOCK; i++) { \
            d[s][i] = cla_lane_mul(d[s][i], r); \
            columns_next[s * COLUMN + i * LANES] = d[s][i]; \
        } \
        CLA_UNROLL3(COLUMNS, PIVOT_COLUMN, s, ((p) * COLUMNS + s)) \
    }
#define PIVOT_COLUMN(s, k, j) \
    if (j != s) { \
        const cla_lane t = d[j][k]; \
        if (j > s) { SEE(here.factor, t) } \
        d[j][k] = cla_lane_real(0); \
        CLA_UNROLL for (int i = 0; i < BLOCK; i++) d[j][i] = cla_lane_fma(d[s][i], t, d[j][i]); \
    }

#define PANEL(p) if (c == p) { CLA_UNROLL2(COLUMNS, PIVOT_STEP, p) }
#define TURN_OF_E (COPIES ? 0 : (TEAM - 1) / 2)
#if BULK
#define AT_E(i, k) IN_BLOCK(staged_e, i, k)
#else
#define AT_E(i, k) e_part[(i * BLOCK + k) * LANES]
#endif

/* Copies for the elimination of a block row and what follows it: its lower, and diag and upper of the next one. */
#define FETCH_BLOCKS(number) \
    if ((number) < count - 1) { \
        const long from = (number) * (long)CLA_SLOT; \
        const uint bytes = CLA_SLOT * sizeof(CLA_REAL), more = (number) < count - 2; \
        CLA_LOCAL CLA_REAL *to = staged + (number) % DEPTH * 3 * CLA_SLOT; \
        cla_arrivals_expect(arrivals + (number) % DEPTH, (2 + more) * bytes); \
        cla_bulk_copy(to, lower + from, bytes, arrivals + (number) % DEPTH); \
        cla_bulk_copy(to + CLA_SLOT, diag + from + CLA_SLOT, bytes, arrivals + (number) % DEPTH); \
        if (more) cla_bulk_copy(to + 2 * CLA_SLOT, upper + from + CLA_SLOT, bytes, arrivals + (number) % DEPTH); \
    }

__kernel CLA_GROUP_OF(LANES * TEAM) void factor_team(long lanes, __global const CLA_REAL *restrict lower,
                                                     __global CLA_REAL *restrict diag,
                                                     __global CLA_REAL *restrict upper,
                                                     __global const long *restrict offset, __global int *info
                                                     WATCHED_ARGUMENTS)
{
    CLA_ROOM_OF(cla_lane, room, LOCAL_LANES);
#if COPIES
    CLA_LOCAL cla_lane *n_copied = room + 2 * COLUMNS * COLUMN + SQUARE + get_local_id(0);
    CLA_LOCAL cla_lane *f_copied = n_copied + (BY_TURNS ? 0 : OWN_COLUMNS);
#endif
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l, p = q / CLA_VLEN;
    const int count = offset[p + 1] - offset[p];
    const long first = q % CLA_VLEN + c * COLUMNS * (CLA_PARTS * CLA_VLEN);
    lower += (offset[p] - p) * CLA_SLOT;
    upper += (offset[p] - p) * CLA_SLOT;
    diag += offset[p] * CLA_SLOT;
    __global const CLA_REAL *own_lower = lower + first;
    __global CLA_REAL *own_upper = upper + first, *own_diag = diag + first;
    CLA_LOCAL cla_lane *shared = room + l, *columns, *columns_next = shared;
    CLA_LOCAL cla_lane *e_part = room + 2 * COLUMNS * COLUMN + l;
#if BULK
    CLA_LOCAL CLA_REAL *staged = (CLA_LOCAL CLA_REAL *)(room + 2 * COLUMNS * COLUMN);
    __local cla_arrivals arrivals[DEPTH];
    if (get_local_id(0) == 0) {
        for (int i = 0; i < DEPTH; i++) cla_arrivals_ready(arrivals + i);
        for (int i = 0; i < DEPTH - 1; i++) { FETCH_BLOCKS(i) }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    cla_lane d[COLUMNS][BLOCK], e[COLUMNS][BLOCK], f[COLUMNS][BLOCK], n[COLUMNS][BLOCK], f_next[COLUMNS][BLOCK];
    int turn = 0; /* which half of column_part is written next */
    int bad = 0;
    long at = 0, at_diag = 0;
#if WATCH
    __local cla_watch watches[TEAM * LANES];
    cla_watch w = CLA_WATCH_NOTHING;
    CLA_REAL norm = 0, threshold = 0; /* the largest element of own columns of a diagonal block; of the block */
    rows += offset[p] * CLA_VLEN + q % CLA_VLEN;
#endif
    OWN(LOAD_D)
    OWN(SEE_D)
    OWN(CLEAR)
    if (count > 1) {
        if (BY_TURNS) { COPIED(COPY_F) }
        else { OWN(LOAD_F) }
        if (IN_ADVANCE) { OWN(LOAD_E) }
        at_diag = CLA_SLOT;
        if (IN_ADVANCE) { OWN(LOAD_N) }
        if (!BY_TURNS) { COPIED(COPY_N) }
        at_diag = 0;
    }
    if (!BY_TURNS && count > 2) {
        at = CLA_SLOT;
        if (AHEAD == 2) { OWN(LOAD_NEXT_F) }
        COPIED(COPY_F)
        at = 0;
    }
    for (int row = 0; row < count; row++) {
        const int last = row == count - 1;
        int zero = 0;
#if WATCH
        const long block_row = rows[row * (long)CLA_VLEN]; /* -1 for padding, which nobody watches */
        cla_watch here = w;
        here.largest = fmax(here.largest, norm);
        if (!last) { OWN(SEE_F) }
#endif
#if WATCH && (PERTURB || SHIFT)
        OWN(SEE_D)
        watches[c * LANES + l].largest = norm;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < TEAM; i++) norm = fmax(norm, watches[i * LANES + l].largest);
        threshold = cla_threshold(norm, EPSILON, LEAST);
#endif
#if PIVOTING
        ulong order = 0xFEDCBA9876543210;
#endif
        PANEL(0)
#define STEP 0
#include "thomas_step.h"
#include "thomas_step.h"
#undef STEP
        if (zero && bad == 0) bad = row * BLOCK + zero;
        OWN(STORE_D)
#if WATCH
        if (block_row >= 0) w = here;
#endif
        if (last) break;
        OWN(STORE_F)
        at_diag += CLA_SLOT;
#if BULK
        CLA_LOCAL const CLA_REAL *staged_e = staged + row % DEPTH * 3 * CLA_SLOT + l;
        CLA_LOCAL const CLA_REAL *staged_n = staged_e + CLA_SLOT, *staged_f = staged_n + CLA_SLOT;
        OWN(STAGED_N)
#endif
        if (AHEAD == 0) { OWN(LOAD_N) }
        COPIED(TAKE_N)
        if (BY_TURNS && row + 2 < count) {
            at += CLA_SLOT;
            COPIED(COPY_F)
            at -= CLA_SLOT;
        }
#if WATCH
        norm = 0;
        OWN(SEE_N)
#endif
        CLA_UNROLL for (int k = 0; k < BLOCK; k++)
            CLA_UNROLL for (int i = 0; i < BLOCK; i++) {
                const cla_lane m = AT_E(i, k);
                CLA_UNROLL for (int j = 0; j < COLUMNS; j++) n[j][i] = cla_lane_fnma(m, f[j][k], n[j][i]);
            }
        OWN(NEXT_D)
        at += CLA_SLOT;
#if BULK
        if (row + 2 < count) { OWN(STAGED_F) }
        continue;
#endif
        if (!BY_TURNS && row + 2 < count) {
            at_diag += CLA_SLOT;
            if (IN_ADVANCE) { OWN(LOAD_N) }
            COPIED(COPY_N)
            at_diag -= CLA_SLOT;
            if (AHEAD < 2) { OWN(LOAD_F) }
            COPIED(TAKE_F)
        }
        if (AHEAD == 2) { OWN(NEXT_F) }
        if (!BY_TURNS && row + 3 < count) {
            at += CLA_SLOT;
            if (AHEAD == 2) { OWN(LOAD_NEXT_F) }
            COPIED(COPY_F)
            at -= CLA_SLOT;
        }
    }
    CLA_LOCAL int *zeros = (CLA_LOCAL int *)(columns_next - l); /* nobody reads there any more */
    zeros[c * LANES + l] = bad;
#if WATCH
    watches[c * LANES + l] = w;
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    if (c == 0) {
        for (int i = 1; i < TEAM; i++) {
            const int other = zeros[i * LANES + l];
            if (other && (bad == 0 || other < bad)) bad = other;
#if WATCH
            const cla_watch also = watches[i * LANES + l];
            w.smallest = fmin(w.smallest, also.smallest);
            w.largest = fmax(w.largest, also.largest);
            w.factor = fmax(w.factor, also.factor);
            w.replaced += also.replaced;
#endif
        }
        info[q] = bad;
#if WATCH
        cla_watch_store(w, watched, p, q % CLA_VLEN);
#endif
    }
}
#endif
