/* Singular values and vectors of stacks of ordinary matrices in one pass, by teams as spectral.h has them.
 *
 * Arguments are those of ordinary.h, macros those and the ones of spectral.h. Define M and N, the rows and columns of A;
 * WIDE, 1 if M < N: its conjugate transpose is factored then; what is made, by OUTCOME, see svd_results.h; and where
 * that is U, S and Vh, their P columns and Q rows. Where ranks are known, since least squares are CHAINED, only matrices
 * whose rank is not full are to be done.
 *
 * W = U B V^H, of A or A^H, as LAPACK's gebd2, with reflectors in the columns and rows of W; then V, and U in place of W;
 * then the implicit QR algorithm of singular.h.
 */
#include "singular.h"

#ifndef M
#define M N
#endif
#ifndef WIDE
#define WIDE 0
#endif
#ifndef P
#define P (WIDE ? M : N)
#define Q P
#endif

#define TALL (WIDE ? N : M)
#define THIN (WIDE ? M : N)
#define WIDTH (WIDE ? Q : P) /* of U, of W */
#define LINE LINE_OF(VECTORS ? WIDTH : THIN)
#define ROWS (VECTORS ? TALL + THIN : TALL) /* of W, and of V below it */
#define TURNED_LINE LINE_OF(ROWS) /* from column to column of what is turned, in global memory */
#define MATRIX TEAM_OF(ROWS * LINE + (IN_GLOBAL && VECTORS ? WIDTH * TURNED_LINE : 0))
#define TURNED(W, i, j) (W)[IN_GLOBAL ? (j) * TURNED_LINE + (i) : (i) * LINE + (j)]
#define SETS (VECTORS ? 4 : 1) /* of planes: for U and V, for this step and the next */
#define DEFICIENT (OUTCOME == 3 && CHAINED)
#if DEFICIENT
#define IS_TO_DO(q) (ranks[q] + numbers[CLA_BETWEEN(THIN, q, 2 * THIN + 1)] != THIN)
#define WANTED(some) (first + (some) < nm && wanted[some])
#else
#define WANTED(some) (first + (some) < nm)
#endif

/* Reflect element (0, 0) of A and the m numbers under it, and n columns behind; A has conjugates of W's rows as columns
 * where it is a transpose. Returns beta. */
CLA_INLINE CLA_REAL eliminate(CLA_LOCAL CLA_REAL *room, int t, int m, int n, cla_part A, CLA_LOCAL cla_lane *tau)
{
    const cla_part v = cla_part_from(A, 1, 0);
    const cla_coefficients h = cla_reflector_of_team(room, t, cla_part_get(A, 0, 0), m, v);
    MEET
    cla_reflect_by_team(t, m, n, 0, v, cla_lane_conj(h.tau), cla_part_from(A, 0, 1), cla_part_from(A, 1, 1));
    if (t == 0) *tau = h.tau;
    MEET
    return h.beta;
}

CLA_INLINE void reduce(CLA_LOCAL CLA_REAL *room, int t, CLA_SPACE cla_lane *W, CLA_LOCAL CLA_REAL *d,
                       CLA_LOCAL CLA_REAL *e, CLA_LOCAL cla_lane *left, CLA_LOCAL cla_lane *right)
{
    CLA_ROLLED for (int k = 0; k < THIN; k++) { /* the last from the right has nothing to do, nor is it used */
        const int next = min(k + 1, THIN - 1), rows = TALL - k - 1;
        const CLA_REAL diagonal = eliminate(room, t, rows, THIN - k - 1, cla_part_at(W + k * LINE + k, LINE, 1, 0), left + k);
        const CLA_REAL beside = eliminate(room, t, THIN - k - 2, k < THIN - 1 ? rows : 0,
                                          cla_part_at(W + k * LINE + next, 1, LINE, 1), right + k);
        if (t == 0) {
            d[k] = diagonal;
            e[k] = beside;
        }
    }
}

/* V <- the product of reflectors from the right, and then W <- that of those from the left, with WIDTH columns */
CLA_INLINE void expand(int t, CLA_SPACE cla_lane *W, CLA_LOCAL const cla_lane *left, CLA_LOCAL const cla_lane *right)
{
    CLA_SPACE cla_lane *V = W + TALL * LINE;
    for (int i = 0; i < THIN; i++)
        for (int j = t; j < THIN; j += MEMBERS) V[i * LINE + j] = cla_lane_real(i == j);
    MEET
    CLA_ROLLED for (int k = THIN - 2; k >= 0; k--) {
        const int m = THIN - k - 2;
        const cla_part v = cla_part_at(W + k * LINE + k + 2, 1, LINE, 1);
        const cla_part top = cla_part_at(V + (k + 1) * LINE + k + 1, LINE, 1, 0);
        cla_reflect_by_team(t, m, m + 1, 0, v, right[k], top, cla_part_from(top, 1, 0));
        MEET
    }
    for (int i = 0; i < TALL; i++)
        for (int j = THIN + t; j < WIDTH; j += MEMBERS) W[i * LINE + j] = cla_lane_real(i == j);
    MEET
    CLA_ROLLED for (int k = THIN - 1; k >= 0; k--) {
        const int m = TALL - k - 1;
        const cla_part top = cla_part_at(W + k * LINE + k, LINE, 1, 0), v = cla_part_from(top, 1, 0);
        cla_reflect_by_team(t, m, WIDTH - k - 1, 1, v, left[k], cla_part_from(top, 0, 1), cla_part_from(v, 0, 1));
        MEET
        cla_first_of_reflector(t, m, v, left[k], top, v);
        MEET
    }
}

/* Element (i, k) of singular vectors of matrix `some` of a group: of A from the left or from the right */
#define TURNED_OF(some) (IN_GLOBAL ? W : matrices + (some) * MATRIX)
#define LEFT(some, i, k) TURNED(TURNED_OF(some), WIDE ? TALL + (i) : (i), k)
#define INVERSES(some) (diagonals + (some) * ODD(2 * THIN) + THIN)
#define B_AT(some, i, j) CLA_NUMBER_AT(B, B0 + min(first + (some), nm - 1) * Bstep + (i) * BRS + (j) * BCS)
#define RIGHT(some, i, k) TURNED(TURNED_OF(some), WIDE ? (i) : TALL + (i), k)

__kernel CLA_GROUP_OF(GROUP) void team_svd(long nm, long told, __global int *failed OPERANDS, RESULTS CLA_NUMBERS CLA_MATRICES)
{
    CLA_SPECTRAL_ROOM(MATRIX)
    __local cla_plane all_planes[TEAMS * ODD(SETS * THIN)];
    __local CLA_REAL diagonals[TEAMS * ODD(2 * THIN)];
    CLA_STATES(states)
    __local int orders[TEAMS * THIN];
#if OUTCOME == 3
    __local cla_lane products[TEAMS * THIN * R]; /* of left vectors and B */
    __local CLA_REAL squares[TEAMS * M * R]; /* of elements of B - A X */
#endif
    const int team = get_local_id(0) / MEMBERS, t = get_local_id(0) % MEMBERS;
    const long first = CLA_FIRST, q = first + team;
    CLA_SPACE cla_lane *W = matrices + team * MATRIX;
    CLA_LOCAL cla_plane *planes = all_planes + team * ODD(SETS * THIN);
    CLA_LOCAL CLA_REAL *d = diagonals + team * ODD(2 * THIN), *e = d + THIN;
    CLA_LOCAL int *order = orders + team * THIN;
#if DEFICIENT
    __local int wanted[TEAMS];
    int any = 0;
    for (int k = 0; k < TEAMS; k++) any |= IS_TO_DO(min(first + k, nm - 1));
    if (t == 0) wanted[team] = IS_TO_DO(min(q, nm - 1));
    for (; any; any = 0) { /* a condition: of these PoCL copies all that follows */
#endif

    for (int k = get_local_id(0); k < TEAMS * M * N; k += GROUP) {
        const int i = k / N % M, j = k % N;
        const cla_lane x = CLA_NUMBER_AT(A, A0 + min(first + k / (M * N), nm - 1) * Astep + i * ARS + j * ACS);
        matrices[k / (M * N) * MATRIX + (WIDE ? j * LINE + i : i * LINE + j)] = WIDE ? cla_lane_conj(x) : x;
    }
    GATHER
    const int power = cla_scale_by_team(room, t, TALL, THIN, W, LINE, CLA_EXPONENT), known = power != CLA_UNKNOWN;
    CLA_LOCAL cla_lane *taus = (CLA_LOCAL cla_lane *)planes; /* which are for later */
    reduce(room, t, W, d, e, taus, taus + (VECTORS ? THIN : 0));
    MEET
    if (VECTORS) expand(t, W, taus, taus + THIN);
#if IN_GLOBAL && VECTORS
    MEET
    CLA_SPACE cla_lane *straight = W;
    W += ROWS * LINE;
    for (int k = t; k < ROWS * WIDTH; k += MEMBERS) TURNED(W, k / WIDTH, k % WIDTH) = straight[k / WIDTH * LINE + k % WIDTH];
#endif

    if (t == 0) CLA_BEFORE(states, team) = known;
    GATHER
    const int chief = get_local_id(0) < TEAMS, own = chief ? get_local_id(0) : 0;
    CLA_LOCAL CLA_REAL *own_d = diagonals + own * ODD(2 * THIN), *own_e = own_d + THIN;
    cla_block block = {0, CLA_BEFORE(states, own) ? THIN - 1 : 0, CLA_TRIES * THIN};
    cla_extremes sizes = {0, 0};
    if (chief) {
        cla_last_block(&block, own_d, own_e, CLA_FLOOR);
        sizes = cla_extremes_of(block, own_d, own_e);
    }
    for (int turn = 0, goes_on = 1; goes_on; turn++) {
        const int place = VECTORS ? turn % 2 * 2 * THIN : 0;
        if (chief) {
            const int acts = block.begin < block.end && block.tries > 0;
            CLA_WINDOW(states, turn, own)[0] = block.begin;
            CLA_WINDOW(states, turn, own)[1] = acts ? block.end : block.begin;
            CLA_LOCAL cla_plane *now = all_planes + own * ODD(SETS * THIN) + place;
            if (acts) cla_singular_step(&block, &sizes, own_d, own_e, now, now + THIN);
        }
        GATHER
        const int begin = CLA_WINDOW(states, turn, team)[0], end = CLA_WINDOW(states, turn, team)[1];
        goes_on = cla_goes_on(states, turn);
        if (VECTORS && begin < end)
            for (int i = t < CHIEFS ? ROWS : t - CHIEFS; i < ROWS; i += MEMBERS - CHIEFS) {
                CLA_LOCAL cla_plane *now = planes + place + (i < TALL ? 0 : THIN);
                cla_turn_row(&TURNED(W, i, 0), IN_GLOBAL ? TURNED_LINE : 1, now, begin, end);
            }
    }
    if (chief) CLA_BEFORE(states, own) = block.begin == block.end;
    GATHER
    CLA_REAL largest = 0;
    for (int j = t; j < THIN; j += MEMBERS) largest = cla_larger(largest, cla_lane_real(d[j]));
    largest = cla_largest_of_team(room, largest);
    const int bad = !known || !CLA_BEFORE(states, team) || !(largest < INFINITY);
    if (t == 0) CLA_REPORT
#if OUTCOME >= 2
    const CLA_REAL limit = largest * cla_lane_re(CLA_NUMBER_AT(RCOND, RCOND0 + min(q, nm - 1) * RCONDstep));
    int count = 0; /* the rank */
    for (int j = 0; j < THIN; j++) count += fabs(d[j]) > limit;
#endif
    for (int j = t; j < THIN; j += MEMBERS) {
        const CLA_REAL x = cla_lane_re(cla_scaled(cla_lane_real(fabs(d[j])), known ? -power : 0));
        const int rank = bad ? j : cla_rank(d, THIN, j, 1);
        order[rank] = j;
#if OUTCOME != 2
        if (WANTED(team)) S[q * THIN + rank] = (TARGET)(bad ? NAN : x);
#endif
#if OUTCOME >= 2
        e[j] = fabs(d[j]) > limit ? copysign(1 / x, d[j]) : 0;
#endif
    }
    if (t == 0) CLA_AFTER(states, team) = bad;
    GATHER
#if OUTCOME == 0
    for (int k = get_local_id(0); k < TEAMS * M * P; k += GROUP) {
        const int some = k / (M * P), i = k / P % M, j = k % P, bad = CLA_AFTER(states, some);
        const int place = j < THIN ? orders[some * THIN + j] : j;
        cla_lane x = LEFT(some, i, place);
        if (WIDE && diagonals[some * ODD(2 * THIN) + place] < 0) x = CLA_MINUS(x);
        if (first + some < nm) cla_put(U, first * (M * P) + k, CLA_CHECKED(x));
    }
    for (int k = get_local_id(0); k < TEAMS * Q * N; k += GROUP) {
        const int some = k / (Q * N), i = k / N % Q, j = k % N, bad = CLA_AFTER(states, some);
        const int place = i < THIN ? orders[some * THIN + i] : i;
        cla_lane x = cla_lane_conj(RIGHT(some, j, place));
        if (!WIDE && diagonals[some * ODD(2 * THIN) + place] < 0) x = CLA_MINUS(x);
        if (first + some < nm) cla_put(Vh, first * (Q * N) + k, CLA_CHECKED(x));
    }
#elif OUTCOME == 2
    for (int k = get_local_id(0); k < TEAMS * N * M; k += GROUP) {
        const int some = k / (N * M), i = k / M % N, j = k % M, bad = CLA_AFTER(states, some);
        cla_lane x = cla_lane_real(0);
        for (int s = 0; s < THIN; s++)
            x = cla_lane_fma(RIGHT(some, i, s) * (INVERSES(some))[s], cla_lane_conj(LEFT(some, j, s)), x);
        if (first + some < nm) cla_put(X, first * (N * M) + k, CLA_CHECKED(x));
    }
#elif OUTCOME == 3
    for (int k = get_local_id(0); k < TEAMS * THIN * R; k += GROUP) {
        const int some = k / (THIN * R), s = k / R % THIN, j = k % R;
        cla_lane x = cla_lane_real(0);
        for (int i = 0; i < M; i++) x = cla_lane_fma(cla_lane_conj(LEFT(some, i, s)), B_AT(some, i, j), x);
        products[k] = x;
    }
    GATHER
    for (int k = get_local_id(0); k < (M > N ? TEAMS * M * R : 0); k += GROUP) {
        const int some = k / (M * R), i = k / R % M, j = k % R;
        cla_lane x = B_AT(some, i, j);
        for (int s = 0; s < THIN; s++) x = cla_lane_fnma(LEFT(some, i, s), products[(some * THIN + s) * R + j], x);
        squares[k] = cla_squared(x);
    }
    GATHER
    for (int j = t; j < R; j += MEMBERS) {
        CLA_REAL sum = 0;
        for (int i = 0; i < (M > N ? M : 0); i++) sum += squares[(team * M + i) * R + j];
        if (WANTED(team)) residuals[q * R + j] = (TARGET)(bad || count != N ? NAN : sum);
    }
    if (t == 0 && WANTED(team)) ranks[q] = bad ? 0 : count;
    for (int k = get_local_id(0); k < TEAMS * N * R; k += GROUP) {
        const int some = k / (N * R), i = k / R % N, j = k % R, bad = CLA_AFTER(states, some);
        cla_lane x = cla_lane_real(0);
        for (int s = 0; s < THIN; s++)
            x = cla_lane_fma(RIGHT(some, i, s) * (INVERSES(some))[s], products[(some * THIN + s) * R + j], x);
        if (WANTED(some)) cla_put(X, first * (N * R) + k, CLA_CHECKED(x));
    }
#endif
#if DEFICIENT
    }
#endif
}
