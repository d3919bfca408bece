/* Moves between ordinary arrays and packs.
 *
 * Ordinary arrays hold a complex element as two neighbouring CLA_REAL numbers. Dimension 0 of the range counts lanes,
 * q = pack * V + lane, so that neighbours touch neighbouring elements of a pack; dimension 1 shares out the elements
 * of a matrix, in runs, so that a work-item touches neighbouring elements of the ordinary array.
 */
#include "lane.h"

/* e, i, j over this work-item's run of the elements e = i n + j of m x n */
#define EACH_ELEMENT(m, n) \
    const long count = (m) * (n), run = (count + get_global_size(1) - 1) / get_global_size(1); \
    const long begin = get_global_id(1) * run, end = min(begin + run, count); \
    for (long e = begin, i = e / n, j = e % n; e < end; e++, i += j + 1 == n, j = j + 1 == n ? 0 : j + 1)

/* A[q] <- source[q]; lanes of the last pack from nm on hold unit where i % period == j, else 0 */
__kernel void pack(long lanes, long nm, long m, long n, long period, CLA_REAL unit,
                   __global const CLA_REAL *source, long s0, long sq, long si, long sj, CLA_VIEW(CLA_REAL *A, a))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    EACH_ELEMENT(m, n)
    {
        const cla_lane a = q < nm ? cla_lane_load_apart(source, s0 + q * sq + i * si + j * sj, 1)
                              : cla_lane_real(i % period == j ? unit : 0);
        cla_lane_store(A, a0 + q / CLA_VLEN * aps + q % CLA_VLEN + i * ars + j * acs, a);
    }
}

/* target[q] <- A[q] for the first nm lanes */
__kernel void unpack(long nm, long m, long n, CLA_VIEW(const CLA_REAL *A, a), __global CLA_REAL *target, long t0,
                     long tq, long ti, long tj)
{
    const long q = get_global_id(0);
    if (q >= nm) return;
    EACH_ELEMENT(m, n)
    {
        const cla_lane a = cla_lane_load(A, a0 + q / CLA_VLEN * aps + q % CLA_VLEN + i * ars + j * acs);
        cla_lane_store_apart(target, t0 + q * tq + i * ti + j * tj, 1, a);
    }
}

#if defined(PACK_TILED) || defined(UNPACK_TILED)
/* The same, a work-group for LANES matrices of a pack and ELEMENTS elements of each: dimension 0 counts groups of
 * matrices, dimension 1 runs of elements. They go through local memory: neighbours are elements of a matrix in the
 * ordinary array, but lanes in the pack. Define PACK_TILED or UNPACK_TILED. Tunables:
 *
 * LANES     matrices of a work-group, a divisor of V
 * ELEMENTS  elements of each matrix
 * GROUP     work-items of a work-group
 * ALONG     what the work-items follow in the ordinary array: 0 the elements, 1 the matrices
 * FLAT      1 if the elements of a matrix are sj apart in the ordinary array and acs in the pack, across its rows too
 */
#include "unroll.h"

#ifndef ELEMENTS
#define LANES 8
#define ELEMENTS 16
#define GROUP 64
#define ALONG 0
#define FLAT 1
#endif
#define SIZE (ELEMENTS * LANES)
#define SHARE ((SIZE + GROUP - 1) / GROUP)
#define LINE (LANES + 1) /* odd for the sake of the banks where LANES is even */
/* u, and lane v and element e of the tile, for everything that is this work-item's; INSIDE if the matrix has e */
#define EACH_IN_TILE(order) \
    CLA_UNROLL for (int u = 0, t = get_local_id(0), v, e; u < SHARE; u++, t += GROUP) \
        if (v = (order) ? t % LANES : t / ELEMENTS, e = (order) ? t / LANES : t % ELEMENTS, \
            SIZE % GROUP == 0 || t < SIZE)
#define INSIDE (e0 + e < m * n)
#define PLACE(rs, cs) (FLAT ? (e0 + e) * cs : (e0 + e) / (int)n * rs + (e0 + e) % (int)n * cs)
#endif

#ifdef PACK_TILED
__kernel CLA_GROUP_OF(GROUP) void pack_tiled(long nm, long m, long n, long period, CLA_REAL unit,
                                             __global const CLA_REAL *restrict source, long s0, long sq, long si,
                                             long sj, CLA_VIEW(CLA_REAL *restrict A, a))
{
    __local cla_lane tile[ELEMENTS * LINE];
    const long q0 = get_group_id(0) * (long)LANES;
    const int e0 = get_group_id(1) * ELEMENTS;
    cla_lane a[SHARE];
    EACH_IN_TILE(ALONG)
    {
        a[u] = q0 + v < nm && INSIDE ? cla_lane_load_apart(source, s0 + (q0 + v) * sq + PLACE(si, sj), 1)
                                     : cla_lane_real((e0 + e) / n % period == (e0 + e) % n ? unit : 0);
    }
    EACH_IN_TILE(ALONG) tile[e * LINE + v] = a[u];
    barrier(CLK_LOCAL_MEM_FENCE);
    A += a0 + q0 / CLA_VLEN * aps + CLA_GROUP_LANE(q0);
    EACH_IN_TILE(1) a[u] = tile[e * LINE + v];
    EACH_IN_TILE(1)
    if (INSIDE) cla_lane_store(A, v + PLACE(ars, acs), a[u]);
}
#endif

#ifdef UNPACK_TILED
__kernel CLA_GROUP_OF(GROUP) void unpack_tiled(long nm, long m, long n, CLA_VIEW(const CLA_REAL *restrict A, a),
                                               __global CLA_REAL *restrict target, long t0, long tq, long ti, long tj)
{
    __local cla_lane tile[ELEMENTS * LINE];
    const long q0 = get_group_id(0) * (long)LANES;
    const int e0 = get_group_id(1) * ELEMENTS;
    cla_lane a[SHARE];
    A += a0 + q0 / CLA_VLEN * aps + CLA_GROUP_LANE(q0);
    EACH_IN_TILE(1) a[u] = INSIDE ? cla_lane_load(A, v + PLACE(ars, acs)) : cla_lane_real(0);
    EACH_IN_TILE(1) tile[e * LINE + v] = a[u];
    barrier(CLK_LOCAL_MEM_FENCE);
    EACH_IN_TILE(ALONG) a[u] = tile[e * LINE + v]; /* all of them before the first is stored */
    EACH_IN_TILE(ALONG)
    if (q0 + v < nm && INSIDE) cla_lane_store_apart(target, t0 + (q0 + v) * tq + PLACE(ti, tj), 1, a[u]);
}
#endif

/* Where element e of the b x b block of slot q / V is, counted in vectors of lanes. */
CLA_INLINE long in_slot(long q, long e, long b) { return q / CLA_VLEN * b * b + e; }

/* source[index], or for a negative index 0 (-1) or what the identity holds (-2) */
CLA_INLINE cla_lane gathered(__global const CLA_REAL *source, long index, int negative, int on_diagonal)
{
    return negative ? cla_lane_real(negative == -2 && on_diagonal) : cla_lane_load_apart(source, index * CLA_PARTS, 1);
}

/* Block (s, v) of target <- block index[s, v] of source */
__kernel void gather_blocks(long lanes, long b, __global const CLA_REAL *source, __global const long *index,
                            __global CLA_REAL *target)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const long block = index[q];
    EACH_ELEMENT(b, b)
    {
        const cla_lane a = gathered(source, block * b * b + e, min(block, 0L), i == j);
        cla_lane_store(target, in_slot(q, e, b) * CLA_PARTS * CLA_VLEN + q % CLA_VLEN, a);
    }
}

/* Element (s, i, j, v) of target <- element index[s, i, j, v] of source */
__kernel void gather_values(long lanes, long b, __global const CLA_REAL *source, __global const long *index,
                            __global CLA_REAL *target)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    EACH_ELEMENT(b, b)
    {
        const long element = index[in_slot(q, e, b) * CLA_VLEN + q % CLA_VLEN];
        const cla_lane a = gathered(source, element, min(element, 0L), 1);
        cla_lane_store(target, in_slot(q, e, b) * CLA_PARTS * CLA_VLEN + q % CLA_VLEN, a);
    }
}

/* Numbers on the diagonal of block (s, v), past its size, <- the largest number of the block, or one */
__kernel void pad_diagonals(long lanes, long b, __global const long *size, __global CLA_REAL *blocks)
{
    const long q = get_global_id(0), vector = CLA_PARTS * CLA_VLEN;
    if (q >= lanes) return;
    blocks += q % CLA_VLEN;
    CLA_REAL largest = 0;
    for (long e = 0; size[q] < b && e < b * b * CLA_PARTS; e++)
        largest = fmax(largest, fabs(blocks[in_slot(q, 0, b) * vector + e * CLA_VLEN]));
    for (long i = size[q]; i < b; i++)
        cla_lane_store(blocks, in_slot(q, i * b + i, b) * vector, cla_lane_real(largest > 0 ? largest : 1));
}
