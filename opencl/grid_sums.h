/* Sums over the rows of a grid, for kernels of grid.h whose members are numbered DOWN its columns, P at most a warp's.
 *
 * CLA_GRID_SUM(x, first, last) makes x[v], for v from `first` to `last` - 1, the sum of those of all members of a column of
 * the grid, in each of them by the same bits. CLA_GRID_SUMS(n) is the room in local memory that this takes of a kernel
 * for arrays of n numbers; all members come to CLA_TOGETHER between a sum and the next. CLA_GRID_SUM_ACROSS and
 * CLA_GRID_SUMS_ACROSS(n) likewise, over the columns of a grid: for all members of a row of it.
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

#define APART (PACKED ? TEAMS : 1) /* neighbours in a column of the grid are so far apart in a warp */
#define CLA_GRID_SUMS(n)
#define CLA_GRID_SUM(x, first, last) \
    CLA_UNROLL for (int distance = 1; distance < P; distance *= 2) \
        CLA_UNROLL for (int v = (first); v < (last); v++) x[v] = x[v] + cla_other_lane(x[v], distance * APART);
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

/* Columns of a grid that are in one warp: in their sums others take part by way of local memory, where a work-item then
 * sums up what there is of a row. */
#define COLUMNS_OF_WARP (!CLA_WARP ? 1 : MEMBERS > 32 ? 32 / P : Q)
#define PARTS_OF_ROW (Q / COLUMNS_OF_WARP)
#if CLA_WARP
#define CLA_GRID_SUM_IN_WARP(x, first, last) \
    CLA_UNROLL for (int distance = P; distance < COLUMNS_OF_WARP * P; distance *= 2) \
        CLA_UNROLL for (int u = (first); u < (last); u++) x[u] = x[u] + cla_other_lane(x[u], distance);
#else
#define CLA_GRID_SUM_IN_WARP(x, first, last)
#endif
#define CLA_GRID_SUMS_ACROSS(n) __local cla_lane across[PARTS_OF_ROW > 1 ? TEAMS * PARTS_OF_ROW * (n) * P : 1];
#define CLA_GRID_SUM_ACROSS(x, first, last) \
    CLA_GRID_SUM_IN_WARP(x, first, last) \
    if (PARTS_OF_ROW > 1) { \
        CLA_LOCAL cla_lane *own = across + team * (PARTS_OF_ROW * (last) * P); \
        if (c % COLUMNS_OF_WARP == 0) \
            CLA_UNROLL for (int u = (first); u < (last); u++) own[(c / COLUMNS_OF_WARP * (last) + u) * P + p] = x[u]; \
        CLA_TOGETHER \
        for (int e = (first) * P + t; e < (last) * P; e += MEMBERS) { \
            cla_lane sum = own[e]; \
            CLA_UNROLL for (int part = 1; part < PARTS_OF_ROW; part++) sum = sum + own[part * (last) * P + e]; \
            own[e] = sum; \
        } \
        CLA_TOGETHER \
        CLA_UNROLL for (int u = (first); u < (last); u++) x[u] = own[u * P + p]; \
    }
