/* Bidiagonal matrices of stacks of ordinary ones, U^H A V = B, and solutions of least squares where A has full rank: a team of
 * work-items a matrix, all of it in registers.
 *
 * Arguments are those of ordinary.h, macros those and the ones of svd_results.h and grid.h: M >= N; R, the columns of
 * right-hand sides, if there are any, beside those of A. WIDE, 1 if what is factored is the conjugate transpose of A.
 * numbers: see CLA_BETWEEN; the diagonals are of A times a power of 2, whose elements are 1 or about that.
 *
 * A step reflects a column and then a row. Right-hand sides take part in the former, so that x = V B^-1 U^H b needs
 * neither U nor V. Norms of the inverse of B say whether the rank is full for sure; if not, truncated.h counts what is up to
 * the limit, and `numbers` tells of how many of these x is free, or -1 where it is anything.
 */
#define CHAINED 1
#include "svd_results.h"
#if OUTCOME == 3
#define HELD (N + R)
#endif
#include "grid_reflectors.h"
#if OUTCOME == 3
#define IN_GLOBAL 0
#include "truncated.h"
#else
#include "jacobi.h"
#include "team_sums.h"
#endif

#ifndef WIDE
#define WIDE 0
#endif
#ifndef K
#define K N
#endif
#define ROWS_TOO
#define ALONG 1
#define LINES_OF(k) 0
#define A_AT(i, j) CLA_NUMBER_AT(A, A0 + q_read * Astep + (i) * ARS + (j) * ACS)
#define B_AT(i, j) CLA_NUMBER_AT(B, B0 + q_read * Bstep + (i) * BRS + (j) * BCS)
#define GET_A(i, j) (WIDE ? cla_lane_conj(A_AT(j, i)) : A_AT(i, j))
#if OUTCOME == 3
#define GET(i, j) ((j) < N ? GET_A(i, j) : B_AT(i, (j) - N))
#else
#define GET GET_A
#endif
#define KEEP(k, h) diagonal[team * N + (k)] = h.beta;
#define KEEP_ROW(k, h) \
    beside[team * N + (k)] = (k) + 1 < N ? h.beta : 0; \
    taus[team * N + (k)] = h.tau * cla_add_square(h.inverse, 0); \
    tops[team * N + (k)] = h.top;

/* The first N rows of right-hand sides in local memory, as solutions begin */
#define TAKE_RIGHT_HAND_SIDES \
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) \
        CLA_UNROLL for (int v = FIRST_OF_B; v < OWN_COLUMNS; v++) { \
            const int i = u * P + p, j = v * Q + c - N; \
            if (i < N && j >= 0 && j < R) own_solutions[i * R + j] = a[u][v]; \
        }

__kernel CLA_GROUP_OF(MEMBERS * TEAMS) void grid_bidiagonal(long nm, long told, __global int *failed OPERANDS, RESULTS CLA_NUMBERS)
{
    __local cla_lane lines[TEAMS * ROOM] __attribute__((aligned(16))), taus[TEAMS * N], tops[TEAMS * N];
    __local CLA_REAL diagonal[TEAMS * N], beside[TEAMS * N], room[TEAMS * MEMBERS];
    CLA_GRID_SUMS(OWN_COLUMNS + 1)
    CLA_GRID_SUMS_ACROSS(OWN_ROWS + 1)
    CLA_GRID_HEAD
    cla_lane a[OWN_ROWS][OWN_COLUMNS];
    CLA_GRID_READ(a, M, HELD, 1, GET)
    CLA_REAL largest = 0, largest_of_b = 0;
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) {
            const int of_b = v >= FIRST_OF_B && IS_OF_B(v);
            largest = cla_larger(largest, cla_lane_select(of_b, cla_lane_real(0), a[u][v]));
            largest_of_b = cla_larger(largest_of_b, cla_lane_select(of_b, a[u][v], cla_lane_real(0)));
        }
    largest = cla_largest_of_team(room, largest);
    largest_of_b = OUTCOME == 3 ? cla_largest_of_team(room, largest_of_b) : 0;
    const int known = largest < INFINITY, power = known ? cla_power(largest, 0) : 0;
    const int power_of_b = largest_of_b < INFINITY ? cla_power(largest_of_b, 0) : 0;
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++)
            a[u][v] = cla_scaled(a[u][v], v >= FIRST_OF_B && IS_OF_B(v) ? power_of_b : power);
    if (t == 0) {
        if (q < nm) numbers[CLA_BETWEEN(N, q, 2 * N)] = known ? power : NAN;
    }
#define STEP 0
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#include "grid_qr_step.h"
#undef STEP
    CLA_TOGETHER
    if (q < nm)
        for (int k = t; k < 2 * N; k += MEMBERS)
            numbers[CLA_BETWEEN(N, q, k)] = k < N ? diagonal[team * N + k] : beside[team * N + k - N];
#if OUTCOME == 3
    __local cla_lane solutions[TEAMS * N * R];
    CLA_LOCAL cla_lane *own_solutions = solutions + team * (N * R);
    TAKE_RIGHT_HAND_SIDES
    cla_lane squares[OWN_COLUMNS];
    CLA_UNROLL for (int v = FIRST_OF_B; v < OWN_COLUMNS; v++) {
        CLA_REAL sum = 0;
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
            sum = cla_add_square(cla_lane_select(u * P + p < N, cla_lane_real(0), a[u][v]), sum);
        squares[v] = cla_lane_real(sum);
    }
    CLA_GRID_SUM(squares, FIRST_OF_B, OWN_COLUMNS)
    __local CLA_REAL inverses[TEAMS * N], bounds[TEAMS * 2];
    __local cla_split splits[TEAMS];
    CLA_LOCAL cla_split *split = splits + team;
    CLA_REAL most = 0;
    for (int k = t; k < N; k += MEMBERS) {
        const CLA_REAL x = diagonal[team * N + k], y = beside[team * N + k], z = k ? beside[team * N + k - 1] : 0;
        inverses[team * N + k] = 1 / x;
        most = fmax(most, fabs(x) + fmax(fabs(y), fabs(z)));
    }
    most = cla_largest_of_team(room, most);
    CLA_TOGETHER
    /* solutions, and norms of the inverse of B: by rows and columns, those of the inverse of the matrix of sizes */
    for (int j = t; j < R + 2; j += MEMBERS) {
        const int of_norm = j >= R, down = j == R + 1;
        cla_lane y = cla_lane_real(0);
        CLA_REAL norm = 0;
        CLA_ROLLED for (int step = 0; step < N; step++) {
            const int k = down ? step : N - 1 - step;
            const CLA_REAL off = down ? k ? beside[team * N + k - 1] : 0 : beside[team * N + k], inverse = inverses[team * N + k];
            const cla_lane right = of_norm ? cla_lane_real(1) : own_solutions[k * R + min(j, R - 1)];
            y = (right - y * (of_norm ? CLA_MINUS(fabs(off)) : off)) * (of_norm ? fabs(inverse) : inverse);
            if (of_norm) norm = cla_larger(norm, y);
            else own_solutions[k * R + j] = y;
        }
        if (of_norm) bounds[team * 2 + down] = norm;
    }
    CLA_TOGETHER
    const CLA_REAL rcond = cla_lane_re(CLA_NUMBER_AT(RCOND, RCOND0 + q_read * RCONDstep));
    const CLA_REAL inverse = sqrt(bounds[team * 2]) * sqrt(bounds[team * 2 + 1]);
    const int suspect = known && !(most * rcond * inverse < (CLA_REAL)0.5);
    if (suspect) TAKE_RIGHT_HAND_SIDES
    CLA_TOGETHER
    if (suspect && t == 0)
        cla_split_off(split, diagonal + team * N, beside + team * N, most, rcond, own_solutions);
    CLA_TOGETHER
    const int missing = suspect ? split->missing : 0;
    if (suspect)
        for (int j = t; j < R; j += MEMBERS) cla_solve_split(split, own_solutions + j);
    if (t == 0 && q < nm) numbers[CLA_BETWEEN(N, q, 2 * N + 1)] = missing;
    CLA_UNROLL for (int v = FIRST_OF_B; v < OWN_COLUMNS; v++) {
        const int j = v * Q + c - N;
        if (p == 0 && q < nm && j >= 0 && j < R)
            residuals[q * R + j] = (TARGET)(missing ? NAN : cla_lane_re(cla_scaled(squares[v], -2 * power_of_b)));
    }
    CLA_TOGETHER
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
        CLA_UNROLL for (int v = FIRST_OF_B; v < OWN_COLUMNS; v++) {
            const int i = u * P + p, j = v * Q + c - N;
            if (i < N && j >= 0 && j < R) a[u][v] = own_solutions[i * R + j];
        }
#define STEP 0
#include "grid_reflect_step.h"
#include "grid_reflect_step.h"
#include "grid_reflect_step.h"
#include "grid_reflect_step.h"
#undef STEP
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
        CLA_UNROLL for (int v = FIRST_OF_B; v < OWN_COLUMNS; v++) {
            const int i = u * P + p, j = v * Q + c - N;
            if (q < nm && i < N && j >= 0 && j < R)
                cla_put(X, q * (N * R) + i * R + j, cla_scaled(a[u][v], power - power_of_b));
        }
#endif
}
