/* sytrf and hetrf: A <- L and D with A = L D L^T, or L D L^H, for symmetric and Hermitian matrices that may be indefinite,
 * for one lane (pack level) and for a batch (define SYTRF_BATCH or HETRF_BATCH).
 *
 * A is n x n, and one triangle, `uplo`, all that is read and written; imaginary parts on the diagonal of a Hermitian one
 * count as 0 and become 0. Bunch and Kaufman's pivoting, with the choices of LAPACK's ?sytf2 and ?hetf2. Number k of
 * `ipiv`, of ints that are CLA_VLEN apart, is p where rows and columns k and p were swapped, or ~p, twice, for a block of
 * two rows of D, where k + 1, or k for an upper triangle, was swapped with p.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V], its ints likewise; one work-item factors one lane.
 */
#ifndef CLA_SYTRF_CL
#define CLA_SYTRF_CL

#include "lane.h"

#define CLA_LEAST_SIZE (sizeof(CLA_REAL) == 8 ? (CLA_REAL)0x1p-1000 : (CLA_REAL)0x1p-120) /* whose inverse is finite */
#define CLA_BUNCH_KAUFMAN ((CLA_REAL)0.6403882032022076) /* (1 + sqrt(17)) / 8 */

/* The element that is x in the other triangle, and element k of the diagonal. */
CLA_INLINE cla_lane cla_mirrored(int hermitian, cla_lane x) { return hermitian ? cla_lane_conj(x) : x; }
CLA_INLINE cla_lane cla_diagonal(int hermitian, cla_matrix A, int k)
{
    const cla_lane a = cla_get(A, k, k);
    return hermitian ? cla_lane_real(cla_lane_re(a)) : a;
}

/* Element (i, j) of the whole matrix, of which the lower triangle is stored. */
CLA_INLINE cla_lane cla_whole(int hermitian, cla_matrix A, int i, int j)
{
    return i >= j ? cla_get(A, i, j) : cla_mirrored(hermitian, cla_get(A, j, i));
}
CLA_INLINE void cla_set_whole(int hermitian, cla_matrix A, int i, int j, cla_lane x)
{
    if (i >= j) cla_set(A, i, j, x);
    else cla_set(A, j, i, cla_mirrored(hermitian, x));
}

/* A block of D of two rows, [[a, b'], [b, c]], times `scale`, about one over the size of b, and finite where that is not;
 * and what makes [[c, -b'], [-b, a]] its inverse. */
typedef struct {
    cla_lane a, b, c, factor;
    CLA_REAL scale;
} cla_block_of_two;

CLA_INLINE cla_block_of_two cla_block_at(int hermitian, cla_matrix A, int k)
{
    cla_block_of_two D;
    D.b = cla_get(A, k + 1, k);
    D.scale = 1 / fmax(cla_lane_abs1(D.b), CLA_LEAST_SIZE);
    D.a = cla_diagonal(hermitian, A, k) * D.scale;
    D.c = cla_diagonal(hermitian, A, k + 1) * D.scale;
    D.b = D.b * D.scale;
    const cla_lane square = cla_lane_mul(D.b, cla_mirrored(hermitian, D.b));
    D.factor = cla_lane_recip(cla_lane_mul(D.a, D.c) - square);
    return D;
}

/* x <- (D^-1 (x, y))_1 and y <- (D^-1 (x, y))_2 where D is a block, or with `mirrored` its transpose. */
CLA_INLINE void cla_divide_by_block(int hermitian, int mirrored, cla_block_of_two D, cla_lane *x, cla_lane *y)
{
    const cla_lane lower = mirrored ? cla_mirrored(hermitian, D.b) : D.b;
    const cla_lane upper = mirrored ? D.b : cla_mirrored(hermitian, D.b);
    const cla_lane u = *x * D.scale, v = *y * D.scale;
    const cla_lane first = cla_lane_fnma(upper, v, cla_lane_mul(D.c, u));
    const cla_lane second = cla_lane_fnma(lower, u, cla_lane_mul(D.a, v));
    *x = cla_lane_mul(first, D.factor);
    *y = cla_lane_mul(second, D.factor);
}

/* The pivot of column k: k, or the row to swap it with, or ~row of a block of two that begins there. `bad` <- whether it
 * is zero. Of rows with the largest element it is the first, or for `upper`, where rows are reversed, the last. */
CLA_INLINE int cla_choose_pivot(int n, int hermitian, int upper, cla_matrix A, int k, int *bad)
{
    const CLA_REAL own = cla_lane_abs1(cla_diagonal(hermitian, A, k));
    CLA_REAL largest = 0, beside = 0;
    int place = k;
    for (int i = k + 1; i < n; i++) {
        const CLA_REAL size = cla_lane_abs1(cla_get(A, i, k));
        if (upper ? size >= largest : size > largest) {
            largest = size;
            place = i;
        }
    }
    *bad = isnan(own) || (own == 0 && largest == 0);
    if (*bad || own >= CLA_BUNCH_KAUFMAN * largest) return k;
    for (int i = k; i < n; i++) {
        const CLA_REAL size = i == place ? 0 : cla_lane_abs1(cla_whole(hermitian, A, i, place));
        if (size > beside) beside = size;
    }
    if (own / largest * beside >= CLA_BUNCH_KAUFMAN * largest) return k;
    return cla_lane_abs1(cla_diagonal(hermitian, A, place)) >= CLA_BUNCH_KAUFMAN * beside ? place : ~place;
}

/* Swap rows and columns k and p > k of what is right of and below column `first`. */
CLA_INLINE void cla_swap_symmetric(int n, int hermitian, cla_matrix A, int first, int k, int p)
{
    for (int i = first; i < n; i++) {
        if (i == k || i == p) continue;
        const cla_lane x = cla_whole(hermitian, A, i, k), y = cla_whole(hermitian, A, i, p);
        cla_set_whole(hermitian, A, i, k, y);
        cla_set_whole(hermitian, A, i, p, x);
    }
    const cla_lane x = cla_diagonal(hermitian, A, k), y = cla_diagonal(hermitian, A, p);
    cla_set(A, k, k, y);
    cla_set(A, p, p, x);
    cla_set(A, p, k, cla_mirrored(hermitian, cla_get(A, p, k)));
}

/* Column k, and k + 1 for a block of two, of L, which are subtracted from what is right of them. */
CLA_INLINE void cla_eliminate_symmetric(int n, int hermitian, int two, cla_matrix A, int k)
{
    cla_block_of_two D;
    cla_lane r = cla_lane_real(0);
    if (two) D = cla_block_at(hermitian, A, k);
    else r = cla_lane_recip(cla_diagonal(hermitian, A, k));
    for (int j = k + 1 + two; j < n; j++) {
        cla_lane x = cla_get(A, j, k), y = cla_lane_real(0);
        if (two) {
            y = cla_get(A, j, k + 1);
            cla_divide_by_block(hermitian, 1, D, &x, &y);
        } else x = cla_lane_mul(x, r);
        for (int i = j; i < n; i++) {
            cla_lane z = cla_lane_fnma(cla_get(A, i, k), cla_mirrored(hermitian, x), cla_get(A, i, j));
            if (two) z = cla_lane_fnma(cla_get(A, i, k + 1), cla_mirrored(hermitian, y), z);
            cla_set(A, i, j, hermitian && i == j ? cla_lane_real(cla_lane_re(z)) : z);
        }
        cla_set(A, j, k, x);
        if (two) cla_set(A, j, k + 1, y);
    }
}

/* Returns 0 or 1 + the index of the first block of D that is exactly zero, or NaN; the last is the first for `upper`. */
CLA_INLINE int cla_indefinite(int n, int hermitian, int upper, cla_matrix A, __global int *ipiv)
{
    int info = 0;
    A.conj = 0; /* conjugates have the conjugate factors */
    if (upper) A = cla_reversed(A, n, n);
    for (int k = 0; k < n && hermitian; k++) cla_set(A, k, k, cla_diagonal(1, A, k));
    for (int k = 0; k < n;) {
        int bad;
        const int pivot = cla_choose_pivot(n, hermitian, upper, A, k, &bad), two = pivot < 0, place = two ? ~pivot : pivot;
        if (bad && info == 0) info = upper ? n - k : k + 1;
        if (place != k + two) cla_swap_symmetric(n, hermitian, A, k, k + two, place);
        if (!bad) cla_eliminate_symmetric(n, hermitian, two, A, k);
        for (int i = k; i <= k + two; i++) {
            const int row = upper ? n - 1 - place : place;
            cla_int_store(ipiv, upper ? n - 1 - i : i, two ? ~row : row);
        }
        k += 1 + two;
    }
    return info;
}

/* `uplo` is 0 for the lower triangle, 1 for the upper one. */
CLA_INLINE int cla_sytrf(int n, int uplo, cla_matrix A, __global int *ipiv) { return cla_indefinite(n, 0, uplo, A, ipiv); }
CLA_INLINE int cla_hetrf(int n, int uplo, cla_matrix A, __global int *ipiv) { return cla_indefinite(n, 1, uplo, A, ipiv); }

/* info[q] for the first nm lanes, those that hold a matrix; aconj is 0: A is as it is */
#if defined(SYTRF_BATCH) || defined(HETRF_BATCH)
#ifdef SYTRF_BATCH
#define BATCH sytrf_batch
#define FACTOR cla_sytrf
#else
#define BATCH hetrf_batch
#define FACTOR cla_hetrf
#endif
__kernel void BATCH(long lanes, long nm, long n, long uplo, CLA_OPERAND(CLA_REAL *A, a), CLA_OPERAND(int *ipiv, ipiv),
                    __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int first = FACTOR(n, uplo != 0, CLA_MATRIX(A, a, q, 0), ipiv + ipiv0 + cla_lane_place(q, ipivps));
    if (q < nm) info[q] = first;
}
#endif

#endif
