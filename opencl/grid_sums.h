/* Sums over the rows of a grid, for kernels of grid.h whose members are numbered DOWN its columns, P at most a warp's.
 *
 * CLA_GRID_SUM(x, first, last) makes x[v], for v from `first` to `last` - 1, the sum of those of all members of a column of
 * the grid, in each of them by the same bits. CLA_GRID_SUMS(n) is the room in local memory that this takes of a kernel
 * for arrays of n numbers; all members come to CLA_TOGETHER between a sum and the next.
 */
#ifndef DOWN
#define DOWN 1
#endif
#include "grid.h"

#if CLA_WARP
CLA_INLINE cla_lane cla_other_lane(cla_lane x, int distance)
{
    const CLA_REAL re = cla_other(cla_lane_re(x), distance);
    return cla_lane_of(re, CLA_COMPLEX ? cla_other(cla_lane_im(x), distance) : 0);
}

#define CLA_GRID_SUMS(n)
#define CLA_GRID_SUM(x, first, last) \
    CLA_UNROLL for (int distance = 1; distance < P; distance *= 2) \
        CLA_UNROLL for (int v = (first); v < (last); v++) x[v] = x[v] + cla_other_lane(x[v], distance);
#else
#define CLA_GRID_SUMS(n) __local cla_lane sums[TEAMS * (n) * Q * P];
#define CLA_GRID_SUM(x, first, last) \
    if (P > 1) { \
        CLA_LOCAL cla_lane *own = sums + (team * Q + c) * P; \
        CLA_UNROLL for (int v = (first); v < (last); v++) own[v * (TEAMS * Q * P) + p] = x[v]; \
        CLA_TOGETHER \
        CLA_UNROLL for (int v = (first); v < (last); v++) { \
            x[v] = own[v * (TEAMS * Q * P)]; \
            for (int other = 1; other < P; other++) x[v] = x[v] + own[v * (TEAMS * Q * P) + other]; \
        } \
    }
#endif
