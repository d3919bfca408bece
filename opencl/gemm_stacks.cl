/* gemm of ordinary arrays: C <- alpha op(A) op(B) + beta C for stacks of small matrices (gemm_places.h), whose sizes are
 * known when this is compiled: a work-group takes LANES of A and of B into local memory, a work-item computes a tile of
 * one of C. Alpha is not 0.
 *
 * Define M, N, K; AOWN and BOWN, 0 if all share one matrix; BETA, 0 if beta is; ACOLUMNS and BCOLUMNS, 1 if neighbours
 * in memory are in a column.
 *
 * LANES    matrices of a work-group
 * TI, TJ   rows and columns of a tile, TJ in units of WIDE
 * WIDE     real numbers of a row of C that are moved at a time, and of B but for BCOLUMNS: they are neighbours, and
 *          begin at a multiple
 * WIDEA    numbers of A that are moved at a time, likewise
 * FLAT     0, or how many real numbers are moved at a time of matrices that lie one after the other without gaps, all
 *          but those that are shared: they begin at a multiple of that. WIDE is 1
 */
#include "gemm_places.h"

#ifndef M
#define M 4
#define N 4
#define K 4
#define ACONJ 0
#define BCONJ 0
#define AOWN 1
#define BOWN 1
#define BETA 1
#define ACOLUMNS 0
#define BCOLUMNS 0
#define LANES 8
#define TI 2
#define TJ 2
#define WIDE 1
#define WIDEA 1
#define FLAT 0
#endif
#define VECTOR(n) CLA_PASTE(CLA_REAL, n)
#if WIDE == 1
typedef cla_lane wide;
#define WIDE_FMA(a, b, c) cla_lane_fma(a, b, c)
#define WIDE_SCALE(f, x) cla_lane_scale(f, x)
#define WIDE_ADDED(x, f, c) cla_added(x, f, c)
#define WIDE_LOAD(p, i) cla_lane_load_apart(p, i, 1)
#define WIDE_STORE(p, i, x) cla_lane_store_apart(p, i, 1, x)
#define WIDE_ZERO cla_lane_real(0)
#else
typedef VECTOR(WIDE) wide;
#define WIDE_FMA(a, b, c) fma(CLA_ALL(wide, a), b, c)
#define WIDE_SCALE(f, x) ((f) * (x))
#define WIDE_ADDED(x, f, c) fma(CLA_ALL(wide, f), c, x)
#define WIDE_LOAD(p, i) (*(__global const wide *)((p) + (i)))
#define WIDE_STORE(p, i, x) *(__global wide *)((p) + (i)) = x
#define WIDE_ZERO CLA_ALL(wide, 0)
#endif
#define UNITS (N / WIDE)
#define TEAMI ((M + TI - 1) / TI)
#define TEAMJ ((UNITS + TJ - 1) / TJ)
#define GROUP (LANES * TEAMI * TEAMJ)
#define APITCH (FLAT ? K : K | 1) /* odd, so that neighbours are in different banks */
#define BPITCH (FLAT ? N : UNITS + BCOLUMNS * (1 - UNITS % 2))
#define ALANES (AOWN ? LANES : 1)
#define BLANES (BOWN ? LANES : 1)
/* e for each of `count` things of a work-group, and whether x is one of `size` that come in whole units or not */
#define EACH(count) \
    CLA_UNROLL for (int e0 = 0, e = t; e0 < (count); e0 += GROUP, e += GROUP) if (WITHIN(e, count, GROUP))
#define WITHIN(x, size, unit) ((size) % (unit) == 0 || (x) < (size))
#if FLAT
typedef VECTOR(FLAT) flat;
#define NUMBERS(size) ((size) * CLA_PARTS)
/* Between numbers in local memory and those of LANES matrices, of which there are `count` numbers. */
#define EACH_FLAT(size, count, WHOLE, PART) \
    EACH((LANES * NUMBERS(size) + FLAT - 1) / FLAT) { \
        const int f = e * FLAT; \
        if (f + FLAT <= count) WHOLE \
        else for (int u = f; u < count; u++) PART \
    }
#define FLAT_IN(F, first, of, own, size) { \
        __global const CLA_REAL *from = F + first + (own ? q0 * NUMBERS(size) : 0); \
        const int count = own ? (int)min((long)LANES, nm - q0) * NUMBERS(size) : NUMBERS(size); \
        CLA_LOCAL CLA_REAL *to = (CLA_LOCAL CLA_REAL *)of; \
        EACH_FLAT(size, count, *(CLA_LOCAL flat *)(to + f) = *(__global const flat *)(from + f);, to[u] = from[u];) \
    }
#endif
/* In FLAT matrices, columns are as neighbours in memory are. */
#define A_OF(first, row, k) \
    a_of[FLAT && ACOLUMNS ? (first) * M * K + (k) * M + (row) : ((first) * M + (row)) * APITCH + (k)]
#define B_OF(first, k, j) \
    b_of[FLAT && BCOLUMNS ? (first) * K * N + (j) * K + (k) : ((first) * K + (k)) * BPITCH + (j)]

__kernel CLA_GROUP_OF(GROUP) void gemm_stacks(
    long nm, CLA_SCALAR(alpha), CLA_SCALAR(beta),
    __global const CLA_REAL *restrict A, long a0, long astep, long ar, long ac,
    __global const CLA_REAL *restrict B, long b0, long bstep, long br, long bc,
    __global CLA_REAL *restrict C, long c0, long cstep, long cr, long cc CLA_PLACES_ARGUMENT)
{
    __local cla_lane a_of[ALANES * M * APITCH] __attribute__((aligned(16)));
    __local wide b_of[BLANES * K * BPITCH] __attribute__((aligned(16)));
#if FLAT
    __local cla_lane c_of[LANES * M * N] __attribute__((aligned(16)));
#endif
    const int t = get_local_id(0), tj = t % TEAMJ, ti = t / TEAMJ % TEAMI, l = t / (TEAMJ * TEAMI);
    const long q0 = get_group_id(0) * (long)LANES;
    const int given = min((long)l, nm - 1 - q0); /* whose numbers it computes with: the last where it has no matrix */
#if FLAT
    FLAT_IN(A, a0, a_of, AOWN, M * K)
    FLAT_IN(B, b0, b_of, BOWN, K * N)
#else
    EACH(ALANES * M * K / WIDEA) {
#if ACOLUMNS
        const int i = e % (M / WIDEA) * WIDEA, k = e / (M / WIDEA) % K;
#else
        const int k = e % (K / WIDEA) * WIDEA, i = e / (K / WIDEA) % M;
#endif
        const int v = e / (M * K / WIDEA);
        const long place = CLA_BEGIN(0, a0, AOWN ? min(q0 + v, nm - 1) : 0, astep) + i * ar + k * ac;
#if WIDEA == 1
        a_of[(v * M + i) * APITCH + k] = cla_lane_load_apart(A, place, 1);
#else
        CLA_REAL a[WIDEA];
        CLA_PASTE(vstore, WIDEA)(*(__global const VECTOR(WIDEA) *)(A + place), 0, a);
        CLA_UNROLL for (int u = 0; u < WIDEA; u++)
            a_of[(v * M + i + ACOLUMNS * u) * APITCH + k + (1 - ACOLUMNS) * u] = a[u];
#endif
    }
#if BCOLUMNS
    EACH(BLANES * K * N) {
        const int k = e % K, j = e / K % N, v = e / (K * N);
        const long place = CLA_BEGIN(1, b0, BOWN ? min(q0 + v, nm - 1) : 0, bstep) + k * br + j * bc;
        ((CLA_LOCAL cla_lane *)b_of)[(v * K + k) * BPITCH * WIDE + j] = cla_lane_load_apart(B, place, 1);
    }
#else
    EACH(BLANES * K * UNITS) {
        const int j = e % UNITS, k = e / UNITS % K, v = e / (K * UNITS);
        const long place = CLA_BEGIN(1, b0, BOWN ? min(q0 + v, nm - 1) : 0, bstep) + k * br + j * WIDE * bc;
        b_of[(v * K + k) * BPITCH + j] = WIDE_LOAD(B, place);
    }
#endif
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    wide c[TI][TJ];
    CLA_UNROLL for (int i = 0; i < TI; i++)
        CLA_UNROLL for (int j = 0; j < TJ; j++) c[i][j] = WIDE_ZERO;
    CLA_UNROLL for (int k = 0; k < K; k++) {
        cla_lane a[TI];
        wide b[TJ];
        CLA_UNROLL for (int i = 0; i < TI; i++)
            a[i] = CLA_CONJUGATED(ACONJ, A_OF(AOWN ? given : 0, min(ti * TI + i, M - 1), k));
        CLA_UNROLL for (int j = 0; j < TJ; j++)
            b[j] = CLA_CONJUGATED(BCONJ, B_OF(BOWN ? given : 0, k, min(j * TEAMJ + tj, UNITS - 1)));
        CLA_UNROLL for (int i = 0; i < TI; i++)
            CLA_UNROLL for (int j = 0; j < TJ; j++) c[i][j] = WIDE_FMA(a[i], b[j], c[i][j]);
    }
#if FLAT
    CLA_UNROLL for (int i = 0; i < TI; i++)
        CLA_UNROLL for (int j = 0; j < TJ; j++)
            if (WITHIN(ti * TI + i, M, TI))
                if (WITHIN(j * TEAMJ + tj, N, TJ))
                    c_of[l * M * N + (ti * TI + i) * N + j * TEAMJ + tj] =
                        cla_lane_scale(CLA_VALUE(alpha), c[i][j]);
    barrier(CLK_LOCAL_MEM_FENCE);
    C += c0 + q0 * NUMBERS(M * N);
    const int count = (int)min((long)LANES, nm - q0) * NUMBERS(M * N);
#if BETA
    for (int e = t; e < count / CLA_PARTS; e += GROUP) {
        const cla_lane c = cla_lane_load_apart(C, e * CLA_PARTS, 1);
        cla_lane_store_apart(C, e * CLA_PARTS, 1, cla_added(c_of[e], CLA_VALUE(beta), c));
    }
#else
    CLA_LOCAL const CLA_REAL *from = (CLA_LOCAL const CLA_REAL *)c_of;
    EACH_FLAT(M * N, count, *(__global flat *)(C + f) = *(CLA_LOCAL const flat *)(from + f);, C[u] = from[u];)
#endif
#else
    if (q0 + l < nm) {
        C += CLA_BEGIN(2, c0, q0 + l, cstep);
        CLA_UNROLL for (int i = 0; i < TI; i++)
            CLA_UNROLL for (int j = 0; j < TJ; j++)
                if (WITHIN(ti * TI + i, M, TI))
                    if (WITHIN(j * TEAMJ + tj, UNITS, TJ)) {
                        const long place = (ti * TI + i) * cr + (j * TEAMJ + tj) * WIDE * cc;
                        const wide x = WIDE_SCALE(CLA_VALUE(alpha), c[i][j]);
                        WIDE_STORE(C, place, BETA ? WIDE_ADDED(x, CLA_VALUE(beta), WIDE_LOAD(C, place)) : x);
                    }
    }
#endif
}
