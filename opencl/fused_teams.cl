/* Solutions and inverses of stacks of ordinary matrices in one pass: a team of work-items a matrix.
 *
 * Arguments and macros are those of ordinary.h. A work-item holds rows of A and of the right-hand sides in registers;
 * rows are not swapped, but each becomes a pivot's once, and is passed to the others through local memory. Define INV,
 * 1 for inverses, where R is N, else 0. Inverses are made in place of A, by the elimination of Gauss and Jordan: columns
 * move left as steps go, and one of the inverse comes in at the right, so that steps need not be written out. Tunables:
 *
 * ROWS      rows of a work-item
 * TEAM      work-items of a matrix, ROWS TEAM >= N
 * MATRICES  matrices of a work-group
 * STAGED    1: matrices go through local memory, so that neighbours read neighbours; they have no gaps
 * CLA_WARP  1: teams are parts of NVIDIA's warps, and need no barriers; TEAM is a power of 2, and work-groups are whole
 *           warps. 2: teams are warps of GPUs of compute capability 8.0 or more
 */
#include "elimination.h"
#include "ordinary.h"
#include "unroll.h"

#ifndef ROWS
#define INV 0
#define ROWS 2
#define TEAM 2
#define MATRICES 16
#define STAGED 1
#define CLA_WARP 0
#endif

#if INV
#define ALL N
#define FIRST 0 /* the column of the pivot */
#define EACH_STEP _Pragma("unroll 1")
#else
#define ALL (N + R)
#define FIRST k
#define EACH_STEP CLA_UNROLL
#endif
#define WIDTH (ALL + ALL % 2)
#define LINE (N | 1) /* odd: neighbours are in different banks */
#define TILE ((STAGED || INV) && N * LINE > N * R ? N * LINE : N * R)

#include "warp.h"

#if CLA_WARP == 2
typedef struct {
    int high;
    uint low;
} CLA_WORDS;
CLA_INLINE CLA_WORDS cla_words(CLA_REAL x)
{
    CLA_WORDS w;
    w.low = 0;
    if (sizeof(CLA_REAL) == 4) asm("mov.b32 %0, %1;" : "=r"(w.high) : "f"((float)x));
    else asm("mov.b64 {%0, %1}, %2;" : "=r"(w.low), "=r"(w.high) : "d"((double)x));
    return w;
}
CLA_INLINE int cla_most(int x)
{
    int y;
    asm volatile("redux.sync.max.s32 %0, %1, -1;" : "=r"(y) : "r"(x));
    return y;
}
CLA_INLINE uint cla_most_unsigned(uint x)
{
    uint y;
    asm volatile("redux.sync.max.u32 %0, %1, -1;" : "=r"(y) : "r"(x));
    return y;
}
CLA_INLINE int cla_first(int yes)
{
    int y;
    asm volatile("{.reg .pred p; .reg .b32 m; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 m, p, -1; brev.b32 m, m; "
                 "bfind.shiftamt.u32 %0, m;}" : "=r"(y) : "r"(yes));
    return y;
}
#endif

#if INV
#define OPERANDS CLA_ARGUMENT(A)
#else
#define OPERANDS CLA_ARGUMENT(A) CLA_ARGUMENT(B)
#endif

__kernel CLA_GROUP_OF(TEAM * MATRICES) void fused_team(long nm, long told, __global int *failed OPERANDS,
                                                       __global TARGET *restrict X)
{
    __local cla_lane tiles[MATRICES * TILE];
    __local cla_lane pivots[2 * MATRICES * WIDTH] __attribute__((aligned(16)));
    const int c = get_local_id(0) % TEAM, member = get_local_id(0) / TEAM;
    const long q = get_group_id(0) * (long)MATRICES + member, first = A0 + min(q, nm - 1) * Astep;
    CLA_LOCAL cla_lane *tile = tiles + member * TILE;
    cla_lane a[ROWS][ALL], r[ROWS];
    int bad = 0, step[ROWS]; /* at which a row becomes a pivot's: N of a free one, -1 of what is no row */
#if STAGED
    CLA_UNROLL for (int e0 = 0; e0 < N * N; e0 += TEAM) {
        const int e = e0 + c;
        if (e < N * N) tile[e / N * LINE + e % N] = CLA_NUMBER_AT(A, first + e * APARTS);
    }
    CLA_TOGETHER
#endif
    CLA_UNROLL for (int p = 0; p < ROWS; p++) {
        const int i = min(p * TEAM + c, N - 1);
        step[p] = p * TEAM + c < N ? N : -1;
        r[p] = cla_lane_real(0);
        CLA_UNROLL for (int j = 0; j < N; j++)
#if STAGED
            a[p][j] = tile[ARS > ACS ? i * LINE + j : j * LINE + i];
#else
            a[p][j] = CLA_NUMBER_AT(A, first + i * ARS + j * ACS);
#endif
#if !INV
        CLA_UNROLL for (int j = 0; j < R; j++)
            a[p][N + j] = CLA_NUMBER_AT(B, B0 + min(q, nm - 1) * Bstep + i * BRS + j * BCS);
#endif
    }
#if INV
    __local int rows[MATRICES * N]; /* of the pivots */
#endif
#if !CLA_WARP
    __local CLA_REAL sizes[MATRICES * TEAM];
#endif
    EACH_STEP for (int k = 0; k < N; k++) {
        CLA_LOCAL cla_lane *row = pivots + (member * 2 + k % 2) * WIDTH;
        CLA_REAL best = -1;
        int own = 0, place = c;
        CLA_UNROLL for (int p = 0; p < ROWS; p++) { /* what is not a number counts as infinite */
            const CLA_REAL size = step[p] == N ? fmin(cla_lane_abs1(a[p][FIRST]), (CLA_REAL)INFINITY) : -1;
            own = size > best ? p : own;
            best = size > best ? size : best;
        }
#if CLA_WARP == 2
        const CLA_WORDS bits = cla_words(best);
        int most = cla_most(bits.high);
        int first_one = bits.high == most;
        if (sizeof(CLA_REAL) == 8) {
            const uint low = first_one ? bits.low : 0, lowest = cla_most_unsigned(low);
            first_one = first_one && low == lowest;
        }
        place = cla_first(first_one);
#elif CLA_WARP
        CLA_UNROLL for (int distance = TEAM / 2; distance > 0; distance /= 2) {
            const CLA_REAL size = cla_other(best, distance);
            const int where = cla_other_int(place, distance), better = size > best || (size == best && where < place);
            best = better ? size : best;
            place = better ? where : place;
        }
#else
        sizes[member * TEAM + c] = best;
        CLA_TOGETHER
        best = -2;
        CLA_UNROLL for (int t = 0; t < TEAM; t++) {
            const CLA_REAL size = sizes[member * TEAM + t];
            place = size > best ? t : place;
            best = size > best ? size : best;
        }
#endif
        if (c == place) {
            CLA_UNROLL for (int j = FIRST; j < ALL; j++) {
                cla_lane x = a[0][j];
                CLA_UNROLL for (int p = 1; p < ROWS; p++) x = cla_lane_select(own == p, a[p][j], x);
                row[j] = x;
            }
            CLA_UNROLL for (int p = 0; p < ROWS; p++) step[p] = own == p ? k : step[p];
#if INV
            rows[member * N + k] = own * TEAM + c;
#endif
        }
        CLA_TOGETHER
        const cla_lane reciprocal = cla_pivot(row[FIRST], k, &bad);
        CLA_UNROLL for (int p = 0; p < ROWS; p++) {
            const cla_lane zero = cla_lane_real(0);
            const int others = INV ? step[p] != k : step[p] == N;
            const cla_lane multiple = cla_lane_select(others, cla_lane_mul(a[p][FIRST], reciprocal), zero);
            r[p] = cla_lane_select(step[p] == k, reciprocal, r[p]);
            CLA_UNROLL for (int j = FIRST + 1; j < ALL; j++)
                a[p][INV ? j - 1 : j] = cla_lane_fnma(multiple, row[j], a[p][j]);
#if INV
            a[p][N - 1] = cla_lane_fnma(multiple, cla_lane_real(1), cla_lane_real(!others));
#endif
        }
    }
#if INV
    CLA_UNROLL for (int p = 0; p < ROWS; p++)
        if (step[p] >= 0)
            CLA_UNROLL for (int j = 0; j < N; j++)
                tile[step[p] * LINE + rows[member * N + j]] = cla_lane_mul(r[p], a[p][j]);
    CLA_TOGETHER
#else
    CLA_UNROLL for (int k = N - 1; k >= 0; k--) {
        CLA_UNROLL for (int p = 0; p < ROWS; p++)
            if (step[p] == k)
                CLA_UNROLL for (int j = 0; j < R; j++) tile[k * R + j] = cla_lane_mul(r[p], a[p][N + j]);
        CLA_TOGETHER
        CLA_UNROLL for (int p = 0; p < ROWS; p++)
            if (step[p] < k)
                CLA_UNROLL for (int j = 0; j < R; j++)
                    a[p][N + j] = cla_lane_fnma(a[p][k], tile[k * R + j], a[p][N + j]);
    }
#endif
    if (q < nm)
        for (int e = c; e < N * R; e += TEAM)
            cla_put(X, q * (N * R) + e, CLA_CHECKED(tile[INV ? e / N * LINE + e % N : e]));
    if (c == 0) CLA_REPORT
}
