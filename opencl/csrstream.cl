/* csrstream: products with sparse matrices of one pattern, and solutions with the factors of csrilu.cl and csrlu.cl, in
 * rounds (rounds.h): `above` is the place of a value, which is on its way from memory for some rounds before. Vectors are
 * in local memory; sums stay in registers between a round that takes one and the one that gives it back.
 */
#include "rounds.h"

#ifndef LANES
#define LANES 4
#define MEMBERS 2
#define ROWS 3
#define COLUMNS 3
#define VRS CLA_VLEN /* from value to value */
#define ORDINARY 0 /* 1: vectors are in ordinary arrays, else in packs */
#define ALONG 0 /* with that, 1: neighbours read along the matrices, else along the rows */
#define AHEAD 2 /* rounds that values are on their way, a divisor of their number */
#endif
#ifndef TRANS
#define TRANS 0 /* 2: values are conjugated */
#endif
#ifndef PRODUCT
#define PRODUCT 0 /* else solutions */
#endif
#define GROUP (LANES * MEMBERS)
#define PITCH (LANES + ORDINARY)

#define LIST(round) list[min(round, end) * MEMBERS + member]
#define VALUE(words) cla_matrix_load(values, cla_round_above(words) * (long)(VRS))
#define FIRST(u) \
    uint2 now##u = LIST(u), next##u = LIST(AHEAD + u); \
    cla_lane value##u = VALUE(now##u);
#define READ(u) const cla_lane later##u = VALUE(next##u);
#define DO(u) \
    const int what##u = cla_round_what(now##u), own##u = cla_round_own(now##u) * PITCH + l; \
    if (what##u & CLA_TAKE) sum = PRODUCT ? cla_lane_real(0) : result[own##u]; \
    if (what##u & CLA_SUBTRACT) { \
        const cla_lane x = vector[cla_round_left(now##u) * PITCH + l]; \
        sum = PRODUCT ? cla_lane_fma(value##u, x, sum) : cla_lane_fnma(value##u, x, sum); \
    } \
    if (what##u & CLA_PIVOT) sum = cla_lane_mul(sum, value##u); \
    if (what##u & CLA_GIVE) result[own##u] = sum; \
    if (!PRODUCT && (what##u & CLA_SYNC)) barrier(CLK_LOCAL_MEM_FENCE);
#define NEXT(u) \
    now##u = next##u; \
    value##u = later##u; \
    next##u = LIST(round + 2 * AHEAD + u);

/* With `order`, row k of local vectors is row order[k] of X and Y. */
__kernel CLA_GROUP_OF(GROUP) void csrstream(long nm, long nrhs, long rounds, __global const uint2 *list,
                                            __global const int *order, CLA_VIEW(const CLA_REAL *a, v),
                                            CLA_VIEW(const CLA_REAL *x, x), CLA_VIEW(CLA_REAL *y, y))
{
    CLA_ROOM_OF(cla_lane, vector, (COLUMNS + PRODUCT * ROWS) * PITCH);
    CLA_LOCAL cla_lane *result = vector + PRODUCT * COLUMNS * PITCH;
    const int t = get_local_id(0), l = t % LANES, member = t / LANES, end = rounds - 1;
    const long q0 = get_group_id(0) * (long)LANES;
    const cla_matrix values = CLA_MATRIX(a, v, q0 + l, TRANS == 2);
    for (int column = 0; column < nrhs; column++) {
        CLA_UNROLL1(AHEAD, FIRST)
#if ORDINARY
        for (int e = t; e < COLUMNS * LANES; e += GROUP) {
            const int lane = ALONG ? e % LANES : e / COLUMNS, i = ALONG ? e / LANES : e % COLUMNS;
            const long place = x0 + min(q0 + lane, nm - 1) * xps + (order ? order[i] : i) * xrs + column * xcs;
            vector[i * PITCH + lane] = cla_lane_load_apart(x, place, 1);
        }
#else
        const cla_matrix X = CLA_MATRIX(x, x, q0 + l, 0);
        const cla_matrix Y = CLA_MATRIX(y, y, q0 + l, 0);
        CLA_UNROLL_SOME
        for (int i = member; i < COLUMNS; i += MEMBERS) vector[i * PITCH + l] = cla_get(X, order ? order[i] : i, column);
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        cla_lane sum = cla_lane_real(0);
        CLA_ROLLED
        for (int round = 0; round <= end; round += AHEAD) {
            CLA_UNROLL1(AHEAD, READ)
            CLA_UNROLL1(AHEAD, DO)
            CLA_UNROLL1(AHEAD, NEXT)
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#if ORDINARY
        CLA_UNROLL_SOME
        for (int e = t; e < ROWS * LANES; e += GROUP) {
            const int lane = e / ROWS, i = e % ROWS;
            const long place = y0 + (q0 + lane) * yps + (order ? order[i] : i) * yrs + column * ycs;
            if (q0 + lane < nm) cla_lane_store_apart(y, place, 1, result[i * PITCH + lane]);
        }
#else
        CLA_UNROLL_SOME
        for (int i = member; i < ROWS; i += MEMBERS) cla_set(Y, order ? order[i] : i, column, result[i * PITCH + l]);
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
