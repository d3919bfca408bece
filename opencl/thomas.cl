/* Lines of blocks whose size, BLOCK, is known when this is compiled: Thomas' algorithm with blocks and their inverses.
 *
 * factor   diag[k] <- inv(diag[k]), upper[k] <- diag[k] upper[k], then diag[k + 1] <- diag[k + 1] - lower[k] upper[k]
 * solve    w[k] = diag[k] (rhs[k] - lower[k - 1] w[k - 1]) down the line, x[k] = w[k] - upper[k] x[k + 1] up
 *
 * Where blocktridiag.cl stores factors, this stores inverses: lower stays as it was and is not written, and the rows of
 * a block of a solve don't wait for each other. Slots, offset and rows are as in blocktridiag.cl. Define one of
 * FACTOR_LINE, FACTOR_TEAM, SOLVE_TEAM, and BLOCK, or DESCRIBE_LINES. Tunables:
 *
 * FACTOR_LINE  one work-item a line, blocks in its registers
 *   GROUP      work-items of a work-group
 *   AHEAD      block rows that are loaded in advance, to registers
 * FACTOR_TEAM  one work-group for LANES lines of a pack
 *   LANES      lines of a work-group, a divisor of V
 *   COLUMNS    columns of a work-item: neighbours, which are eliminated at once
 *   TEAM       work-items of a line, BLOCK / COLUMNS
 *   AHEAD      0: blocks are loaded where they are needed; 1: those of lower and diag a row in advance; 2: upper too
 *   WATCH      1: pivots are watched as by watched_lu.cl, which says what PERTURB, SHIFT, PIVOTING, EPSILON, LEAST are
 * SOLVE_TEAM   one work-group for LANES lines of a pack, one work-item for a row of a block
 *   LANES      lines of a work-group, a divisor of V
 *   RHS        right-hand sides that are carried through a line together
 *   AHEAD      block rows that are loaded in advance down the line
 *   AHEAD_UP   the same up the line
 *   REGULAR    1: `rows` is what describe_lines found, which is far less to read
 * and CLA_STORED, as what the blocks are stored that it reads; see stored.h.
 */
#include "elimination.h"
#include "stored.h"

#ifdef DESCRIBE_LINES
/* Start, distance and length of lines whose block rows are a constant distance apart. *irregular <- 1 if one is not
 * such a line, else it is left alone. */
__kernel void describe_lines(long lanes, __global const long *restrict offset, __global const long *restrict rows,
                             __global long *restrict lines, __global int *irregular)
{
    const long q = get_global_id(0), p = q / CLA_VLEN;
    if (q >= lanes) return;
    const long count = offset[p + 1] - offset[p];
    rows += offset[p] * CLA_VLEN + q % CLA_VLEN;
    const long start = rows[0], stride = count > 1 ? rows[CLA_VLEN] - start : 0;
    long length = 0;
    while (length < count && rows[length * CLA_VLEN] >= 0) length++;
    for (long k = 0; k < count; k++)
        if (rows[k * CLA_VLEN] != (k < length ? start + k * stride : -1)) *irregular = 1;
    lines[3 * q] = start;
    lines[3 * q + 1] = stride;
    lines[3 * q + 2] = length;
}
#endif

#define ELEMENT(i, j) (((i) * BLOCK + (j)) * (CLA_PARTS * CLA_VLEN))
#define SLOT (BLOCK * BLOCK * CLA_PARTS * CLA_VLEN) /* CLA_REAL elements of the blocks of a pack */

#ifdef FACTOR_LINE
__kernel CLA_GROUP_OF(GROUP) void factor_line(long lanes, __global const CLA_REAL *restrict lower,
                                              __global CLA_REAL *restrict diag, __global CLA_REAL *restrict upper,
                                              __global const long *restrict offset, __global int *info)
{
    const long q = get_global_id(0), p = q / CLA_VLEN;
    if (q >= lanes) return;
    const int count = offset[p + 1] - offset[p];
    diag += offset[p] * SLOT + q % CLA_VLEN;
    lower += (offset[p] - p) * SLOT + q % CLA_VLEN;
    upper += (offset[p] - p) * SLOT + q % CLA_VLEN;
    long bad = 0;
    cla_lane d[BLOCK][BLOCK], e[AHEAD + 1][BLOCK][BLOCK], f[AHEAD + 1][BLOCK][BLOCK], n[AHEAD + 1][BLOCK][BLOCK];
#define EACH CLA_UNROLL for (int i = 0; i < BLOCK; i++) CLA_UNROLL for (int j = 0; j < BLOCK; j++)
#define FETCH(u, row) { /* couplings of block row `row` and the next, and that one's diagonal block */ \
        const long at = min(row, count - 2) * (long)SLOT; \
        EACH f[u][i][j] = cla_lane_load(upper, at + ELEMENT(i, j)); \
        EACH e[u][i][j] = cla_lane_load(lower, at + ELEMENT(i, j)); \
        EACH n[u][i][j] = cla_lane_load(diag, at + SLOT + ELEMENT(i, j)); \
    }
    EACH d[i][j] = cla_lane_load(diag, ELEMENT(i, j));
    if (count > 1) CLA_UNROLL for (int u = 0; u < AHEAD; u++) FETCH(u, u)
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
            if (row < count) EACH cla_lane_store(diag, row * (long)SLOT + ELEMENT(i, j), d[i][j]);
            if (row < count - 1) EACH cla_lane_store(upper, row * (long)SLOT + ELEMENT(i, j), f[u][i][j]);
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
#define COLUMN ((BLOCK + PIVOTING) * LANES) /* of a column in local memory, and the row that its pivot came from */

/* Own columns: F(j, i) for element i of column j, or for element i of the transposed column: row j */
#define OWN(F) CLA_UNROLL3(BLOCK, OWN_ELEMENTS, F, 0)
#define OWN_ELEMENTS(F, unused, i) CLA_UNROLL4(COLUMNS, F, 0, 0, i)

#define LOAD_D(a, b, i, j) d[j][i] = cla_lane_load(own_diag, at_diag + ELEMENT(i, j));
#define LOAD_F(a, b, i, j) f[j][i] = cla_lane_load(own_upper, at + ELEMENT(i, j));
#define LOAD_NEXT_F(a, b, i, j) f_next[j][i] = cla_lane_load(own_upper, at + ELEMENT(i, j));
#define LOAD_E(a, b, i, j) e[j][i] = cla_lane_load(own_lower, at + ELEMENT(i, j));
#define LOAD_N(a, b, i, j) n[j][i] = cla_lane_load(own_diag, at_diag + ELEMENT(i, j));
#define STORE_D(a, b, i, j) cla_lane_store(own_diag, at_diag + ELEMENT(i, TARGET(j)), d[j][i]);
#define STORE_F(a, b, i, j) cla_lane_store(own_upper, at + ELEMENT(i, j), f[j][i]);
#define SHARE_E(a, b, i, j) { \
        e_part[(i * BLOCK + c * COLUMNS + j) * LANES] = e[j][i]; \
        SEE(here.largest, e[j][i]) \
    }
#define SEE_F(a, b, i, j) SEE(here.largest, f[j][i])
#define SEE_D(a, b, i, j) SEE(norm, d[j][i])
#define SEE_N(a, b, i, j) SEE(norm, n[j][i])
#define CLEAR(a, b, i, j) f[j][i] = cla_lane_real(0);
#define NEXT_D(a, b, i, j) d[j][i] = n[j][i];
#define NEXT_F(a, b, i, j) f[j][i] = f_next[j][i];

/* Rows are swapped by selects, since registers have no index. `order` has which row came to be row i in 4 bits, for all
 * i: column i of the inverse is that column of what is stored. */
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
#else
#define FIND_PIVOT(s, k)
#define SWAP_ROWS(p, k)
#define TARGET(j) j
#endif

/* Step k of Gauss-Jordan elimination: x <- x + m x[k], with 0 for x[k] in the sum, for the columns x of f and, but for
 * the work-item that has the pivot, of d. m is in local memory. */
#define APPLY(p, s) { \
        CLA_LOCAL const cla_lane *column = columns + s * COLUMN; \
        cla_lane d_k[COLUMNS], f_k[COLUMNS]; \
        SWAP_ROWS(p, ((p) * COLUMNS + s)) \
        CLA_UNROLL3(COLUMNS, TAKE_ROW, (c == p), ((p) * COLUMNS + s)) \
        CLA_UNROLL3(BLOCK, APPLY_ROW, p, s) \
    }
#define TAKE_ROW(done, k, j) \
    if (c * COLUMNS > (k)) { SEE(here.factor, d[j][k]) } \
    if (!last) { SEE(here.factor, f[j][k]) } \
    f_k[j] = f[j][k]; \
    f[j][k] = cla_lane_real(0); \
    d_k[j] = done ? cla_lane_real(0) : d[j][k]; \
    d[j][k] = done ? d[j][k] : cla_lane_real(0);
#define APPLY_ROW(p, s, i) { \
        const cla_lane m = column[i * LANES]; \
        CLA_UNROLL4(COLUMNS, APPLY_TO, p, s, i) \
    }
#define APPLY_TO(p, s, i, j) \
    d[j][i] = cla_lane_fma(m, d_k[j], d[j][i]); \
    f[j][i] = cla_lane_fma(m, f_k[j], f[j][i]);

/* Column s of this work-item, the pivot's: turned into m, written to local memory, and applied to its other columns. */
#define PIVOT_STEP(p, s) { \
        const int k = (p) * COLUMNS + s; \
        FIND_PIVOT(s, k) \
        const cla_lane r = -cla_pivot(TREATED(d[s][k]), k, &zero); \
        d[s][k] = cla_lane_real(-1); \
        CLA_UNROLL3(BLOCK, PIVOT_ROW, s, 0) \
        CLA_UNROLL3(COLUMNS, PIVOT_COLUMN, s, ((p) * COLUMNS + s)) \
    }
#define PIVOT_ROW(s, unused, i) \
    d[s][i] = cla_lane_mul(d[s][i], r); \
    columns_next[s * COLUMN + i * LANES] = d[s][i];
#define PIVOT_COLUMN(s, k, j) \
    if (j != s) { \
        const cla_lane t = d[j][k]; \
        if (j > s) { SEE(here.factor, t) } \
        d[j][k] = cla_lane_real(0); \
        CLA_UNROLL4(BLOCK, PIVOT_UPDATE, s, j, 0) \
    }
#define PIVOT_UPDATE(s, j, unused, i) d[j][i] = cla_lane_fma(d[s][i], t, d[j][i]);

#define PANEL(p) if (c == p) { CLA_UNROLL2(COLUMNS, PIVOT_STEP, p) }
#define STEP(p) { \
        columns = columns_next; \
        columns_next = shared + (turn ^= COLUMNS * COLUMN); \
        barrier(CLK_LOCAL_MEM_FENCE); \
        if (p == (TEAM - 1) / 2 && !last) { /* past the last row's products, and a barrier before this one's */ \
            if (AHEAD == 0) { OWN(LOAD_E) } \
            OWN(SHARE_E) \
            if (AHEAD > 0 && row + 2 < count) { at += SLOT; OWN(LOAD_E) at -= SLOT; } \
        } \
        CLA_UNROLL2(COLUMNS, APPLY, p) \
        if (p + 1 < TEAM) { PANEL(p + 1) } \
    }

#define PRODUCT_COLUMN(k, unused, i, j) n[j][i] = cla_lane_fnma(m, f[j][k], n[j][i]);
#define PRODUCT_ROW(k, unused, i) { \
        const cla_lane m = e_part[(i * BLOCK + k) * LANES]; \
        CLA_UNROLL4(COLUMNS, PRODUCT_COLUMN, k, 0, i) \
    }
#define PRODUCT(k) CLA_UNROLL3(BLOCK, PRODUCT_ROW, k, 0)

__kernel CLA_GROUP_OF(LANES * TEAM) void factor_team(long lanes, __global const CLA_REAL *restrict lower,
                                                     __global CLA_REAL *restrict diag,
                                                     __global CLA_REAL *restrict upper,
                                                     __global const long *restrict offset, __global int *info
                                                     WATCHED_ARGUMENTS)
{
    __local cla_lane column_part[2 * COLUMNS * COLUMN], e_part_of_all[BLOCK * BLOCK * LANES];
    __local long zeros[TEAM * LANES];
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES;
    const long q = get_group_id(0) * (long)LANES + l, p = q / CLA_VLEN;
    const int count = offset[p + 1] - offset[p];
    const long first = q % CLA_VLEN + c * COLUMNS * (CLA_PARTS * CLA_VLEN);
    __global const CLA_REAL *own_lower = lower + (offset[p] - p) * SLOT + first;
    __global CLA_REAL *own_upper = upper + (offset[p] - p) * SLOT + first, *own_diag = diag + offset[p] * SLOT + first;
    CLA_LOCAL cla_lane *shared = column_part + l, *columns, *columns_next = shared, *e_part = e_part_of_all + l;
    cla_lane d[COLUMNS][BLOCK], e[COLUMNS][BLOCK], f[COLUMNS][BLOCK], n[COLUMNS][BLOCK], f_next[COLUMNS][BLOCK];
    int turn = 0; /* which half of column_part is written next */
    long bad = 0, at = 0, at_diag = 0;
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
        OWN(LOAD_F)
        if (AHEAD > 0) { OWN(LOAD_E) at_diag = SLOT; OWN(LOAD_N) at_diag = 0; }
    }
    if (AHEAD > 1 && count > 2) { at = SLOT; OWN(LOAD_NEXT_F) at = 0; }
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
        CLA_UNROLL1(TEAM, STEP)
        if (zero && bad == 0) bad = (long)row * BLOCK + zero;
        OWN(STORE_D)
#if WATCH
        if (block_row >= 0) w = here;
#endif
        if (last) break;
        OWN(STORE_F)
        at_diag += SLOT;
        if (AHEAD == 0) { OWN(LOAD_N) }
#if WATCH
        norm = 0;
        OWN(SEE_N)
#endif
        CLA_UNROLL1(BLOCK, PRODUCT)
        OWN(NEXT_D)
        at += SLOT;
        if (row + 2 < count) {
            if (AHEAD > 0) { at_diag += SLOT; OWN(LOAD_N) at_diag -= SLOT; }
            if (AHEAD < 2) { OWN(LOAD_F) }
        }
        if (AHEAD > 1) { OWN(NEXT_F) }
        if (AHEAD > 1 && row + 3 < count) { at += SLOT; OWN(LOAD_NEXT_F) at -= SLOT; }
    }
    zeros[c * LANES + l] = bad;
#if WATCH
    watches[c * LANES + l] = w;
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    if (c == 0) {
        for (int i = 1; i < TEAM; i++) {
            const long other = zeros[i * LANES + l];
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

#ifdef SOLVE_TEAM
#define ENTRIES (BLOCK * RHS) /* of a block row of the right-hand sides */
#define LINE (LANES + 1)      /* distance of two of them in local memory, odd for the sake of its banks */
#define ROWS_IN_LOCAL (2 * (AHEAD > AHEAD_UP ? AHEAD : AHEAD_UP))

__kernel CLA_GROUP_OF(LANES * BLOCK) void solve_team(long lanes, long nrhs, __global const cla_stored *restrict lower,
                                                     __global const cla_stored *restrict diag,
                                                     __global const cla_stored *restrict upper,
                                                     __global const long *restrict offset,
                                                     __global const long *restrict rows,
                                                     __global const CLA_REAL *rhs, long r0,
                                                     __global CLA_REAL *x, long x0, __global CLA_REAL *restrict work)
{
    __local cla_lane vectors[ROWS_IN_LOCAL * ENTRIES * LINE], solved[ENTRIES * LINE];
    const int t = get_local_id(0), l = t % LANES, c = t / LANES; /* computes row c of the blocks of lane l */
    const long q = get_group_id(0) * (long)LANES, p = q / CLA_VLEN;
    const int count = offset[p + 1] - offset[p];
    const long first = CLA_GROUP_LANE(q) + l + c * ELEMENT(1, 0);
    diag += offset[p] * SLOT + first;
    lower += (offset[p] - p) * SLOT + first;
    upper += (offset[p] - p) * SLOT + first;
#if REGULAR
    __local long start[LANES], stride[LANES], length[LANES];
    if (t < LANES) {
        start[t] = rows[3 * (q + t)];
        stride[t] = rows[3 * (q + t) + 1];
        length[t] = rows[3 * (q + t) + 2];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    rows += offset[p] * CLA_VLEN + CLA_GROUP_LANE(q);
#endif
    const int h0 = get_group_id(1) * RHS, some = min((long)RHS, nrhs - h0); /* this group's right-hand sides */
    rhs += r0 + h0 * CLA_PARTS;
    x += x0 + h0 * CLA_PARTS;
    work += ((get_group_id(1) * offset[lanes / CLA_VLEN] + offset[p]) * ENTRIES + c * RHS) * (CLA_PARTS * CLA_VLEN);
    work += CLA_GROUP_LANE(q) + l;

#define EACH(h) CLA_UNROLL for (int h = 0; h < RHS; h++)
#define EACH_COLUMN CLA_UNROLL for (int k = 0; k < BLOCK; k++)
#define FETCH(a, P, u, row) EACH_COLUMN a[u][k] = cla_stored_load(P, (row) * (long)SLOT + ELEMENT(0, k));
/* Entry h of row k of a block row in local memory: `row` counts the 2 * AHEAD (or AHEAD_UP) that are there. */
#define VECTOR(row, k, h) vectors[(((row) * BLOCK + (k)) * RHS + (h)) * LINE + l]
#define SOLVED(k, h) solved[((k) * RHS + (h)) * LINE + l]

/* Vectors move between local memory and ordinary arrays, where rows are neighbours, `chunk` block rows at a time.
 * EACH_MOVED: row i of block row k of a chunk, lane v, for every n that is this work-item's. */
#define EACH_MOVED(chunk) \
    CLA_UNROLL for (int n = 0, e = t, v, k, i; n < chunk; n++, e += LANES * BLOCK) \
        if (v = e / (chunk * BLOCK), k = e / BLOCK % chunk, i = e % BLOCK, 1)
#define MOVED(turn, chunk, h) vectors[((((turn) * chunk + k) * BLOCK + i) * RHS + (h)) * LINE + v]
#define ENTRY(at) (((at) * BLOCK + i) * nrhs * CLA_PARTS)
#if REGULAR
#define ROW_AT(row, v) (row < length[v] ? start[v] + row * stride[v] : -1)
#else
#define ROW_AT(row, v) rows[(row) * (long)CLA_VLEN + v]
#endif
#define FIND(row) EACH_MOVED(AHEAD) at[n] = ROW_AT(min((row) + k, count - 1), v);
#define TAKE \
    EACH_MOVED(AHEAD) EACH(h) coming[n][h] = at[n] >= 0 && h < some \
        ? cla_lane_load_apart(rhs, ENTRY(at[n]) + h * CLA_PARTS, 1) : cla_lane_real(0);
#define GIVE(turn) EACH_MOVED(AHEAD) EACH(h) MOVED(turn, AHEAD, h) = coming[n][h];

    cla_lane coming[AHEAD][RHS];
    cla_stored_lane m[AHEAD][BLOCK], e[AHEAD][BLOCK];
    long at[AHEAD];
    CLA_UNROLL for (int u = 0; u < AHEAD; u++) {
        FETCH(m, diag, u, min(u, count - 1))
        if (count > 1) FETCH(e, lower, u, max(min(u, count - 1) - 1, 0))
        else EACH_COLUMN e[u][k] = cla_stored_of(0, 0);
    }
    FIND(0)
    TAKE
    FIND(AHEAD)
    GIVE(0)
    TAKE
    FIND(2 * AHEAD)
    EACH(h) SOLVED(c, h) = cla_lane_real(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    int turn = 0;
    for (int row0 = 0; row0 < count; row0 += AHEAD, turn ^= 1)
        CLA_UNROLL for (int u = 0; u < AHEAD; u++) {
            const int row = row0 + u, next = min(row + AHEAD, count - 1), here = turn * AHEAD + u;
            cla_lane y[RHS], w[RHS]; /* two sums, which don't wait for each other */
            EACH(h) { y[h] = VECTOR(here, c, h); w[h] = cla_lane_real(0); }
            EACH_COLUMN EACH(h) {
                if (k % 2) w[h] = cla_lane_fnma(cla_widened(e[u][k]), SOLVED(k, h), w[h]);
                else y[h] = cla_lane_fnma(cla_widened(e[u][k]), SOLVED(k, h), y[h]);
            }
            EACH(h) { VECTOR(here, c, h) = y[h] + w[h]; y[h] = w[h] = cla_lane_real(0); }
            if (count > 1) FETCH(e, lower, u, max(next - 1, 0))
            barrier(CLK_LOCAL_MEM_FENCE);
            if (u == 0) {
                GIVE(turn ^ 1)
                TAKE
                FIND(row0 + 3 * AHEAD)
            }
            EACH_COLUMN EACH(h) {
                if (k % 2) w[h] = cla_lane_fma(cla_widened(m[u][k]), VECTOR(here, k, h), w[h]);
                else y[h] = cla_lane_fma(cla_widened(m[u][k]), VECTOR(here, k, h), y[h]);
            }
            FETCH(m, diag, u, next)
            EACH(h) {
                w[h] += y[h];
                SOLVED(c, h) = w[h];
                if (row < count) cla_lane_store(work, (row * (long)ENTRIES + h) * (CLA_PARTS * CLA_VLEN), w[h]);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }

    cla_stored_lane f[AHEAD_UP][BLOCK];
    cla_lane w[AHEAD_UP][RHS];
    long to[AHEAD_UP];
#define FETCH_UP(u, row) \
    EACH(h) w[u][h] = cla_lane_load(work, ((row) * (long)ENTRIES + h) * (CLA_PARTS * CLA_VLEN)); \
    if (count > 1) FETCH(f, upper, u, min(row, count - 2)) else EACH_COLUMN f[u][k] = cla_stored_of(0, 0);
    CLA_UNROLL for (int u = 0; u < AHEAD_UP; u++) { FETCH_UP(u, max(count - 1 - u, 0)) }
    EACH(h) VECTOR(2 * AHEAD_UP - 1, c, h) = cla_lane_real(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    turn = 0;
    for (int row0 = count - 1; row0 >= 0; row0 -= AHEAD_UP, turn ^= 1) {
        EACH_MOVED(AHEAD_UP) to[n] = ROW_AT(max(row0 - k, 0), v);
        CLA_UNROLL for (int u = 0; u < AHEAD_UP; u++) {
            const int here = turn * AHEAD_UP + u;
            const int below = u ? here - 1 : (turn ^ 1) * AHEAD_UP + AHEAD_UP - 1;
            cla_lane y[RHS], z[RHS];
            EACH(h) { y[h] = w[u][h]; z[h] = cla_lane_real(0); }
            EACH_COLUMN EACH(h) {
                if (k % 2) z[h] = cla_lane_fnma(cla_widened(f[u][k]), VECTOR(below, k, h), z[h]);
                else y[h] = cla_lane_fnma(cla_widened(f[u][k]), VECTOR(below, k, h), y[h]);
            }
            EACH(h) VECTOR(here, c, h) = y[h] + z[h];
            FETCH_UP(u, max(row0 - u - AHEAD_UP, 0))
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        EACH_MOVED(AHEAD_UP) EACH(h)
            if (row0 - k >= 0 && to[n] >= 0 && h < some)
                cla_lane_store_apart(x, ENTRY(to[n]) + h * CLA_PARTS, 1, MOVED(turn, AHEAD_UP, h));
    }
}
#endif
