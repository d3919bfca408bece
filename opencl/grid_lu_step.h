/* STEPS steps of an LU factorization with partial pivoting, from step STEP STEPS on, of what grid_lu.h says.
 *
 * Rows are not moved: place[u] is where LAPACK would have that row by now, negative for what is no row, and of equally
 * large candidates the one at the first place is taken. Its row goes through local memory with the reciprocal of the
 * pivot in column k. Of several warps each passes its own candidate on before it is known whose is the largest, which
 * saves a barrier. With LIMIT, without warps, the row at place k is taken where it is at least so many times as large.
 */
#if STEP * STEPS < LU_STEPS
{
    CLA_ROLLED for (int s = 0; s < STEPS && STEP * STEPS + s < LU_STEPS; s++) {
        const int k = STEP * STEPS + s, own = c == s;
        int at = place[0];
        cla_lane pivot = a[0][STEP], x[OWN_ROWS];
        CLA_REAL size = (own & (at >= k)) ? SIZE_OF(pivot) : -1;
        CLA_UNROLL for (int u = 1; u < OWN_ROWS; u++) {
            const CLA_REAL other = (own & (place[u] >= k)) ? SIZE_OF(a[u][STEP]) : -1;
            const int better = LARGER(other, place[u], size, at);
            at = better ? place[u] : at;
            pivot = cla_lane_select(better, a[u][STEP], pivot);
            size = better ? other : size;
        }
        const cla_lane r = cla_lane_is_zero(pivot) ? cla_lane_real(1) : cla_lane_recip(pivot);
#if CLA_WARP == 2
        int first = cla_place_of_largest(min(MEMBERS, 32), size, at);
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
            x[u] = Q > 1 ? cla_taken(a[u][STEP], get_local_id(0) % 32 / Q * Q + s) : a[u][STEP];
#if CLA_WARPS > 1
        if (get_local_id(0) % 32 == first) {
            sizes[k % 2 * CLA_WARPS + t / 32] = size;
            places[k % 2 * CLA_WARPS + t / 32] = at;
        }
        CLA_LOCAL cla_lane *row = rows + (k % 2 * CLA_WARPS + t / 32) * WIDTH;
#else
        CLA_LOCAL cla_lane *row = rows + (team * 2 + k % 2) * WIDTH;
#endif
        at = cla_taken_int(at, first);
#else
        CLA_LOCAL cla_lane *row = rows + (team * 2 + k % 2) * WIDTH, *column = columns + (team * 2 + k % 2) * LINE;
        if (own) {
            sizes[team * P + p] = size;
            places[team * P + p] = at;
#ifdef LIMIT
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
                if (place[u] == k) diagonal[team] = SIZE_OF(a[u][STEP]);
#endif
            if (Q > 1)
                CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) column[u * P + p] = a[u][STEP];
        }
        CLA_TOGETHER
        LU_LARGEST()
#ifdef LIMIT
        at = diagonal[team] >= LIMIT * size ? k : at;
#endif
#endif
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
            if (place[u] == at)
                CLA_UNROLL for (int v = FIRST; v < OWN_COLUMNS; v++)
                    row[c * PART + v] = v == STEP ? cla_lane_select(own, r, a[u][v]) : a[u][v];
        CLA_TOGETHER
#if CLA_WARP == 2 && CLA_WARPS > 1
        const int warp = min(t % 32, CLA_WARPS - 1), there = places[k % 2 * CLA_WARPS + warp];
        first = cla_place_of_largest(32, t % 32 == warp ? sizes[k % 2 * CLA_WARPS + warp] : -1, there);
        at = cla_taken_int(there, first);
        row = rows + (k % 2 * CLA_WARPS + first) * WIDTH;
#elif CLA_WARP != 2
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) x[u] = Q > 1 ? column[u * P + p] : a[u][STEP];
#endif
        const cla_lane reciprocal = row[s * PART + STEP];
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
            const int taken = place[u] == at;
            if (taken && own) {
                swaps[team * LU_STEPS + k] = INV ? u * P + p : at;
                pivots[team * LU_STEPS + k] = RECIPROCALS ? r : pivot;
                if (cla_lane_is_zero(pivot) && !singular[team]) singular[team] = k + 1;
            }
            place[u] = taken ? k : place[u] == k ? at : place[u];
            const int others = INV ? !taken : place[u] > k;
            x[u] = cla_lane_select(others, cla_lane_mul(x[u], reciprocal), cla_lane_real(0));
        }
        CLA_UNROLL for (int v = FIRST; v < OWN_COLUMNS; v++) {
            if (Q == 1 && v == STEP) continue;
            const int right = v != STEP || (INV ? !own : c > s);
            const cla_lane y = cla_lane_select(right, row[c * PART + v], cla_lane_real(0));
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) a[u][v] = cla_lane_fnma(x[u], y, a[u][v]);
        }
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
            if (INV) a[u][STEP] = cla_lane_select(own, place[u] == k ? cla_lane_real(1) : CLA_MINUS(x[u]), a[u][STEP]);
            if (KEEP) a[u][STEP] = cla_lane_select(own & (place[u] > k), x[u], a[u][STEP]);
        }
    }
}
#include "next_step.h"
#if STEP % 8
#include "grid_lu_step.h"
#endif
#endif
