/* Solutions with lines of blocks that thomas.cl factored, whose size, BLOCK, is known when this is compiled.
 *
 * solve    w[k] = diag[k] (rhs[k] - lower[k - 1] w[k - 1]) down the line, x[k] = w[k] - upper[k] x[k + 1] up
 *
 * Slots, offset and rows are as in blocktridiag.cl. Define SOLVE_TEAM and BLOCK, or DESCRIBE_LINES. Tunables:
 *
 * SOLVE_TEAM   one work-group for LANES lines of a pack, one work-item for a row of a block
 *   LANES      lines of a work-group, a divisor of V
 *   RHS        right-hand sides that are carried through a line together
 *   AHEAD      block rows that are loaded in advance down the line
 *   AHEAD_UP   the same up the line
 *   REGULAR    1: `rows` is what describe_lines found, which is far less to read
 * and CLA_STORED, as what the blocks are stored that it reads; see stored.h.
 */
#include "inverses.h"
#include "stored.h"
#include "unroll.h"

#ifndef BLOCK
#define BLOCK 4
#define LANES 8
#define RHS 1
#define AHEAD 2
#define AHEAD_UP 4
#define REGULAR 1
#endif

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
    const long first = CLA_GROUP_LANE(q) + l + c * CLA_ELEMENT(1, 0);
    diag += offset[p] * CLA_SLOT + first;
    lower += (offset[p] - p) * CLA_SLOT + first;
    upper += (offset[p] - p) * CLA_SLOT + first;
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
#define FETCH(a, P, u, row) EACH_COLUMN a[u][k] = cla_stored_load(P, (row) * (long)CLA_SLOT + CLA_ELEMENT(0, k));
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
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); /* x may be rhs, which others have read */
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
