/* geqp3: A <- Q\R with A P = Q R for one lane (pack level) and for a batch (define GEQP3_BATCH).
 *
 * A is m x n, as geqrf leaves it; in every step the column with the largest norm of what is left comes first, of several
 * the first. Norms are sums of squares, anew in every step, or of scaled numbers where these overflow or underflow.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item factors one lane.
 */
#ifndef CLA_GEQP3_CL
#define CLA_GEQP3_CL

#include "householder.h"
#include "laswp.h"

/* The column with the largest sum of squares of those that were seen, the first of several. */
typedef struct {
    int column;
    CLA_REAL squares;
} cla_longest;

/* None is seen, or only NaN: then it is the first. */
CLA_INLINE cla_longest cla_none_seen(int first)
{
    cla_longest longest = {first, -1};
    return longest;
}

CLA_INLINE cla_longest cla_see(cla_longest longest, int column, CLA_REAL squares)
{
    cla_longest other = {column, squares};
    return squares > longest.squares ? other : longest;
}

/* Whether the sum of squares is right; if not, those of numbers that are multiplied by the scale are. */
CLA_INLINE int cla_is_right(CLA_REAL squares) { return squares >= 1 / CLA_RANGE && squares <= CLA_RANGE; }
CLA_INLINE CLA_REAL cla_scale_of_largest(CLA_REAL largest) { return fmin(1 / largest, CLA_RANGE); }

/* Of the columns of A from `first` on, and of their rows from there on, multiplied by `scale`. */
CLA_INLINE cla_longest cla_longest_column(int first, int m, int n, cla_matrix A, CLA_REAL scale)
{
    cla_longest longest = cla_none_seen(first);
    for (int j = first; j < n; j++) {
        CLA_REAL squares = 0;
        for (int i = first; i < m; i++) squares = cla_add_square(cla_get(A, i, j) * scale, squares);
        longest = cla_see(longest, j, squares);
    }
    return longest;
}

/* jpvt: n ints, column jpvt[j] of A became column j; tau: a column of min(m, n) numbers. */
CLA_INLINE void cla_geqp3(int m, int n, cla_matrix A, __global int *jpvt, cla_matrix tau)
{
    for (int j = 0; j < n; j++) cla_int_store(jpvt, j, j);
    cla_longest longest = cla_longest_column(0, m, n, A, 1);
    for (int k = 0; k < min(m, n); k++) {
        if (!cla_is_right(longest.squares)) {
            CLA_REAL largest = 0;
            for (int i = k; i < m; i++)
                for (int j = k; j < n; j++) largest = fmax(largest, cla_lane_abs1(cla_get(A, i, j)));
            longest = cla_longest_column(k, m, n, A, cla_scale_of_largest(largest));
        }
        const int p = longest.column, column = cla_int_load(jpvt, p);
        cla_int_store(jpvt, p, cla_int_load(jpvt, k));
        cla_int_store(jpvt, k, column);
        cla_swap_rows(k, p, m, cla_transposed(A));
        const cla_lane t = cla_reflector(m - k, cla_from(A, k, k));
        cla_set(tau, k, 0, t);
        const cla_matrix v = cla_from(A, k + 1, k);
        longest = cla_none_seen(k + 1);
        for (int j = k + 1; j < n; j++)
            longest = cla_see(longest, j, cla_reflect_apart(m - k, v, cla_lane_conj(t), cla_from(A, k, j),
                                                            cla_from(A, k + 1, j)));
    }
}

#ifdef GEQP3_BATCH
/* aconj, jpvtconj and tauconj are 0 */
__kernel void geqp3_batch(long lanes, long nm, long m, long n, CLA_OPERAND(CLA_REAL *A, a),
                          CLA_OPERAND(int *jpvt, jpvt), CLA_OPERAND(CLA_REAL *tau, tau))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_geqp3(m, n, CLA_MATRIX(A, a, q, 0), jpvt + jpvt0 + cla_lane_place(q, jpvtps), CLA_MATRIX(tau, tau, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N and, in numbers, ARS, ACS, TAURS.
 *
 * GEQP3_ITEM  one work-item a matrix, all of it in registers: M N lanes and N ints
 *   GROUP     work-items of a work-group
 */
#ifdef GEQP3_ITEM
#include "known.h"

#define AT(i, j) a[i][j]
#define SET(i, j, x) a[i][j] = x;
#define EACH_ROW(F, k, s) CLA_UNROLL for (int i = k + 1; i < M; i++) F(k, s, i)
#define EACH_ROW_OF(F, k, s, j) CLA_UNROLL for (int i = k + 1; i < M; i++) F(k, s, j, i)

/* cla_longest_column */
#define SEARCH(k, scale) \
    CLA_UNROLL for (int j = k; j < N; j++) { \
        CLA_REAL squares = 0; \
        CLA_UNROLL for (int i = k; i < M; i++) squares = cla_add_square(AT(i, j) * (scale), squares); \
        longest = cla_see(longest, j, squares); \
    }

/* Column k, and that of the same place in `column`, where another is wanted there, of which j is the number. */
#define EXCHANGE(k, j) { \
        const int wanted = j == longest.column, other = column[j]; \
        column[j] = wanted ? column[k] : other; \
        column[k] = wanted ? other : column[k]; \
        CLA_UNROLL for (int i = 0; i < M; i++) { \
            const cla_lane x = AT(i, j); \
            AT(i, j) = cla_lane_select(wanted, AT(i, k), x); \
            AT(i, k) = cla_lane_select(wanted, x, AT(i, k)); \
        } \
    }

__kernel CLA_GROUP_OF(GROUP) void geqp3_item(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                             __global int *jpvt, long jpvt0, long jpvtps,
                                             __global CLA_REAL *taus, long tau0, long taups)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    jpvt += jpvt0 + cla_lane_place(q, jpvtps);
    taus += tau0 + cla_lane_place(q, taups);
    cla_lane a[M][N];
    int column[N];
    cla_longest longest = cla_none_seen(0);
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) AT(i, j) = cla_lane_load(A, i * ARS + j * ACS);
    CLA_UNROLL for (int j = 0; j < N; j++) column[j] = j;
    SEARCH(0, 1)
    /* The longest column goes to where column k is, and its reflector is applied to those on its right. */
    CLA_UNROLL for (int k = 0; k < (M < N ? M : N); k++) {
        if (!cla_is_right(longest.squares)) {
            CLA_REAL largest = 0;
            CLA_UNROLL for (int i = k; i < M; i++)
                CLA_UNROLL for (int j = k; j < N; j++) largest = fmax(largest, cla_lane_abs1(AT(i, j)));
            longest = cla_none_seen(k);
            SEARCH(k, cla_scale_of_largest(largest))
        }
        CLA_UNROLL for (int j = k + 1; j < N; j++) EXCHANGE(k, j)
        cla_lane tau;
        CLA_REFLECTOR(k, k)
        cla_lane_store(taus, k * TAURS, tau);
        CLA_UNROLL for (int j = k + 1; j < N; j++) CLA_REFLECT(k, k, cla_lane_conj(tau), j)
        longest = cla_none_seen(k + 1);
        SEARCH(k + 1, 1)
    }
    CLA_UNROLL for (int i = 0; i < M; i++)
        CLA_UNROLL for (int j = 0; j < N; j++) cla_lane_store(A, i * ARS + j * ACS, AT(i, j));
    CLA_UNROLL for (int j = 0; j < N; j++) cla_int_store(jpvt, j, column[j]);
}
#endif

#endif
