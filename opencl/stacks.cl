/* What stacks of ordinary matrices need beside packs: define the name of a kernel in capital letters.
 *
 * Matrices are contiguous, m x n, one after the other, but for the source of `spread` and the packs of `determinant`.
 */
#include "lane.h"

#ifdef SPREAD
/* target <- source, whose elements are anywhere: AXES sizes n and strides s in bytes, the first element at s8. Define the
 * types of numbers SOURCE and TARGET, and of how many of these an element is made: SOURCE_PARTS and TARGET_PARTS. */
#ifndef AXES
#define AXES 3
#define SOURCE float
#define TARGET float
#define SOURCE_PARTS 1
#define TARGET_PARTS 1
#endif
#define EIGHT(x) long x##0, long x##1, long x##2, long x##3, long x##4, long x##5, long x##6, long x##7
__kernel void spread(long count, __global const char *restrict source, long first, EIGHT(n), EIGHT(s),
                     __global TARGET *restrict target)
{
    const long sizes[] = {n0, n1, n2, n3, n4, n5, n6, n7}, strides[] = {s0, s1, s2, s3, s4, s5, s6, s7};
    const long e = get_global_id(0);
    if (e >= count) return;
    long place = first, rest = e;
#pragma unroll
    for (int axis = AXES - 1; axis > 0; axis--) {
        place += rest % sizes[axis] * strides[axis];
        rest /= sizes[axis];
    }
    __global const SOURCE *x = (__global const SOURCE *)(source + place + rest * strides[0]);
    target[e * TARGET_PARTS] = (TARGET)x[0];
#if TARGET_PARTS == 2
    target[e * 2 + 1] = SOURCE_PARTS == 2 ? (TARGET)x[SOURCE_PARTS - 1] : 0;
#endif
}
#endif

#ifdef FILL
/* Matrices of `size` numbers of type TARGET that failed <- NaN, or 0 for INTEGERS */
#ifndef INTEGERS
#define INTEGERS 0
#define TARGET float
#endif
__kernel void fill(long count, long size, __global const int *restrict failed, __global TARGET *restrict target)
{
    const long e = get_global_id(0);
    if (e < count && failed[e / size]) target[e] = INTEGERS ? 0 : NAN;
}
#endif

#ifdef TELL
/* flag <- 1 if one of some integers is not 0 */
__kernel void tell(long count, __global const int *restrict failed, __global int *restrict flag)
{
    const long q = get_global_id(0);
    if (q < count && failed[q]) *flag = 1;
}
#endif

#ifdef SQUARES
/* Squares of `size` numbers for each matrix, but NaN if its rank is not n */
__kernel void squares(long count, long size, long n, __global const CLA_REAL *restrict norms,
                      __global const int *restrict rank, __global CLA_REAL *restrict target)
{
    const long e = get_global_id(0);
    if (e < count) target[e] = rank[e / size] == n ? norms[e] * norms[e] : NAN;
}
#endif

#ifdef CLEAR
/* What is below the diagonal of M x N matrices, or for `upper` above it, <- 0 */
#ifndef M
#define M 4
#define N 4
#endif
__kernel void clear(long count, long upper, __global CLA_REAL *restrict target)
{
    const long e = get_global_id(0);
    if (e >= count) return;
    const int t = e % (M * N), i = t / N, j = t % N;
    if (upper ? i < j : i > j) cla_lane_store_apart(target, e * CLA_PARTS, 1, cla_lane_real(0));
}
#endif

#ifdef DETERMINANT
#include "determinant.h"
/* Determinants of n x n matrices of which A holds the factors of `getrf`, with the rows that were swapped; or, for
 * LOGARITHM, their signs and the logarithms of their sizes. */
#ifndef LOGARITHM
#define LOGARITHM 0
#endif
__kernel void determinant(long nm, long n, CLA_VIEW(const CLA_REAL *restrict A, a), __global const int *restrict ipiv,
                          __global CLA_REAL *restrict value, __global CLA_REAL *restrict logarithm)
{
    const long q = get_global_id(0);
    if (q >= nm) return;
    A += a0 + cla_lane_place(q, aps);
    ipiv += cla_lane_place(q, n * CLA_VLEN);
    int odd = 0;
    for (int k = 0; k < n; k++) odd ^= cla_int_load(ipiv, k) != k;
    cla_determinant d = cla_determinant_of(odd);
    for (int k = 0; k < n; k++) {
        const cla_lane u = cla_lane_load(A, k * (ars + acs));
        if (LOGARITHM) cla_determinant_times_sign(&d, u);
        else cla_determinant_times(&d, u);
    }
    if (LOGARITHM) logarithm[q] = d.sum;
    cla_lane_store_apart(value, q * CLA_PARTS, 1, LOGARITHM ? d.product : cla_determinant_value(d));
}
#endif

#ifdef ZEROS
/* count <- how many zeros there are on the diagonals of A, n x n */
__kernel void zeros(long nm, long n, CLA_VIEW(const CLA_REAL *restrict A, a), __global int *restrict count)
{
    const long q = get_global_id(0);
    if (q >= nm) return;
    int zeros = 0;
    for (int k = 0; k < n; k++) zeros += cla_lane_is_zero(cla_lane_load(A, a0 + cla_lane_place(q, aps) + k * (ars + acs)));
    count[q] = zeros;
}
#endif

#ifdef CUT
/* Row k of C <- the row over s[k], or 0 if s[k] is no larger than rcond times the first; `rank` <- how many are. s holds
 * n numbers for each matrix in descending order, C n x r. rcond is `common`, or one for each matrix. */
__kernel void cut(long nm, long n, long r, __global const CLA_REAL *restrict s, CLA_REAL common,
                  __global const CLA_REAL *restrict each, CLA_VIEW(CLA_REAL *restrict C, c), __global int *restrict rank)
{
    const long q = get_global_id(0);
    if (q >= nm) return;
    const CLA_REAL rcond = each ? each[q] : common;
    C += c0 + cla_lane_place(q, cps);
    s += q * n;
    int count = 0;
    for (int k = 0; k < n; k++) {
        const int kept = s[k] > rcond * s[0];
        count += kept;
        for (int j = 0; j < r; j++) {
            const cla_lane c = cla_lane_load(C, k * crs + j * ccs);
            cla_lane_store(C, k * crs + j * ccs, cla_lane_select(kept, c * (1 / s[k]), cla_lane_real(0)));
        }
    }
    rank[q] = count;
}
#endif
