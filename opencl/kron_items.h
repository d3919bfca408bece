/* Batches of Kronecker products whose sizes are known when they are compiled, in one pass over memory: what the kernels
 * have in common. A work-group takes ITEMS items into local memory, where factors are applied along one axis after the
 * other.
 *
 * Define FACTORS, 1 to 3, which are those of axis C, of A and C, or of all; NA, NB, NC, MA, MB, MC, the sizes, 1 of an
 * axis that there is not; XV, YV, AV, BV, CV: how many matrices are interleaved, 1 in ordinary arrays; INTERLEAVED, 1 if
 * neighbours in memory are items, else they are along axis C; AOWN, BOWN, COWN, 1 if each item has its own factor; ACONJ,
 * BCONJ, CCONJ, 1 to conjugate; BETA, 0 if beta is 0. SUM, 1: the sum of square factors along their axes, not their
 * product. Strides count CLA_REAL; where they are known they may be macros too: XA, XB, XC, YA, YB, YC.
 */
#include "lane.h"
#include "unroll.h"

#ifndef FACTORS
#define FACTORS 3
#define NA 4
#define NB 4
#define NC 4
#define MA 4
#define MB 4
#define MC 4
#define XV 1
#define YV 1
#define AV 1
#define BV 1
#define CV 1
#define AOWN 0
#define BOWN 0
#define COWN 0
#define ACONJ 0
#define BCONJ 0
#define CCONJ 0
#define INTERLEAVED 0
#define BETA 1
#define SUM 0
#define GROUP 32 /* tunables of kron_team.cl */
#define ITEMS 2
#define PENCILS 1
#define ROWS 4
#define DIRECT 0
#define WHOLE 1
#define ROUNDS 1
#define AHEAD 0
#define WIDE 1
#define SLICES 1 /* and of kron_mma.cl */
#define TALL 1
#endif

#ifndef XC
#define XA xa
#define XB xb
#define XC xc
#endif
#ifndef YC
#define YA ya
#define YB yb
#define YC yc
#endif
#if WIDE == 1
typedef cla_lane cla_wide;
#define WIDE_FMA(f, x, y) cla_lane_fma(f, x, y)
#define WIDE_LOAD(p, place, V) cla_lane_load_apart(p, place, V)
#define WIDE_STORE(p, place, V, x) cla_lane_store_apart(p, place, V, x)
#define WIDE_SCALE(f, x) cla_lane_scale(f, x)
#define WIDE_REAL(a) cla_lane_real(a)
#define SPLIT(x, j, a) (a)[j] = x
#define JOINED(a, j) (a)[j]
#else
typedef CLA_PASTE(CLA_REAL, WIDE) cla_wide;
#define WIDE_FMA(f, x, y) fma(CLA_ALL(cla_wide, f), x, y)
#define WIDE_LOAD(p, place, V) (*(__global const cla_wide *)((p) + (place)))
#define WIDE_STORE(p, place, V, x) *(__global cla_wide *)((p) + (place)) = x
#define WIDE_SCALE(f, x) ((f) * (x))
#define WIDE_REAL(a) CLA_ALL(cla_wide, a)
#define SPLIT(x, j, a) CLA_PASTE(vstore, WIDE)(x, j, a)
#define JOINED(a, j) CLA_PASTE(vload, WIDE)(j, a)
#endif
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define ROUNDED(m) (((m) + ROWS - 1) / ROWS * ROWS)
#define LA LARGER(NA, MA)
#define LB LARGER(NB, MB)
#define LC (INTERLEAVED ? LARGER(NC, MC) : LARGER(NC, MC) / WIDE | 1) /* odd: neighbours are in different banks */
#define PLACE(l, a, b, c) \
    (INTERLEAVED ? (((a) * LB + (b)) * LC + (c)) * ITEMS + (l) : (((l) * LA + (a)) * LB + (b)) * LC + (c))
#define ITEM(V, q, step) ((q) / (V) * (step) + (q) % (V))

/* Number e of all pairs (u of U, v of V) of all items: neighbours are items if INTERLEAVED, else v. */
#define LANE(e, U, V) (INTERLEAVED ? (e) % ITEMS : (e) / ((U) * (V)))
#define OUTER(e, U, V) (INTERLEAVED ? (e) / ITEMS / (V) : (e) / (V) % (U))
#define INNER(e, U, V) (INTERLEAVED ? (e) / ITEMS % (V) : (e) % (V))

#define X_PLACE(l, a, b, c) (x0 + ITEM(XV, min(q0 + (l), nm - 1), xstep) + (a) * XA + (b) * XB + (c) * XC)
#define X_AT(l, a, b, c) WIDE_LOAD(X, X_PLACE(l, a, b, (c) * WIDE), XV)
#define TO_Y(l, a, b, c, value) \
    if (q0 + (l) < nm) { \
        const long place = y0 + ITEM(YV, q0 + (l), ystep) + (a) * YA + (b) * YB + (c) * WIDE * YC; \
        const cla_wide product = value; \
        WIDE_STORE(Y, place, YV, BETA ? product + WIDE_SCALE(cla_lane_of(beta, beta_im), WIDE_LOAD(Y, place, YV)) \
                                      : product); \
    }

/* f <- the factor, m x n, times alpha for one of them: ROWS rows after the other, each column by column, up to zeros */
#define KEEP(F, f, m, n, scaled) \
    for (int e = t; e < (F##OWN ? ITEMS : 1) * ROUNDED(m) * (n); e += GROUP) { \
        const long q = F##OWN ? min(q0 + e / (ROUNDED(m) * (n)), nm - 1) : 0; \
        const int i = e % ROWS + e / (ROWS * (n)) % (ROUNDED(m) / ROWS) * ROWS, j = e / ROWS % (n); \
        cla_lane a = cla_lane_real(0); \
        if (i < (m)) a = cla_lane_load_apart(F, F##0 + ITEM(F##V, q, F##step) + i * F##r + j * F##c, F##V); \
        if (F##CONJ) a = cla_lane_conj(a); \
        f[e] = scaled ? cla_lane_scale(cla_lane_of(alpha, alpha_im), a) : a; \
    }

/* Pencil p of so many that lie along an axis, of a work-item the first of which is `first`; that one again where there
 * are no more, since those of others may be overwritten already. */
#define PENCIL(first, p, count) ((first) + (p) * GROUP < (count) ? (first) + (p) * GROUP : (first))
/* Apply a factor f, m x n, along an axis of `type`, of which GET reads n numbers and PUT writes ROWS from i0 on. */
#define APPLY(type, zero, times, own, f, m, n, U, V, GET, PUT) \
    for (int e0 = t; e0 < ITEMS * (U) * (V); e0 += GROUP * PENCILS) { \
        type x[PENCILS][n]; \
        CLA_UNROLL for (int p = 0; p < PENCILS; p++) { \
            const int e = PENCIL(e0, p, ITEMS * (U) * (V)); \
            GET(x[p], LANE(e, U, V), OUTER(e, U, V), INNER(e, U, V)) \
        } \
        for (int i0 = 0; i0 < (m); i0 += ROWS) { \
            type y[PENCILS][ROWS]; \
            CLA_UNROLL for (int p = 0; p < PENCILS; p++) \
                CLA_UNROLL for (int i = 0; i < ROWS; i++) y[p][i] = zero; \
            CLA_UNROLL for (int j = 0; j < (n); j++) { \
                CLA_UNROLL for (int i = 0; i < ROWS; i++) \
                    CLA_UNROLL for (int p = 0; p < PENCILS; p++) { \
                        const int l = own ? LANE(PENCIL(e0, p, ITEMS * (U) * (V)), U, V) : 0; \
                        y[p][i] = times(f[(l * ROUNDED(m) + i0) * (n) + j * ROWS + i], x[p][j], y[p][i]); \
                    } \
            } \
            CLA_UNROLL for (int p = 0; p < PENCILS; p++) { \
                const int e = e0 + p * GROUP; \
                if (ITEMS * (U) * (V) % (GROUP * PENCILS) == 0 || e < ITEMS * (U) * (V)) { \
                    PUT(y[p], LANE(e, U, V), OUTER(e, U, V), INNER(e, U, V)) \
                } \
            } \
        } \
    }
#define ALONG(own, f, m, n, U, V, GET, PUT) APPLY(cla_wide, WIDE_REAL(0), WIDE_FMA, own, f, m, n, U, V, GET, PUT)
#define EACH_ROW(m) CLA_UNROLL for (int i = 0; i < ROWS; i++) if ((m) % ROWS == 0 || i0 + i < (m))

#if SUM
#define FIRST(x, place) tile[place] = x;
#define INTO(y, place) sums[place] = y
#define ONTO(y, place) sums[place] += y
#define PLUS(y, place) (y) + sums[place]
#else
#define sums tile
#define FIRST(x, place)
#define INTO(y, place) tile[place] = y
#define ONTO INTO
#define PLUS(y, place) y
#endif
#define GET_A(x, l, b, c) \
    CLA_UNROLL for (int j = 0; j < NA; j++) { \
        (x)[j] = X_AT(l, j, b, c); \
        FIRST((x)[j], PLACE(l, j, b, c)) \
    }
#define PUT_A(y, l, b, c) EACH_ROW(MA) INTO((y)[i], PLACE(l, i0 + i, b, c));
#define GET_B(x, l, a, c) CLA_UNROLL for (int j = 0; j < NB; j++) (x)[j] = tile[PLACE(l, a, j, c)];
#if WHOLE
#define PUT_B(y, l, a, c) EACH_ROW(MB) ONTO((y)[i], PLACE(l, a, i0 + i, c));
#else
#define PUT_B(y, l, a, c) EACH_ROW(MB) TO_Y(l, a, i0 + i, c, PLUS((y)[i], PLACE(l, a, i0 + i, c)))
#endif
#define GET_C(x, l, a, b) CLA_UNROLL for (int j = 0; j < NC / WIDE; j++) SPLIT(tile[PLACE(l, a, b, j)], j, x);
#define PUT_C(y, l, a, b) \
    CLA_UNROLL for (int i = 0; i < ROWS / WIDE; i++) \
        if (MC % ROWS == 0 || i0 + i * WIDE < MC) { \
            const int place = PLACE(l, a, b, i0 / WIDE + i); \
            if (FACTORS > 1) ONTO(JOINED(y, i), place); \
            else INTO(JOINED(y, i), place); \
        }
#define ROW_C(x, l, a, b) CLA_UNROLL for (int j = 0; j < NC / WIDE; j++) SPLIT(X_AT(l, a, b, j), j, x);
#define DOWN_A(x, l, b, c) CLA_UNROLL for (int j = 0; j < NA; j++) (x)[j] = tile[PLACE(l, j, b, c)];
#define OUT_A(y, l, b, c) EACH_ROW(MA) TO_Y(l, i0 + i, b, c, (y)[i])
#define BETWEEN barrier(CLK_LOCAL_MEM_FENCE);
#define EACH(na, nb, nc, l, a, b, c) \
    for (int e = t; e < ITEMS * (na) * (nb) * (nc); e += GROUP) \
        for (int l = LANE(e, (na) * (nb), nc), r = OUTER(e, (na) * (nb), nc), a = r / (nb), b = r % (nb), \
                 c = INNER(e, (na) * (nb), nc), once = 1; once; once = 0)

/* The A axis of items that are `later`, before it is their turn */
#define FETCH(later) \
    { \
        const long now = q0, q0 = now + (later); \
        CLA_UNROLL for (int p = 0; p < PENCILS; p++) { \
            const int e = min(PENCIL(t, p, ITEMS * NB * (NC / WIDE)), ITEMS * NB * (NC / WIDE) - 1); \
            const int l = LANE(e, NB, NC / WIDE), b = OUTER(e, NB, NC / WIDE), c = INNER(e, NB, NC / WIDE); \
            CLA_UNROLL for (int j = 0; j < NA; j++) ahead[p][j] = X_AT(l, j, b, c); \
        } \
    }
#define GET_AHEAD(x, l, b, c) \
    CLA_UNROLL for (int j = 0; j < NA; j++) { \
        (x)[j] = ahead[p][j]; \
        FIRST((x)[j], PLACE(l, j, b, c)) \
    }

/* Apply the factors that are kept in a, b and c: to what GET reads, and put products of A and C into the tile; PUT takes
 * those of B. */
#define MULTIPLY(own_a, a, own_b, b, own_c, c, GET, PUT, MEANWHILE) \
    if (FACTORS > 1) { \
        ALONG(own_a, a, MA, NA, NB, NC / WIDE, GET, PUT_A) \
        MEANWHILE \
        BETWEEN \
    } \
    APPLY(cla_lane, cla_lane_real(0), cla_lane_fma, own_c, c, MC, NC, MA, NB, GET_C, PUT_C) \
    BETWEEN \
    if (FACTORS > 2) { ALONG(own_b, b, MB, NB, MA, MC / WIDE, GET_B, PUT) }

#define FACTOR(F) , __global const CLA_REAL *restrict F, long F##0, long F##step, long F##r, long F##c
#define KEPT(F, f, m, n) __local cla_lane f[(F##OWN ? ITEMS : 1) * (n) * ROUNDED(m)] __attribute__((aligned(16)));
#define ITEMS_OF(X, x) X, long x##0, long x##step, long x##a, long x##b, long x##c
#define COMMON \
    long nm, CLA_REAL alpha, CLA_REAL alpha_im, CLA_REAL beta, CLA_REAL beta_im, \
        __global const CLA_REAL *restrict ITEMS_OF(X, x), __global CLA_REAL *restrict ITEMS_OF(Y, y) \
        FACTOR(A) FACTOR(B) FACTOR(C)
