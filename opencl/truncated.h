/* Least squares with bidiagonal matrices whose rank may not be full: singular values up to a limit count as zeros.
 *
 * Steps of the implicit QR algorithm of singular.h go on until all of these have come off, and leave their rotations from the
 * right: PLANES, and those of MOST_TURNS steps, at most.
 */
#include "below.h"
#include "singular.h"

#define PLANES (4 * N)
#define MOST_TURNS 24
#define CLA_RARELY static __attribute__((noinline)) /* for the sake of registers of what comes often */
#define HALVINGS 8 /* that find the largest singular value well enough */

/* What came off: how many singular values up to the limit, -1 if not all of them did; the first element of the diagonal
 * that is one by itself; steps, and where each begins and ends; rotations of the last step from the left, and of all from the
 * right. */
typedef struct {
    int missing, first, turns;
    uchar begin[MOST_TURNS], end[MOST_TURNS];
    cla_plane left[N], right[PLANES];
    CLA_REAL limit, numbers[2 * N + 1]; /* the diagonal of what is left, and what is beside it, times 2^CLA_EXPONENT */
} cla_split;

/* Of B with this diagonal, whose singular values are `most` at most, and what is beside it; zeros are those up to rcond
 * times the largest. Rotations from the left turn right-hand sides y, of R columns. */
CLA_RARELY void cla_split_off(CLA_LOCAL cla_split *split, CLA_LOCAL const CLA_REAL *diagonal,
                              CLA_LOCAL const CLA_REAL *beside, CLA_REAL most, CLA_REAL rcond, CLA_LOCAL cla_lane *y)
{
    CLA_LOCAL CLA_REAL *d = split->numbers, *e = d + N;
    CLA_REAL low = 0, high = most * (1 + 8 * CLA_ROUNDING);
    CLA_ROLLED for (int k = 0; k < N; k++) {
        low = fmax(low, fmax(fabs(diagonal[k]), fabs(beside[k])));
        d[k] = diagonal[k] * diagonal[k];
        e[k] = beside[k] * beside[k];
    }
    CLA_ROLLED for (int halving = 0; halving < HALVINGS; halving++) {
        const CLA_REAL middle = (low + high) / 2;
        if (cla_below(N, d, middle) == N) high = middle;
        else low = middle;
    }
    const int missing = cla_below(N, d, rcond * high);
    const CLA_REAL limit = cla_lane_re(cla_scaled(cla_lane_real(rcond * high), CLA_EXPONENT));
    CLA_ROLLED for (int k = 0; k < N; k++) {
        d[k] = cla_lane_re(cla_scaled(cla_lane_real(diagonal[k]), CLA_EXPONENT));
        e[k] = cla_lane_re(cla_scaled(cla_lane_real(beside[k]), CLA_EXPONENT));
    }
    cla_block block = {0, N - 1, CLA_TRIES * N};
    cla_last_block(&block, d, e, CLA_FLOOR);
    cla_extremes sizes = cla_extremes_of(block, d, e);
    int used = 0, last = N - 1, turns = 0, first = N, found = 0;
    CLA_ROLLED for (int goes_on = missing > 0; goes_on;) {
        const int some = block.begin < block.end, count = block.end - block.begin;
        first = some ? block.end + 1 : 0;
        CLA_ROLLED for (int k = block.end; k < last; k++) e[k] = 0;
        last = block.end;
        found = 0;
        CLA_ROLLED for (int k = first; k < N; k++) found += fabs(d[k]) <= limit;
        goes_on = some && found < missing && turns < MOST_TURNS && used + count <= PLANES;
        if (goes_on) {
            split->begin[turns] = block.begin;
            split->end[turns] = block.end;
            turns++;
            cla_singular_step(&block, &sizes, d, e, split->left, split->right + (used - block.begin));
            CLA_ROLLED for (int j = 0; j < R; j++) cla_turn_row(y + j, R, split->left, split->begin[turns - 1], split->end[turns - 1]);
            used += count;
        }
    }
    split->missing = found == missing ? missing : -1;
    split->first = first;
    split->turns = turns;
    split->limit = limit;
}

/* A column y <- the solution of the smallest norm */
CLA_RARELY void cla_solve_split(CLA_LOCAL const cla_split *split, CLA_LOCAL cla_lane *y)
{
    CLA_LOCAL const CLA_REAL *d = split->numbers, *e = d + N;
    int used = 0;
    CLA_ROLLED for (int turn = 0; turn < split->turns; turn++) used += split->end[turn] - split->begin[turn];
    cla_lane x = cla_lane_real(0);
    CLA_ROLLED for (int k = N - 1; k >= 0; k--) {
        const int none = k >= split->first && fabs(d[k]) <= split->limit;
        x = cla_lane_select(none, cla_lane_real(0), (y[k * R] - x * e[k]) * (1 / (none ? 1 : d[k])));
        y[k * R] = x;
    }
    CLA_ROLLED for (int k = 0; k < N; k++) y[k * R] = cla_scaled(y[k * R], CLA_EXPONENT);
    CLA_ROLLED for (int turn = split->turns - 1; turn >= 0; turn--) {
        const int begin = split->begin[turn], end = split->end[turn];
        used -= end - begin;
        CLA_ROLLED for (int k = end - 1; k >= begin; k--) {
            const cla_plane plane = split->right[used + k - begin];
            const cla_lane first = y[k * R], second = y[(k + 1) * R];
            y[k * R] = first * plane.x - second * plane.y;
            y[(k + 1) * R] = first * plane.y + second * plane.x;
        }
    }
}
