/* Triangular systems on grids, as grid_solve_step.h solves them: what lies where. Define N and R: a grid has R rows of
 * X below the N x N triangle, from a row of the grid on that is a multiple of P. An inverse is the solution for the
 * identity.
 */
#define BELOW ((N + P - 1) / P)
#undef M
#define M (BELOW * P + R)

#include "grid.h"

#define SOLVE_BLOCK (DESCENDING ? (N + STEPS - 1) / STEPS - 1 - STEP : STEP)
#define SOLVE_ROW (SOLVE_BLOCK * STEPS / P)
#define SOLVE_COLUMN (SOLVE_BLOCK * STEPS / Q)

/* invert(x) for the diagonal elements x of the triangle */
#define CLA_GRID_INVERT(a, invert) \
    CLA_UNROLL for (int u = 0; u < BELOW; u++) \
        CLA_UNROLL for (int v = 0; v < OWN_COLUMNS; v++) \
            if (u * P < v * Q + Q && v * Q < u * P + P && u * P + p == v * Q + c) a[u][v] = invert(a[u][v]);

/* 1 / x of diagonal element i; the first of those that are zero is *first. */
CLA_INLINE cla_lane cla_grid_reciprocal(cla_lane x, int i, CLA_LOCAL int *first)
{
    if (cla_lane_is_zero(x)) atomic_min(first, i);
    return cla_lane_recip(x);
}
#define CLA_GRID_CHECKED(x) cla_grid_reciprocal(x, u * P + p, &singular[team])
#define CLA_GRID_INFO (singular[team] < N ? singular[team] + 1 : 0)
#define CLA_IS_IDENTITY(i, j) cla_lane_real(i == j)
