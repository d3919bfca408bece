/* getri on packs, of sizes and strides that are known when this is compiled: macros and arguments are those of getri.cl.
 * Tunables:
 *
 * GETRI_ROWS  one work-group for the factors of LANES matrices of a pack, in local memory as rows.h says
 *   LANES    matrices of a work-group, a divisor of V
 *   P        work-items of a matrix
 *   COLUMNS  columns of the inverse that a work-item has at once
 */
#include "known.h"

#include "laswp.h"
#include "unroll.h"

#ifndef P
#define P 8
#endif
#undef M
#define M N
#define VECTOR (sizeof(cla_lane) < 16 ? 16 / (int)sizeof(cla_lane) : 1) /* elements that are read together */
#define TILE_LINE ((TURNED + VECTOR - 1) / VECTOR * VECTOR)
#define TILE (N * TILE_LINE + VECTOR * (N * TILE_LINE / VECTOR % 2 == 0)) /* of neighbours in other banks */
#define FACTOR_ROW(i) (factors + (i) * TILE_LINE)
#include "rows.h"
#undef OWN_ORDER
#define OWN_ORDER CLA_LOCAL const int *own_order = order + l * N; /* of the right-hand sides */

#ifdef GETRI_ROWS
#define GET_COLUMN(i, c) cla_lane_real(own_order[i] == (c))
#define PUT_COLUMN(i, c, x) cla_lane_store(A, l + (long)(i) * ARS + (long)(c) * ACS, x);

__kernel CLA_GROUP_OF(ITEMS) void getri_rows(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                             __global const int *restrict ipiv, long ipiv0, long ipivps,
                                             __global int *info)
{
    __local cla_lane tiles[LANES * TILE] __attribute__((aligned(16))), inverses[LANES * N];
    __local int order[LANES * N];
    const long q0 = get_group_id(0) * (long)LANES;
    A += a0 + q0 / CLA_VLEN * aps + CLA_GROUP_LANE(q0);
    if (get_local_id(0) < LANES) {
        __global const int *own_swaps = ipiv + ipiv0 + q0 / CLA_VLEN * ipivps + CLA_GROUP_LANE(q0) + get_local_id(0);
        CLA_LOCAL int *own = order + get_local_id(0) * N;
        CLA_ORDER(N, own_swaps, own, 1)
    }
#if N % ABREAST
    for (int e = get_local_id(0); e < (TURNED - N) * N * LANES; e += ITEMS)
        tiles[e / ((TURNED - N) * N) * TILE + e / (TURNED - N) % N * TILE_LINE + N + e % (TURNED - N)] = cla_lane_real(0);
#endif
    CLA_ROWS_READ
    for (int e = get_local_id(0); e < N * LANES; e += ITEMS)
        inverses[e] = cla_lane_recip(tiles[e / N * TILE + e % N * (TILE_LINE + 1)]);
    barrier(CLK_LOCAL_MEM_FENCE);
    const long q = q0 + get_local_id(0);
    if (get_local_id(0) < LANES && q < nm) {
        int bad = 0;
        for (int i = N - 1; i >= 0; i--)
            bad = cla_lane_is_zero(tiles[get_local_id(0) * TILE + i * (TILE_LINE + 1)]) ? i + 1 : bad;
        info[q] = bad;
    }
    CLA_ROWS_SOLVE(N, GET_COLUMN, CLA_ROWS_LU, PUT_COLUMN)
}
#endif
