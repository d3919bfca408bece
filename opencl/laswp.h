/* Rows swapped for pivots, of one lane: in memory, at places that are known when this runs.
 *
 * Swaps are ints, of which number i is at swaps[i * CLA_VLEN]: row i was swapped with that row.
 */
#ifndef CLA_LASWP_H
#define CLA_LASWP_H

#include "lane.h"

/* Swap rows i and k of a matrix of r columns. */
CLA_INLINE void cla_swap_rows(int i, int k, int r, cla_matrix B)
{
    for (int j = 0; j < r && i != k; j++) {
        const cla_lane b = cla_get(B, i, j);
        cla_set(B, i, j, cla_get(B, k, j));
        cla_set(B, k, j, b);
    }
}

/* Swap the rows of B: row i with row swaps[i], for i from 0 to n - 1; or `back` again, from the last to the first. */
CLA_INLINE void cla_laswp(int n, int r, __global const int *swaps, int back, cla_matrix B)
{
    for (int t = 0; t < n; t++) {
        const int i = back ? n - 1 - t : t;
        cla_swap_rows(i, cla_int_load(swaps, i), r, B);
    }
}

/* The row of the first of the largest |re| + |im| in column k of A of m rows, from row k on; or k, where that is at
 * least `threshold` times as large. */
CLA_INLINE int cla_largest_below(int k, int m, CLA_REAL threshold, cla_matrix A)
{
    const CLA_REAL own = cla_lane_abs1(cla_get(A, k, k));
    int place = k;
    CLA_REAL best = own;
    for (int i = k + 1; i < m; i++) {
        const CLA_REAL size = cla_lane_abs1(cla_get(A, i, k));
        if (size > best) {
            best = size;
            place = i;
        }
    }
    return own >= threshold * best ? k : place;
}

/* Which row comes to be row i by the swaps of n rows: order[i * step] <- that row. */
#define CLA_ORDER(n, swaps, order, step) \
    for (int i = 0; i < (n); i++) (order)[i * (step)] = i; \
    for (int i = 0; i < (n); i++) { \
        const int place = cla_int_load(swaps, i), row = (order)[i * (step)]; \
        (order)[i * (step)] = (order)[place * (step)]; \
        (order)[place * (step)] = row; \
    }

#endif
