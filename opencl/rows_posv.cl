/* posv on packs by teams whose members have whole rows of a matrix, of sizes and strides that are known when
 * this is compiled: macros and arguments are those of posv.cl. Tunables:
 *
 * POSV_ROWS  one work-group for LANES matrices of a pack, P work-items for each, as rows.h says
 *   LANES        matrices of a work-group, a divisor of V
 *   P            work-items of a matrix, a power of 2, at most 32
 *   COLUMNS      columns of right-hand sides that a work-item solves for at once
 *   CLA_GROUPS   as cuda.h has it
 *
 * All members factor a block of TURNS columns on the diagonal, which passes through local memory, and then have what is
 * below it.
 */
#include "potrf.cl"
#include "known.h"

#undef M
#define M N
#ifndef P
#define P 8
#endif
#define Q 1
#define TEAMS LANES
#define TURNS 4
#include "grid.h"

#define VECTOR (sizeof(cla_lane) < 16 ? 16 / (int)sizeof(cla_lane) : 1) /* elements that are read together */
#define WHOLE_LINE ((N + TURNS - 1) / TURNS * TURNS)
#define TILE_LINE (WHOLE_LINE + (WHOLE_LINE / VECTOR % 2 == 0 ? VECTOR : 0))
#define TILE CLA_GRID_APART(N * TILE_LINE, (P + 1) * VECTOR)
#define FACTOR_ROW(i) (factors + (i) * TILE_LINE)
#define IN_FACTOR(k) (N % TURNS == 0 || (k) < N)
#define READS(i, j) ((i) >= (j))
#include "rows.h"

/* The lower triangle <- L. Elements on the diagonal are pivots, of which cla_root makes those of L, until all is done. */
#define PUT_FACTOR(l, i, j) \
    if ((i) >= (j)) \
        cla_lane_store_as(ACONJ, A, (l) + (long)(i) * ARS + (long)(j) * ACS, tiles[(l) * TILE + (i) * TILE_LINE + (j)]);

#ifdef POSV_ROWS
#define GET_COLUMN(i, c) cla_lane_load(B, (long)(i) * BRS + (long)(c) * BCS)
#define PUT_COLUMN(i, c, x) cla_lane_store(B, (long)(i) * BRS + (long)(c) * BCS, x);
#define DIVIDED(s) { \
        const CLA_REAL inverse = inverses[l * N + IN_MATRIX(k + s)]; \
        EACH_OWN x[v][s] = x[v][s] * inverse; \
    }
#define SOLVE \
    CLA_BLOCKS_DOWN( \
        CLA_BLOCK_LEFT(CLA_ROW_TIMES) \
        EACH_ABREAST(s) { \
            CLA_BELOW(s, CLA_ROW_TIMES) \
            DIVIDED(s) \
        } \
    ) \
    CLA_BLOCKS_UP( \
        CLA_UNROLL for (int s = ABREAST - 1; s >= 0; s--) { \
            DIVIDED(s) \
            CLA_BELOW(s, CLA_ROW_AWAY) \
        } \
        CLA_BLOCK_LEFT(CLA_ROW_AWAY) \
    )

__kernel CLA_GROUP_OF(ITEMS) void posv_rows(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                            __global CLA_REAL *restrict B, long b0, long bps, __global int *info)
{
    __local cla_lane tiles[LANES * TILE] __attribute__((aligned(16))), blocks[LANES * TURNS * TURNS];
    __local CLA_REAL inverses[LANES * N];
    CLA_GRID_HEAD
    CLA_LOCAL cla_lane *tile = tiles + team * TILE, *block = blocks + team * (TURNS * TURNS);
    const long q0 = get_group_id(0) * (long)LANES;
    A += a0 + q0 / CLA_VLEN * aps + CLA_GROUP_LANE(q0);
    cla_lane a[OWN_ROWS][WHOLE_LINE];
    int bad = 0;
#if N % ABREAST
    for (int e = get_local_id(0); e < (TURNED - N) * LANES; e += ITEMS)
        tiles[e / (TURNED - N) * TILE + (N - 1) * TILE_LINE + N + e % (TURNED - N)] = cla_lane_real(0);
#endif
    CLA_ROWS_READ
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
        CLA_UNROLL for (int j = 0; j < WHOLE_LINE; j++) {
            a[u][j] = cla_lane_real(0);
            if (u * P + P > j && j < N && u * P + p < N && u * P + p >= j)
                a[u][j] = ACONJ ? cla_lane_conj(tile[(u * P + p) * TILE_LINE + j]) : tile[(u * P + p) * TILE_LINE + j];
        }
    CLA_TOGETHER
    CLA_ROLLED for (int k = 0; k < N; k += TURNS) { /* columns move left: a[.][0] is number k */
        cla_lane d[TURNS][TURNS];
        CLA_REAL r[TURNS];
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
            const int own = u * P + p - k;
            if (own >= 0 && own < TURNS)
                CLA_UNROLL for (int s = 0; s < TURNS; s++) block[own * TURNS + s] = a[u][s];
        }
        CLA_TOGETHER
        CLA_UNROLL for (int i = 0; i < TURNS; i++)
            CLA_UNROLL for (int s = 0; s <= i; s++) d[i][s] = block[i * TURNS + s];
        CLA_UNROLL for (int s = 0; s < TURNS; s++)
            if (IN_FACTOR(k + s)) {
                const CLA_REAL pivot = cla_lane_re(d[s][s]);
                const int good = pivot > 0;
                bad = good || bad ? bad : k + s + 1;
                r[s] = cla_lane_rsqrt(good ? pivot : 1);
                if (t == 0) inverses[team * N + k + s] = r[s];
                CLA_UNROLL for (int i = s + 1; i < TURNS; i++) d[i][s] = d[i][s] * r[s];
                CLA_UNROLL for (int i = s + 1; i < TURNS; i++)
                    CLA_UNROLL for (int j = s + 1; j <= i; j++)
                        d[i][j] = cla_lane_fnma(d[i][s], cla_lane_conj(d[j][s]), d[i][j]);
            }
        cla_lane w[OWN_ROWS][TURNS]; /* of L */
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
            if (u * P + P > k)
                CLA_UNROLL for (int s = 0; s < TURNS; s++)
                    if (IN_FACTOR(k + s)) {
                        cla_lane x = a[u][s];
                        CLA_UNROLL for (int j = 0; j < s; j++) x = cla_lane_fnma(w[u][j], cla_lane_conj(d[s][j]), x);
                        w[u][s] = u * P + p == k + s ? x : x * r[s];
                        if (u * P + p >= k + s && u * P + p < N) tile[(u * P + p) * TILE_LINE + k + s] = w[u][s];
                    }
        CLA_TOGETHER
        CLA_UNROLL for (int v0 = TURNS; v0 < WHOLE_LINE; v0 += TURNS)
            if (k + v0 < N)
                CLA_UNROLL for (int v = v0; v < v0 + TURNS; v++) {
                    cla_lane row[TURNS];
                    CLA_UNROLL for (int s = 0; s < TURNS; s++)
                        row[s] = cla_lane_conj(tile[IN_MATRIX(k + v) * TILE_LINE + k + s]);
                    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
                        cla_lane x = a[u][v];
                        if (u * P + P > k + v0)
                            CLA_UNROLL for (int s = 0; s < TURNS; s++) x = cla_lane_fnma(w[u][s], row[s], x);
                        a[u][v - TURNS] = x;
                    }
                }
    }
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++)
        if (u * P + p < N) {
            CLA_LOCAL cla_lane *diagonal = tile + (u * P + p) * (TILE_LINE + 1);
            const CLA_REAL pivot = cla_lane_re(*diagonal);
            *diagonal = cla_lane_real(pivot > 0 ? cla_lane_sqrt(pivot) : pivot);
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    CLA_STRIP(N, N, ARS < ACS, PUT_FACTOR)
    if (t == 0 && q < nm) info[q] = bad;
    B += b0 + q0 / CLA_VLEN * bps + CLA_GROUP_LANE(q0) + OWN_MATRIX;
    CLA_ROWS_SOLVE(R, GET_COLUMN, SOLVE, PUT_COLUMN)
}
#endif
