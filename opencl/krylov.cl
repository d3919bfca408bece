/* What Krylov methods for one large system do with vectors, the rows of an array of `length` real numbers each. Work-
 * groups of GROUP work-items take pieces of the rows in turn; what each of them sums up is added up on the host.
 */
#include "lane.h"

#ifndef GROUP
#define GROUP 64 /* a power of two */
#endif

/* The sum over a work-group, in its first work-item */
CLA_INLINE cla_lane group_sum(CLA_LOCAL cla_lane *room, cla_lane x)
{
    const int i = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    room[i] = x;
    for (int half_way = GROUP / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < half_way) room[i] = room[i] + room[i + half_way];
    }
    return room[i];
}

/* Numbers first to first + n - 1 of all rows <- scale times them */
__kernel void scale_rows(long n, long first, CLA_REAL scale, __global CLA_REAL *W)
{
    for (long i = get_global_id(0); i < n * CLA_PARTS; i += get_global_size(0)) W[first * CLA_PARTS + i] *= scale;
}

/* sums (groups, others, rows) <- row first + k step, conjugate, times one or two neighbouring others; dimension 1 of the
 * range counts k
 */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void dots(long n, long first, long step, long count, long other, long others,
          __global const CLA_REAL *W, __global CLA_REAL *sums)
{
    __local cla_lane room[GROUP];
    const long k = get_global_id(1), row = first + k * step;
    cla_lane a = cla_lane_real(0), b = a;
    for (long i = get_global_id(0); i < n; i += get_global_size(0)) {
        const cla_lane v = cla_lane_conj(cla_lane_load_apart(W, (row * n + i) * CLA_PARTS, 1));
        a = cla_lane_fma(v, cla_lane_load_apart(W, (other * n + i) * CLA_PARTS, 1), a);
        if (others == 2) b = cla_lane_fma(v, cla_lane_load_apart(W, ((other + 1) * n + i) * CLA_PARTS, 1), b);
    }
    const long at = get_group_id(0) * others * count + k;
    a = group_sum(room, a);
    if (get_local_id(0) == 0) cla_lane_store_apart(sums, at * CLA_PARTS, 1, a);
    if (others == 2) {
        b = group_sum(room, b);
        if (get_local_id(0) == 0) cla_lane_store_apart(sums, (at + count) * CLA_PARTS, 1, b);
    }
}

/* `row` <- factors[0] row + sum of factors[1 + k] times row first + k step; sums (groups, 2) <- the square of its norm,
 * and the row `against`, conjugate, times it, unless that is -1. With a scale of zero, what the row held is not read.
 */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void combine(long n, long first, long step, long count, long row, long against, __global const CLA_REAL *factors,
             __global CLA_REAL *W, __global CLA_REAL *sums)
{
    __local cla_lane room[GROUP];
    cla_lane squares = cla_lane_real(0), product = squares;
    const cla_lane scale = cla_lane_load_apart(factors, 0, 1);
    const int is_read = cla_lane_abs1(scale) != 0;
    for (long i = get_global_id(0); i < n; i += get_global_size(0)) {
        const long at = (row * n + i) * CLA_PARTS;
        cla_lane w = cla_lane_real(0);
        if (is_read) w = cla_lane_mul(scale, cla_lane_load_apart(W, at, 1));
        for (long k = 0; k < count; k++)
            w = cla_lane_fma(cla_lane_load_apart(factors, (k + 1) * CLA_PARTS, 1),
                             cla_lane_load_apart(W, ((first + k * step) * n + i) * CLA_PARTS, 1), w);
        cla_lane_store_apart(W, at, 1, w);
        squares = cla_lane_fma(cla_lane_conj(w), w, squares);
        if (against >= 0)
            product = cla_lane_fma(cla_lane_conj(cla_lane_load_apart(W, (against * n + i) * CLA_PARTS, 1)), w, product);
    }
    squares = group_sum(room, squares);
    product = group_sum(room, product);
    if (get_local_id(0) == 0) {
        cla_lane_store_apart(sums, get_group_id(0) * 2 * CLA_PARTS, 1, squares);
        cla_lane_store_apart(sums, (get_group_id(0) * 2 + 1) * CLA_PARTS, 1, product);
    }
}
