/* TURNS steps of an LU factorization with partial pivoting, from step STEP TURNS on, where the members of a team, a
 * warp at most, have a row each, in grid_lu.cl: as grid_lu_step.h, but columns move left as steps go, so that these
 * need not be written out.
 *
 * For KEEP the tile gets what was eliminated: in the line of the pivot's row from its own column on, and in that of
 * every other row its multiples, from the end backwards.
 */
#if STEP * LU_TURNS < LU_STEPS
{
    CLA_ROLLED for (int s = 0; s < LU_TURNS && STEP * LU_TURNS + s < LU_STEPS; s++) {
        const int k = STEP * LU_TURNS + s;
        const cla_lane pivot = a[0][0];
        CLA_REAL size = place[0] >= k ? SIZE_OF(pivot) : -1;
        const cla_lane r = cla_lane_is_zero(pivot) ? cla_lane_real(1) : cla_lane_recip(pivot);
        int at = place[0], winner = 0;
#if CLA_WARP == 2
        const int first = cla_place_of_largest(MEMBERS, size, at);
        winner = first % MEMBERS;
        at = cla_taken_int(at, first);
#else
        sizes[team * P + p] = size;
        places[team * P + p] = at;
        CLA_TOGETHER
        LU_LARGEST(winner = better ? o : winner;)
#endif
        if (p == winner) {
            CLA_LOCAL cla_lane *own = LINE_OF(winner);
            own[0] = r;
            CLA_UNROLL for (int v = 1; v < WIDTH_LEFT; v++) own[v] = a[0][v];
            CLA_UNROLL for (int j = 0; j < HELD - N; j++) own[BESIDE + j] = a[0][N + j];
        }
        CLA_TOGETHER
        const CLA_LOCAL cla_lane *row = LINE_OF(winner);
        const int taken = p == winner;
        if (taken) {
            swaps[team * LU_STEPS + k] = INV ? p : at;
            pivots[team * LU_STEPS + k] = RECIPROCALS ? r : pivot;
            if (cla_lane_is_zero(pivot)) singular[team] = 1;
        }
        place[0] = taken ? k : place[0] == k ? at : place[0];
        const cla_lane x = cla_lane_select(INV ? !taken : place[0] > k, cla_lane_mul(pivot, row[0]), cla_lane_real(0));
        if (KEEP && place[0] > k) tile[p * TILE_LINE + LAST_MULTIPLE - k] = x;
        CLA_UNROLL for (int v = 1; v < WIDTH_LEFT; v++) a[0][v - 1] = cla_lane_fnma(x, row[v], a[0][v]);
        CLA_UNROLL for (int j = 0; j < HELD - N; j++) a[0][N + j] = cla_lane_fnma(x, row[BESIDE + j], a[0][N + j]);
        if (INV) a[0][N - 1] = taken ? cla_lane_real(1) : CLA_MINUS(x);
    }
}
#include "next_step.h"
#if STEP % 8
#include "grid_lu_moving_step.h"
#endif
#endif
