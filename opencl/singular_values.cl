/* Singular values of stacks of bidiagonal matrices that grid_bidiagonal.cl has left: a work-item a matrix.
 *
 * Arguments and macros are those of grid_bidiagonal.cl; MATRICES, the work-items of a work-group.
 */
#define CHAINED 1
#define VECTORS 0
#define MEMBERS 1
#ifndef MATRICES
#define MATRICES 2
#endif
#define TEAMS MATRICES
#define IN_GLOBAL 0
#define CLA_WARPS 2 /* no warps */
#include "singular.h"

__kernel CLA_GROUP_OF(MATRICES) void singular_values(long nm, long told, __global int *failed OPERANDS, RESULTS CLA_NUMBERS)
{
    __local CLA_REAL diagonals[MATRICES * ODD(2 * N)];
    const long first = get_group_id(0) * (long)MATRICES, q = first + get_local_id(0), q_read = min(q, nm - 1);
    CLA_LOCAL CLA_REAL *d = diagonals + get_local_id(0) * ODD(2 * N), *e = d + N;
    for (int k = 0; k < 2 * N; k++)
        d[k] = cla_lane_re(cla_scaled(cla_lane_real(numbers[CLA_BETWEEN(N, q_read, k)]), CLA_EXPONENT));
    const CLA_REAL power = numbers[CLA_BETWEEN(N, q_read, 2 * N)];
    const int known = !isnan(power);
    cla_block block = {0, known ? N - 1 : 0, CLA_TRIES * N};
    cla_last_block(&block, d, e, CLA_FLOOR);
    cla_extremes sizes = cla_extremes_of(block, d, e);
    while (block.begin < block.end && block.tries > 0) cla_singular_step(&block, &sizes, d, e, 0, 0);
    CLA_REAL largest = 0;
    for (int k = 0; k < N; k++) largest = cla_larger(largest, cla_lane_real(d[k]));
    const int bad = !known || block.begin != block.end || !(largest < INFINITY);
#if OUTCOME == 3
    const CLA_REAL limit = largest * cla_lane_re(CLA_NUMBER_AT(RCOND, RCOND0 + q_read * RCONDstep));
    int count = 0;
    for (int k = 0; k < N; k++) count += fabs(d[k]) > limit;
    if (q < nm) ranks[q] = bad ? 0 : count;
#else
    CLA_REPORT
#endif
    for (int k = 0; k < N; k++)
        e[bad ? k : cla_rank(d, N, k, 1)] =
            bad ? NAN : cla_lane_re(cla_scaled(cla_lane_real(fabs(d[k])), -(int)power - CLA_EXPONENT));
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = get_local_id(0); k < MATRICES * N; k += MATRICES)
        if (first + k / N < nm) S[first * N + k] = (TARGET)diagonals[k / N * ODD(2 * N) + N + k % N];
}
