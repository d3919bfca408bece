/* Kronecker products: Y <- alpha (A x B x C) X + beta Y for one lane (pack level), and for batches.
 *
 * Y(i, j, k) <- alpha sum A(i, l) B(j, m) C(k, n) X(l, m, n) + beta Y(i, j, k)
 */
#ifndef CLA_KRON_CL
#define CLA_KRON_CL

#include "gemm.cl"

/* Two factors, ma x na and mb x nb: X is na x nb, Y ma x mb, W ma x nb, which is written to. As for cla_gemm, beta = 0 does
 * not read Y, and alpha = 0 reads nothing else; Y and W overlap nothing. */
CLA_INLINE void cla_kron2(int ma, int na, int mb, int nb, cla_lane alpha, cla_matrix A, cla_matrix B, cla_matrix X,
                          cla_lane beta, cla_matrix Y, cla_matrix W)
{
    const cla_lane zero = cla_lane_real(0);
    cla_gemm(ma, nb, na, cla_lane_is_zero(alpha) ? zero : cla_lane_real(1), A, X, zero, W);
    cla_gemm(ma, mb, nb, alpha, W, cla_transposed(B), beta, Y);
}

/* Row i of a matrix as a matrix with rows of n */
CLA_INLINE cla_matrix cla_row_as_matrix(cla_matrix X, int i, int n)
{
    X = cla_from(X, i, 0);
    X.rs = n * X.cs;
    return X;
}

/* Three factors: X is na x (nb nc), Y ma x (mb mc), W ma x (nb nc), Z mb x nc; W and Z are written to. */
CLA_INLINE void cla_kron3(int ma, int na, int mb, int nb, int mc, int nc, cla_lane alpha, cla_matrix A, cla_matrix B,
                          cla_matrix C, cla_matrix X, cla_lane beta, cla_matrix Y, cla_matrix W, cla_matrix Z)
{
    const cla_lane zero = cla_lane_real(0);
    cla_gemm(ma, nb * nc, na, cla_lane_is_zero(alpha) ? zero : cla_lane_real(1), A, X, zero, W);
    for (int i = 0; i < ma; i++)
        cla_kron2(mb, nb, mc, nc, alpha, B, C, cla_row_as_matrix(W, i, nc), beta, cla_row_as_matrix(Y, i, mc), Z);
}

/* A batch of any sizes, along one axis: Y(.., i, ..) <- alpha sum A(i, l) X(.., l, ..) + beta Y(.., i, ..), one work-item
 * for what lies along that axis. Define KRON_AXIS and AXES, how many axes there are beside it. Strides count CLA_REAL. */
#ifdef KRON_AXIS
#define ROWS 4 /* of A at a time */
#define OTHER_AXIS(k) , long size##k, long x_stride##k, long y_stride##k
#define GO_ALONG(k) \
    X += r % size##k * x_stride##k; \
    Y += r % size##k * y_stride##k; \
    r /= size##k;

/* Of xv matrices each that are side by side, 1 in ordinary arrays, the next are xstep further. along, 1: neighbours in
 * memory are items. A is m x n; with n = 0, Y <- beta Y. */
__kernel void kron_axis(long pencils, long nm, long along, long m, long n, CLA_REAL alpha, CLA_REAL alpha_im,
                        CLA_REAL beta, CLA_REAL beta_im, __global const CLA_REAL *A, long a0, long av, long astep,
                        long ai, long al, long aconj, __global const CLA_REAL *X, long x0, long xv, long xstep, long xl,
                        __global CLA_REAL *Y, long y0, long yv, long ystep, long yi CLA_UNROLL1(AXES, OTHER_AXIS))
{
    const long e = get_global_id(0), others = pencils / nm;
    if (e >= pencils) return;
    const long q = along ? e % nm : e / others;
    long r = along ? e / nm : e % others;
    A += a0 + q / av * astep + q % av;
    X += x0 + q / xv * xstep + q % xv;
    Y += y0 + q / yv * ystep + q % yv;
    CLA_UNROLL1(AXES, GO_ALONG)
    const cla_lane factor = cla_lane_of(beta, beta_im);
    for (long i0 = 0; i0 < m; i0 += ROWS) {
        cla_lane y[ROWS];
        CLA_UNROLL for (int i = 0; i < ROWS; i++) y[i] = cla_lane_real(0);
        for (long l = 0; l < n; l++) {
            const cla_lane x = cla_lane_load_apart(X, l * xl, xv);
            CLA_UNROLL for (int i = 0; i < ROWS; i++) {
                const cla_lane a = cla_lane_load_apart(A, min(i0 + i, m - 1) * ai + l * al, av);
                y[i] = cla_lane_fma(aconj ? cla_lane_conj(a) : a, x, y[i]);
            }
        }
        CLA_UNROLL for (int i = 0; i < ROWS; i++)
            if (i0 + i < m) {
                const long place = (i0 + i) * yi;
                y[i] = cla_lane_scale(cla_lane_of(alpha, alpha_im), y[i]);
                if (!cla_lane_is_zero(factor)) y[i] += cla_lane_scale(factor, cla_lane_load_apart(Y, place, yv));
                cla_lane_store_apart(Y, place, yv, y[i]);
            }
    }
}
#undef ROWS
#endif

/* X <- X / D for nm items of so many numbers; items and numbers are as far apart as these strides say. */
#ifdef KRON_DIVIDE
__kernel void kron_divide(long nm, long count, long along, __global CLA_REAL *X, long x0, long xv, long xstep, long xr,
                          __global const CLA_REAL *D, long d0, long dv, long dstep, long dr)
{
    const long e = get_global_id(0);
    if (e >= nm * count) return;
    const long q = along ? e % nm : e / count, r = along ? e / nm : e % count;
    X += x0 + q / xv * xstep + q % xv + r * xr;
    D += d0 + q / dv * dstep + q % dv + r * dr;
    const cla_lane reciprocal = cla_lane_recip(cla_lane_load_apart(D, 0, dv));
    cla_lane_store_apart(X, 0, xv, cla_lane_mul(reciprocal, cla_lane_load_apart(X, 0, xv)));
}
#endif

/* A batch whose sizes are known when this is compiled, in one pass over memory. A work-group takes ITEMS items into local
 * memory, where factors are applied along one axis after the other: a work-item takes what lies along an axis into its
 * registers, and puts the products in its place. The first of several factors takes X as it comes, and the last of three
 * gives Y as it goes, where neighbours are neighbours in memory.
 *
 * Define KRON_TEAM and FACTORS, 1 to 3, which are those of axis C, of A and C, or of all; NA, NB, NC, MA, MB, MC, the
 * sizes, 1 of an axis that there is not; XV, YV, AV, BV, CV: how many matrices are interleaved, 1 in ordinary arrays;
 * INTERLEAVED, 1 if neighbours in memory are items, else they are along axis C; AOWN, BOWN, COWN, 1 if each item has its
 * own factor; ACONJ, BCONJ, CCONJ, 1 to conjugate; BETA, 0 if beta is 0. SUM, 1: the sum of square factors
 * along their axes, not their product. Strides count CLA_REAL; where they are known they may be macros too: XA, XB, XC,
 * YA, YB, YC.
 *
 * GROUP    work-items of a work-group
 * ITEMS    items of a work-group
 * PENCILS  what a work-item has in its registers at a time of what lies along an axis
 * ROWS     rows of a factor at a time, a multiple of WIDE
 * DIRECT   1: two factors are applied along C first, to rows of X as they come: for short rows
 * WHOLE    1: what the last of three makes goes through local memory, so that neighbours write whole lines
 * ROUNDS   how often a work-group takes on ITEMS items, where there are many: then common factors are read once
 * AHEAD    1: of two or three factors, loads of the next items are under way during the products of the last; PENCILS
 *          are then all that a work-item has to do
 * WIDE     real numbers along axis C that are moved at a time: it divides NC and MC and where they begin in memory, and
 *          these numbers are neighbours
 */
#if defined(KRON_TEAM) || defined(KRON_SOLVE) || defined(KRON_MMA)
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

/* Apply a factor f, m x n, along an axis of `type`, of which GET reads n numbers and PUT writes ROWS from i0 on. */
#define APPLY(type, zero, times, own, f, m, n, U, V, GET, PUT) \
    for (int e0 = t; e0 < ITEMS * (U) * (V); e0 += GROUP * PENCILS) { \
        type x[PENCILS][n]; \
        CLA_UNROLL for (int p = 0; p < PENCILS; p++) { \
            const int e = min(e0 + p * GROUP, ITEMS * (U) * (V) - 1); \
            GET(x[p], LANE(e, U, V), OUTER(e, U, V), INNER(e, U, V)) \
        } \
        for (int i0 = 0; i0 < (m); i0 += ROWS) { \
            type y[PENCILS][ROWS]; \
            CLA_UNROLL for (int p = 0; p < PENCILS; p++) \
                CLA_UNROLL for (int i = 0; i < ROWS; i++) y[p][i] = zero; \
            CLA_UNROLL for (int j = 0; j < (n); j++) { \
                CLA_UNROLL for (int i = 0; i < ROWS; i++) \
                    CLA_UNROLL for (int p = 0; p < PENCILS; p++) { \
                        const int l = own ? LANE(min(e0 + p * GROUP, ITEMS * (U) * (V) - 1), U, V) : 0; \
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
            const int e = min(t + p * GROUP, ITEMS * NB * (NC / WIDE) - 1); \
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
#endif

#ifdef KRON_TEAM
__kernel CLA_GROUP_OF(GROUP) void kron_team(COMMON)
{
    __local cla_wide tile[ITEMS * LA * LB * LC];
#if SUM
    __local cla_wide sums[ITEMS * LA * LB * LC];
#endif
    KEPT(A, a_of, MA, NA)
    KEPT(B, b_of, MB, NB)
    KEPT(C, c_of, MC, NC)
    const int t = get_local_id(0);
    const long step = get_num_groups(0) * (long)ITEMS;
    long q0 = get_group_id(0) * (long)ITEMS;
#if AHEAD
    cla_wide ahead[PENCILS][NA];
    FETCH(0)
#define GET_FIRST GET_AHEAD
#define FETCH_NEXT if (q0 + step < nm) FETCH(step)
#else
#define GET_FIRST GET_A
#define FETCH_NEXT
#endif
#define KEEP_THOSE(now) \
    if (AOWN == now) { KEEP(A, a_of, MA, NA, SUM && FACTORS > 1) } \
    if (BOWN == now) { KEEP(B, b_of, MB, NB, SUM && FACTORS > 2) } \
    if (COWN == now) { KEEP(C, c_of, MC, NC, 1) }
    KEEP_THOSE(0)
    for (; q0 < nm; q0 += step) {
        KEEP_THOSE(1)
#if FACTORS == 1
        EACH(1, 1, NC / WIDE, l, a, b, c) tile[PLACE(l, a, b, c)] = X_AT(l, a, b, c);
#endif
        BETWEEN
#if DIRECT
        APPLY(cla_lane, cla_lane_real(0), cla_lane_fma, COWN, c_of, MC, NC, NA, NB, ROW_C, PUT_C)
        BETWEEN
        ALONG(AOWN, a_of, MA, NA, NB, MC / WIDE, DOWN_A, OUT_A)
#else
        MULTIPLY(AOWN, a_of, BOWN, b_of, COWN, c_of, GET_FIRST, PUT_B, FETCH_NEXT)
#if WHOLE
        BETWEEN
#endif
#if WHOLE || FACTORS < 3
        EACH(MA, MB, MC / WIDE, l, a, b, c) TO_Y(l, a, b, c, sums[PLACE(l, a, b, c)])
#endif
#endif
        if (ROUNDS == 1) break;
#if FACTORS == 1 || AOWN + BOWN + COWN > 0
        BETWEEN
#endif
    }
}
#endif

/* Likewise of two or three common factors on the matrix units of NVIDIA's GPUs, in doubles, of real numbers. A slice of
 * an item is what there is for one number of axis A, of three factors, or all of it, of two. A warp takes slices into its
 * registers, and the factors of their rows and columns; the factor of axis A is applied to what local memory has of them.
 *
 * GROUP, WIDE, ROUNDS, AHEAD   as above; warps are 32 work-items; AHEAD, 1: all slices of ITEMS are in registers at once
 * ITEMS    items of a work-group
 * SLICES   that a warp has in its registers at a time
 * TALL     of mma.h
 */
#ifdef KRON_MMA
#include "mma.h"

#define WARPS (GROUP / 32)
#define BLOCKS(m) (((m) + 7) / 8)
#define STEPS(n) (((n) + 3) / 4)
/* What is at place p of block k of n numbers, n or more if nothing is. If a last block has four at most they are at its
 * even places, which is one step: step s has place 2 r + s % 2 of block s / 2 in work-item r. */
#define NUMBER(n, k, p) (8 * (k) + 4 < (n) ? 8 * (k) + (p) : (p) % 2 ? (n) : 8 * (k) + (p) / 2)
#define STEP(n, s) NUMBER(n, (s) / 2, 2 * r + (s) % 2)
#define FRAGMENT(F, f, m, n, scale) \
    double f[BLOCKS(m)][STEPS(n)]; \
    CLA_UNROLL for (int i = 0; i < BLOCKS(m); i++) \
        CLA_UNROLL for (int s = 0; s < STEPS(n); s++) \
            f[i][s] = 8 * i + g < (m) && STEP(n, s) < (n) \
                          ? (scale) * cla_lane_load_apart(F, F##0 + (8 * i + g) * F##r + STEP(n, s) * F##c, F##V) \
                          : 0;
#define ZERO(d, rows, columns) \
    double d[rows][columns][2]; \
    CLA_UNROLL for (int i = 0; i < (rows); i++) CLA_UNROLL for (int j = 0; j < (columns); j++) d[i][j][0] = d[i][j][1] = 0;
#if FACTORS == 3
#define ITEM_SLICES NA
#define NR NB /* rows of a slice */
#define MR MB
#define X_NUMBER(l, a, i, j) X[X_PLACE(l, a, i, j)]
#define X_PAIR(l, a, i, j) X_AT(l, a, i, j)
#else
#define ITEM_SLICES 1
#define NR NA
#define MR MA
#define X_NUMBER(l, a, i, j) X[X_PLACE(l, i, 0, j)]
#define X_PAIR(l, a, i, j) X_AT(l, i, 0, j)
#endif
#define ALL_SLICES (ITEMS * ITEM_SLICES)
#define SLICE ((MB * MC + 1) / 4 * 4 + 2) /* room in the tile: axis A is in different banks */
#define FETCH(x, u) \
    { \
        const int l = min(u, ALL_SLICES - 1) / ITEM_SLICES, a = min(u, ALL_SLICES - 1) % ITEM_SLICES; \
        CLA_UNROLL for (int j = 0; j < BLOCKS(NR); j++) \
            CLA_UNROLL for (int s = 0; s < STEPS(NC); s++) { \
                const int i = NUMBER(NR, j, g), k = STEP(NC, s); \
                if (WIDE == 1 || 8 * (s / 2) + 4 >= NC) x[j][s] = i < NR && k < NC ? X_NUMBER(l, a, i, k) : 0; \
                else if (s % 2 == 0) { \
                    cla_lane pair[2] = {0, 0}; \
                    if (i < NR && k < NC) SPLIT(X_PAIR(l, a, i, k / WIDE), 0, pair); \
                    x[j][s] = pair[0]; \
                    x[j][s + 1] = pair[1]; \
                } \
            } \
    }

__kernel CLA_GROUP_OF(GROUP) void kron_mma(COMMON)
{
    const int t = get_local_id(0), warp = t / 32, g = t % 32 / 4, r = t % 4;
    const long step = get_num_groups(0) * (long)ITEMS;
    long q0 = get_group_id(0) * (long)ITEMS;
    double x[SLICES][BLOCKS(NR)][STEPS(NC)];
#if FACTORS == 3
    __local cla_lane tile[ALL_SLICES * SLICE + 8];
    FRAGMENT(A, a_of, MA, NA, 1)
    FRAGMENT(B, r_of, MB, NB, 1)
#else
    FRAGMENT(A, r_of, MA, NA, 1)
#endif
    FRAGMENT(C, c_of, MC, NC, alpha)
    if (AHEAD) CLA_UNROLL for (int v = 0; v < SLICES; v++) FETCH(x[v], warp * SLICES + v)
    for (; q0 < nm; q0 += step) {
        for (int u0 = warp * SLICES; u0 < ALL_SLICES; u0 += WARPS * SLICES) {
            if (!AHEAD) CLA_UNROLL for (int v = 0; v < SLICES; v++) FETCH(x[v], u0 + v)
            CLA_UNROLL for (int v = 0; v < SLICES; v++) {
                ZERO(turned, BLOCKS(MC), BLOCKS(NR))
                ZERO(slice, BLOCKS(MR), BLOCKS(MC))
#define OF_X(j) x[v][j]
#define OF_TURNED(j) turned[j][0]
                CLA_MMA_BLOCKS(BLOCKS(MC), BLOCKS(NR), STEPS(NC), turned, c_of, OF_X)
                if (AHEAD && q0 + step < nm) {
                    const long now = q0, q0 = now + step;
                    FETCH(x[v], u0 + v)
                }
                CLA_MMA_BLOCKS(BLOCKS(MR), BLOCKS(MC), STEPS(NR), slice, r_of, OF_TURNED)
                CLA_UNROLL for (int i = 0; i < BLOCKS(MR); i++)
                    CLA_UNROLL for (int j = 0; j < BLOCKS(MC); j++) {
                        cla_lane pair[2] = {(cla_lane)slice[i][j][0], (cla_lane)slice[i][j][1]};
                        const int row = 8 * i + g, column = 8 * j + 2 * r;
                        CLA_UNROLL for (int h = 0; h < 2; h++)
                            if (u0 + v < ALL_SLICES && row < MR && column + h < MC) {
#if FACTORS == 3
                                tile[(u0 + v) * SLICE + row * MC + column + h] = pair[h];
#else
                                if (h % WIDE == 0) TO_Y(u0 + v, row, 0, column / WIDE + h, JOINED(pair, h))
#endif
                            }
                    }
            }
        }
#if FACTORS == 3
        BETWEEN
        for (int e = 0; e < (ITEMS * BLOCKS(MB * MC) + WARPS - 1) / WARPS; e++) {
            const int block = e * WARPS + warp, l = block / BLOCKS(MB * MC), p0 = block % BLOCKS(MB * MC) * 8;
            if (block < ITEMS * BLOCKS(MB * MC)) {
                double y[STEPS(NA)];
                ZERO(pencils, BLOCKS(MA), 1)
                CLA_UNROLL for (int s = 0; s < STEPS(NA); s++)
                    y[s] = STEP(NA, s) < NA ? tile[(l * NA + STEP(NA, s)) * SLICE + p0 + g] : 0;
#define OF_Y(j) y
                CLA_MMA_BLOCKS(BLOCKS(MA), 1, STEPS(NA), pencils, a_of, OF_Y)
                CLA_UNROLL for (int i = 0; i < BLOCKS(MA); i++) {
                    cla_lane pair[2] = {(cla_lane)pencils[i][0][0], (cla_lane)pencils[i][0][1]};
                    CLA_UNROLL for (int h = 0; h < 2; h += WIDE) {
                        const int p = p0 + 2 * r + h;
                        if (8 * i + g < MA && p < MB * MC)
                            TO_Y(l, 8 * i + g, p / MC, p % MC / WIDE, JOINED(pair, h / WIDE))
                    }
                }
            }
        }
        if (ROUNDS > 1) BETWEEN
#endif
        if (ROUNDS == 1) break;
    }
}
#endif

/* Likewise Y <- alpha (P x Q x R) D (A x B x C) X + beta Y with square factors, D the reciprocals of sums of one of K, of
 * L and of M, vectors of all axes. The macros are those of KRON_TEAM, also for P, Q, R, K, L, M; WIDE, WHOLE, SUM and
 * DIRECT are 1, 1, 0 and 0. */
#ifdef KRON_SOLVE
#define VALUE(F, i, q) cla_lane_load_apart(F, F##0 + ITEM(F##V, q, F##step) + (i) * F##r, F##V)
__kernel CLA_GROUP_OF(GROUP) void kron_solve(COMMON FACTOR(P) FACTOR(Q) FACTOR(R) FACTOR(K) FACTOR(L) FACTOR(M))
{
    __local cla_lane tile[ITEMS * LA * LB * LC];
    KEPT(A, a_of, NA, NA)
    KEPT(B, b_of, NB, NB)
    KEPT(C, c_of, NC, NC)
    KEPT(P, p_of, NA, NA)
    KEPT(Q, q_of, NB, NB)
    KEPT(R, r_of, NC, NC)
    const int t = get_local_id(0);
    const long q0 = get_group_id(0) * (long)ITEMS;
    KEEP(A, a_of, NA, NA, 0)
    KEEP(B, b_of, NB, NB, 0)
    KEEP(C, c_of, NC, NC, 0)
    KEEP(P, p_of, NA, NA, 0)
    KEEP(Q, q_of, NB, NB, 0)
    KEEP(R, r_of, NC, NC, 1)
    if (FACTORS == 1) EACH(1, 1, NC, l, a, b, c) tile[PLACE(l, a, b, c)] = X_AT(l, a, b, c);
    BETWEEN
    MULTIPLY(AOWN, a_of, BOWN, b_of, COWN, c_of, GET_A, PUT_B,)
    BETWEEN
    EACH(NA, NB, NC, l, a, b, c) {
        const long q = min(q0 + l, nm - 1);
        cla_lane total = VALUE(M, c, q);
        if (FACTORS > 1) total += VALUE(K, a, q);
        if (FACTORS > 2) total += VALUE(L, b, q);
        tile[PLACE(l, a, b, c)] = cla_lane_mul(cla_lane_recip(total), tile[PLACE(l, a, b, c)]);
    }
    BETWEEN
    MULTIPLY(POWN, p_of, QOWN, q_of, ROWN, r_of, DOWN_A, PUT_B,)
    BETWEEN
    EACH(NA, NB, NC, l, a, b, c) TO_Y(l, a, b, c, tile[PLACE(l, a, b, c)])
}
#endif

#endif
