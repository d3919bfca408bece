/* csrlu: the LU factors of csrilu.cl, in tiles of SIZE x SIZE numbers that a work-group keeps in local memory while it goes
 * through rounds (rounds.h). A tile stays in the registers of a member from one that takes it to one that gives it back.
 */
#include "async_copy.h"
#include "elimination.h"
#include "rounds.h"

#ifndef SIZE
#define SIZE 2
#define LANES 4
#define MEMBERS 2
#define NUMBERS 20 /* in tiles of one matrix */
#define ARS CLA_VLEN /* from value to value, */
#define FRS CLA_VLEN /* and of the factors */
#endif
#define AHEAD 4 /* places that are on their way to a work-item at a time, */
#define SOON 3 /* and rounds */
#define PITCH (SIZE * SIZE + (SIZE % 2 == 0)) /* from tile to tile: odd, so that neighbours are in other banks */
#define NONE 0xffff /* in place of a value: zero, */
#define UNIT 0xfffe /* and one */
#define TILE(k) (numbers + (k) * (PITCH * LANES) + l)
#define IN(tile, i, j) tile[((i) * SIZE + (j)) * LANES]

/* Numbers from memory to where they are in tiles, and back. `sources` has both places, in the halves of a word. */
#define FIND(u) \
    const int e##u = e + u * MEMBERS; \
    const uint source##u = e##u < count ? sources[e##u] : 0; \
    const int from##u = source##u >> 16;
#define READ(u) \
    if (e##u < count) { \
        CLA_LOCAL cla_lane *to = numbers + (source##u & 0xffff) * LANES + l; \
        if (from##u < UNIT) cla_copy_begin(to, A.p, from##u * (long)(ARS)); \
        else *to = cla_lane_real(from##u == UNIT); \
    }
#define FIND_FACTOR(u) const int e##u = e + u * MEMBERS, place##u = e##u < nnz ? places[e##u] : 0;
#define WRITE(u) \
    if (e##u < nnz) cla_matrix_store(F, e##u * (long)(FRS), numbers[place##u * LANES + l]);

/* x <- x - a b */
CLA_INLINE void subtract(cla_lane x[SIZE][SIZE], CLA_LOCAL const cla_lane *a, CLA_LOCAL const cla_lane *b)
{
    CLA_UNROLL for (int k = 0; k < SIZE; k++) {
        cla_lane row[SIZE];
        CLA_UNROLL for (int j = 0; j < SIZE; j++) row[j] = IN(b, k, j);
        CLA_UNROLL for (int i = 0; i < SIZE; i++) {
            const cla_lane multiple = IN(a, i, k);
            CLA_UNROLL for (int j = 0; j < SIZE; j++) x[i][j] = cla_lane_fnma(multiple, row[j], x[i][j]);
        }
    }
}

/* x <- its L and U, with the reciprocals of pivots. Returns 0 or 1 + the index of the first that is zero. */
CLA_INLINE int factor(cla_lane x[SIZE][SIZE])
{
    int info = 0;
    CLA_UNROLL for (int k = 0; k < SIZE; k++) {
        x[k][k] = cla_pivot(x[k][k], k, &info);
        CLA_UNROLL for (int i = k + 1; i < SIZE; i++) {
            x[i][k] = cla_lane_mul(x[i][k], x[k][k]);
            CLA_UNROLL for (int j = k + 1; j < SIZE; j++) x[i][j] = cla_lane_fnma(x[i][k], x[k][j], x[i][j]);
        }
    }
    return info;
}

/* x <- x U^-1 with the U of such a tile */
CLA_INLINE void divide(cla_lane x[SIZE][SIZE], CLA_LOCAL const cla_lane *u)
{
    CLA_UNROLL for (int j = 0; j < SIZE; j++) {
        CLA_UNROLL for (int k = 0; k < j; k++) {
            const cla_lane above = IN(u, k, j);
            CLA_UNROLL for (int i = 0; i < SIZE; i++) x[i][j] = cla_lane_fnma(x[i][k], above, x[i][j]);
        }
        const cla_lane inverse = IN(u, j, j);
        CLA_UNROLL for (int i = 0; i < SIZE; i++) x[i][j] = cla_lane_mul(x[i][j], inverse);
    }
}

/* x <- L^-1 x with its L */
CLA_INLINE void substitute(cla_lane x[SIZE][SIZE], CLA_LOCAL const cla_lane *lower)
{
    CLA_UNROLL for (int i = 1; i < SIZE; i++)
        CLA_UNROLL for (int k = 0; k < i; k++) {
            const cla_lane left = IN(lower, i, k);
            CLA_UNROLL for (int j = 0; j < SIZE; j++) x[i][j] = cla_lane_fnma(left, x[k][j], x[i][j]);
        }
}

/* Phases of rounds begin at `starts`. Of a pivot, `left` is the number of its first row. */
__kernel CLA_GROUP_OF(LANES * MEMBERS) void csrlu_batch(
    long phases, long rounds, long count, long nnz, __global const int *starts, __global const uint2 *list,
    __global const uint *sources, __global const int *places, CLA_VIEW(const CLA_REAL *values, v),
    CLA_VIEW(CLA_REAL *factors, f), __global int *info)
{
    CLA_ROOM_OF(cla_lane, numbers, NUMBERS * LANES);
    __local int least[LANES];
    const int l = get_local_id(0) % LANES, member = get_local_id(0) / LANES, end = rounds - 1;
    const long q = get_group_id(0) * (long)LANES + l;
    const cla_matrix A = CLA_MATRIX(values, v, q, 0);
    const cla_matrix F = CLA_MATRIX(factors, f, q, 0);
    if (member == 0) least[l] = INT_MAX;
    for (int e = member; e < count; e += AHEAD * MEMBERS) {
        CLA_UNROLL1(AHEAD, FIND)
        CLA_UNROLL1(AHEAD, READ)
    }
    cla_copies_wait();
    cla_lane x[SIZE][SIZE];
    uint2 next[SOON];
    CLA_UNROLL for (int u = 0; u < SOON; u++) next[u] = list[min(u, end) * MEMBERS + member];
    int round = 0;
    for (int phase = 1; phase <= phases; phase++) {
        const int last = starts[phase];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (; round < last; round++) {
            const uint2 words = next[0];
            CLA_UNROLL for (int u = 1; u < SOON; u++) next[u - 1] = next[u];
            next[SOON - 1] = list[min(round + SOON, end) * MEMBERS + member];
            const int what = cla_round_what(words);
            CLA_LOCAL cla_lane *own = TILE(cla_round_own(words));
            CLA_LOCAL const cla_lane *left = TILE(cla_round_left(words)), *above = TILE(cla_round_above(words));
            if (what & CLA_TAKE) {
                CLA_UNROLL for (int i = 0; i < SIZE; i++)
                    CLA_UNROLL for (int j = 0; j < SIZE; j++) x[i][j] = IN(own, i, j);
            }
            if (what & CLA_SUBTRACT) subtract(x, left, above);
            if (what & CLA_PIVOT) {
                const int found = factor(x);
                if (found) atomic_min(least + l, cla_round_left(words) + found);
            }
            if (what & CLA_LEFT) divide(x, above);
            if (what & CLA_ABOVE) substitute(x, above);
            if (what & CLA_GIVE) {
                CLA_UNROLL for (int i = 0; i < SIZE; i++)
                    CLA_UNROLL for (int j = 0; j < SIZE; j++) IN(own, i, j) = x[i][j];
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = member; e < nnz; e += AHEAD * MEMBERS) {
        CLA_UNROLL1(AHEAD, FIND_FACTOR)
        CLA_UNROLL1(AHEAD, WRITE)
    }
    if (member == 0) info[q] = least[l] == INT_MAX ? 0 : least[l];
}
