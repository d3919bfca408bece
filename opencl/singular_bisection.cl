/* Singular values of stacks of bidiagonal matrices that grid_bidiagonal.cl has left, by bisection: a work-item a value, of
 * which MATRICES matrices are in a work-group.
 *
 * Arguments and macros are those of grid_bidiagonal.cl; MATRICES, of which there are N work-items each.
 */
#define CHAINED 1
#ifndef M
#define M N
#endif
#include "below.h"
#include "jacobi.h"
#include "ordinary.h"
#include "svd_results.h"
#ifndef MATRICES
#define MATRICES 2
#endif
#define LENGTH (2 * N | 1) /* of the numbers of a matrix, of which neighbours are in different banks */
#define SMALLEST (sizeof(CLA_REAL) == 8 ? (CLA_REAL)0x1p-450 : (CLA_REAL)0x1p-40f) /* up to it values are zeros */
#define CLOSE (4 * CLA_ROUNDING) /* ends of an interval, relatively */

__kernel CLA_GROUP_OF(MATRICES * N) void singular_bisection(long nm, long told, __global int *failed OPERANDS, RESULTS CLA_NUMBERS)
{
    __local CLA_REAL all_squares[MATRICES * LENGTH], found[MATRICES * N];
    const int l = get_local_id(0), some = l / N, j = l % N;
    const long first = get_group_id(0) * (long)MATRICES, q = first + some, q_read = min(q, nm - 1);
    CLA_LOCAL CLA_REAL *squares = all_squares + some * LENGTH;
    const CLA_REAL d = numbers[CLA_BETWEEN(N, q_read, j)], e = numbers[CLA_BETWEEN(N, q_read, N + j)];
    const CLA_REAL power = numbers[CLA_BETWEEN(N, q_read, 2 * N)];
    squares[j] = d * d;
    squares[N + j] = e * e;
    barrier(CLK_LOCAL_MEM_FENCE);
    CLA_REAL most = 0;
    for (int k = 0; k < N; k++) most = fmax(most, squares[k] + fmax(squares[N + k], k ? squares[N + k - 1] : 0));
    const int bad = isnan(power) || !(most < INFINITY);
    CLA_REAL low = 0, high = sqrt(2 * most) * (1 + CLOSE);
    for (int goes_on = !bad; goes_on;) {
        const CLA_REAL middle = low > 0 ? (low + high) / 2 : high / 4;
        if (cla_below(N, squares, middle) > N - 1 - j) high = middle;
        else low = middle;
        goes_on = high - low > CLOSE * high && high > SMALLEST;
    }
    found[l] = high > SMALLEST ? (low + high) / 2 : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (j == 0) {
#if OUTCOME == 3
        const CLA_REAL limit = found[l] * cla_lane_re(CLA_NUMBER_AT(RCOND, RCOND0 + q_read * RCONDstep));
        int count = 0;
        for (int k = 0; k < N; k++) count += found[l + k] > limit;
        if (q < nm) ranks[q] = bad ? 0 : count;
#else
        CLA_REPORT
#endif
    }
    if (q < nm) S[q * N + j] = bad ? (TARGET)NAN : (TARGET)cla_lane_re(cla_scaled(cla_lane_real(found[l]), -(int)power));
}
