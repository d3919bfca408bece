/* Real tridiagonal systems in ordinary arrays without row interchanges, one work-item for each, where systems are
 * neighbours in memory: x <- inv(A) rhs, and nothing is kept. Define BOTH_MINORS, SOURCE, which band_rows.h explains, but
 * for 2, KL = KU = 1, and
 *
 * COLUMNS  right-hand sides
 * TURNS    rows that are on their way while as many are worked on
 * HERE     a multiple of TURNS: what the way back needs of so many rows, the first, stays in local memory
 *
 * That of all others is in memory that is used again by the packs that follow: it stays in a cache.
 * The last leading minor over that before is the pivot. Minors follow from each other without a division, which would
 * take most of the time from one row to the next, and are scaled by powers of 2.
 */
#include "band_rows.h"
#include "room.h"
#include "once.h"

#ifndef COLUMNS
#define COLUMNS 1
#define TURNS 4
#define HERE 8
#endif

#if !CLA_COMPLEX
#define EACH_ROW CLA_UNROLL for (int e = 0; e < TURNS; e++)
#define EACH_COLUMN CLA_UNROLL for (int j = 0; j < COLUMNS; j++)
#define NUMBER_OF(k, t) (((k) * (1 + COLUMNS) + (t)) * CLA_VLEN + l)
#define KEEP(k, t, x) \
    if (k0 < HERE) room[NUMBER_OF(k, t)] = x; \
    else work[NUMBER_OF(k - HERE, t)] = x;

#ifdef __CUDACC__
#define QUOTIENT(a, b) __fdividef(a, b) /* right to 2 units, as that of OpenCL C */
#else
#define QUOTIENT(a, b) ((a) / (b))
#endif

/* 1 / m, where |m| is at least 1 and less than 2. */
CLA_INLINE CLA_REAL near_one(CLA_REAL m)
{
    CLA_REAL x = QUOTIENT(1.0f, (float)m);
    CLA_UNROLL for (int turn = 0; turn < (sizeof(CLA_REAL) == 8 ? 2 : 1); turn++) x = fma(x, cla_lane_fnma(m, x, 1), x);
    return x;
}

/* next <- numbers of the matrix and right-hand sides in the rows from k0 on, which follow those of the last call. */
#define FETCH(k0) \
    CLA_UNROLL for (int s = 0; s < NUMBERS; s++) EACH_ROW { \
        const int k = (k0) + e; \
        next[s][e] = 0; \
        if (k < n - max(s - 1, 0) && (s > 0 || k > 0)) next[s][e] = cla_load_once(at[s]); \
        at[s] += APART && s == 1 ? B.rs : APART && s == 2 ? C.rs : A.rs; \
    } \
    EACH_COLUMN EACH_ROW { \
        next[NUMBERS + j][e] = 0; \
        if ((k0) + e < n) next[NUMBERS + j][e] = cla_load_once(at[NUMBERS + j]); \
        at[NUMBERS + j] += R.rs; \
    }

/* next <- what is kept of the rows from k0 on. */
#define FETCH_BACK(k0) \
    CLA_UNROLL for (int t = 0; t <= COLUMNS; t++) EACH_ROW \
    { \
        if ((k0) < HERE) next[t][e] = room[NUMBER_OF((k0) + e, t)]; \
        else next[t][e] = work[NUMBER_OF((k0) + e - HERE, t)]; \
    }

/* Solve the system of number q; returns its info. */
CLA_INLINE int solve(long q, int n, int l, long inner, ordinary A, ordinary B, ordinary C, ordinary R, ordinary X,
                     CLA_LOCAL CLA_REAL *room, __global CLA_REAL *work)
{
    __global CLA_REAL *at[NUMBERS + COLUMNS];
    CLA_REAL next[NUMBERS + COLUMNS][TURNS], minor = 1, before = 0, up = 0, last[COLUMNS];
    int first_bad = 0, k0;
    CLA_UNROLL for (int s = 0; s < NUMBERS; s++) {
        const int which = APART ? s : 0;
        const ordinary D = which == 0 ? A : which == 1 ? B : C;
        at[s] = D.p + system_place(D, q, inner) + band_shift(s) * D.rs + band_diagonal(s) * D.cs;
    }
    EACH_COLUMN
    {
        at[NUMBERS + j] = R.p + system_place(R, q, inner) + j * R.cs;
        last[j] = 0;
    }
    FETCH(0)
    for (k0 = 0; k0 < n; k0 += TURNS) { /* rows behind the last are zeros, and so is what is kept of them */
        CLA_REAL now[NUMBERS + COLUMNS][TURNS], row[TURNS][WIDTH], scale[TURNS + 1], quotient[TURNS + 1];
        CLA_UNROLL for (int s = 0; s < NUMBERS + COLUMNS; s++) EACH_ROW now[s][e] = next[s][e];
        FETCH(k0 + TURNS)
        scale[0] = inverse_power(minor);
        quotient[0] = minor * scale[0];
        EACH_ROW
        {
            CLA_REAL number[NUMBERS];
            CLA_UNROLL for (int s = 0; s < NUMBERS; s++) number[s] = now[s][e];
            band_row(number, k0 + e, n, row[e]);
            /* both products are rounded, so that they cancel where they are equal */
            minor = fma(row[e][1], quotient[e], (CLA_REAL)0) - fma(row[e][0] * scale[e], up * before, (CLA_REAL)0);
            const int zero = minor == 0, bad = SOURCE >= 3 ? !(minor * quotient[e] > 0) : zero;
            if (first_bad == 0 && k0 + e < n && bad) first_bad = k0 + e + 1;
            minor = zero ? quotient[e] : minor;
            before = quotient[e];
            up = row[e][2];
            scale[e + 1] = inverse_power(minor);
            quotient[e + 1] = minor * scale[e + 1];
        }
        EACH_ROW
        {
            const CLA_REAL inverse = quotient[e] * scale[e + 1] * near_one(quotient[e + 1]);
            const CLA_REAL multiple = row[e][2] * inverse;
            KEEP(k0 + e, 0, multiple)
            EACH_COLUMN
            {
                last[j] = cla_lane_fnma(row[e][0] * inverse, last[j], now[NUMBERS + j][e] * inverse);
                KEEP(k0 + e, 1 + j, last[j])
            }
        }
    }
    EACH_COLUMN last[j] = 0;
    k0 -= TURNS;
    FETCH_BACK(k0)
    for (; k0 >= 0; k0 -= TURNS) {
        CLA_REAL now[1 + COLUMNS][TURNS];
        CLA_UNROLL for (int t = 0; t <= COLUMNS; t++) EACH_ROW now[t][e] = next[t][e];
        if (k0 > 0) { FETCH_BACK(k0 - TURNS) }
        EACH_COLUMN
        {
            __global CLA_REAL *to = X.p + system_place(X, q, inner) + (k0 + TURNS - 1) * X.rs + j * X.cs;
            CLA_UNROLL for (int e = TURNS - 1; e >= 0; e--) {
                last[j] = cla_lane_fnma(now[0][e], last[j], now[1 + j][e]);
                if (k0 + e < n) cla_store_once(to, last[j]);
                to -= X.rs;
            }
        }
    }
    return first_bad;
}

__kernel CLA_GROUP_OF(CLA_VLEN) void both_minors(long nsys, long size, long inner, ORDINARY(a), ORDINARY(b),
                                                 ORDINARY(c), ORDINARY(r), ORDINARY(x), __global int *info,
                                                 __global CLA_REAL *places)
{
    CLA_ROOM_OF(CLA_REAL, room, (HERE ? HERE : 1) * (1 + COLUMNS) * CLA_VLEN);
    const int n = size, l = get_local_id(0), behind = max((n + TURNS - 1) / TURNS * TURNS - HERE, 0);
    const ordinary A = AS_ORDINARY(a), B = AS_ORDINARY(b), C = AS_ORDINARY(c), R = AS_ORDINARY(r), X = AS_ORDINARY(x);
    __global CLA_REAL *const work = places + get_group_id(0) * behind * (1 + COLUMNS) * CLA_VLEN;
    for (long q = get_global_id(0); q < nsys; q += get_global_size(0))
        info[q] = solve(q, n, l, inner, A, B, C, R, X, room, work);
}
#endif
