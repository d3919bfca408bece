/* syev: eigenvalues w, ascending, and eigenvectors of Hermitian matrices, which replace A, for one lane (pack level) and
 * for a batch (define SYEV_BATCH).
 *
 * A is n x n, and one triangle, `uplo`, and the real part of the diagonal all that is read; with jobz CLA_VALUES it holds
 * anything afterwards. One-sided Jacobi: A + shift = L L^H, where the shift is 0 for positive definite matrices, and then
 * the columns of L are made orthogonal: their lengths are the roots of the eigenvalues, their directions eigenvectors.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item does one lane.
 */
#ifndef CLA_SYEV_CL
#define CLA_SYEV_CL

#include "jacobi.h"
#include "laswp.h"
#include "unroll.h"

#define CLA_LOWER 0
#define CLA_UPPER 1
#define CLA_VECTORS 0
#define CLA_VALUES 1

/* A power of two that the largest element of a scaled matrix is about: no square overflows. */
#define CLA_SYEV_EXPONENT (sizeof(CLA_REAL) == 8 ? 480 : 48)
/* A shift is larger than what makes the diagonal dominant by an eighth, and this. */
#define CLA_SYEV_FLOOR ldexp((CLA_REAL)1, CLA_SYEV_EXPONENT - 10)

/* The lower triangle of A <- L with A = L L^H, element by element: next to nothing of the work here, and a tenth of the
 * code of potrf. Returns whether A is positive definite. */
CLA_INLINE int cla_definite(int n, cla_matrix A)
{
    for (int k = 0; k < n; k++) {
        CLA_REAL inverse = 0;
        for (int i = k; i < n; i++) {
            cla_lane a = cla_get(A, i, k);
            for (int p = 0; p < k; p++) a = cla_lane_fnma(cla_get(A, i, p), cla_lane_conj(cla_get(A, k, p)), a);
            if (i == k) {
                if (!(cla_lane_re(a) > 0)) return 0;
                a = cla_lane_real(sqrt(cla_lane_re(a)));
                inverse = 1 / cla_lane_re(a);
            } else a = a * inverse;
            cla_set(A, i, k, a);
        }
    }
    return 1;
}

/* The n numbers of w are at w[i * wrs]. Returns 0; or n for a matrix with NaN or infinities, or whose iteration did not
 * end: its results are NaN. */
CLA_INLINE int cla_syev(int n, int uplo, int jobz, cla_matrix A, __global CLA_REAL *w, long wrs)
{
    const cla_matrix given = uplo == CLA_UPPER ? cla_conjugated(cla_transposed(A)) : A;
    CLA_REAL largest = 0, shift = 0;
    for (int i = 0; i < n; i++) {
        w[i * wrs] = cla_lane_re(cla_get(given, i, i));
        largest = cla_lane_maximum(largest, fabs(w[i * wrs]));
        for (int j = 0; j < i; j++) largest = cla_larger(largest, cla_get(given, i, j));
    }
    const int known = largest < INFINITY, power = known ? cla_power(largest, CLA_SYEV_EXPONENT) : 0;
    /* both triangles, and the diagonal in w */
    for (int i = 0; i < n; i++) {
        w[i * wrs] = cla_lane_re(cla_scaled(cla_lane_real(w[i * wrs]), power));
        for (int j = 0; j < i; j++) {
            const cla_lane a = cla_scaled(cla_get(given, i, j), power);
            cla_set(A, i, j, a);
            cla_set(A, j, i, cla_lane_conj(a));
        }
    }
    for (int attempt = 0; known && attempt < 2; attempt++) {
        for (int i = 0; i < n; i++) {
            cla_set(A, i, i, cla_lane_real(w[i * wrs] + shift));
            for (int j = 0; j < i; j++) cla_set(A, i, j, cla_lane_conj(cla_get(A, j, i)));
        }
        if (cla_definite(n, A)) break;
        for (int i = 0; i < n; i++) {
            CLA_REAL least = CLA_MINUS(w[i * wrs]);
            for (int j = 0; j < n; j++)
                if (j != i) least += cla_lane_abs1(cla_get(A, min(i, j), max(i, j)));
            shift = fmax(shift, least);
        }
        shift = fma(shift, (CLA_REAL)1.125, CLA_SYEV_FLOOR);
    }
    for (int j = 0; j < n; j++)
        for (int i = 0; i < j; i++) cla_set(A, i, j, cla_lane_real(0));
    const int failed = !known || cla_orthogonalize(n, n, A);
    for (int j = 0; j < n; j++) {
        CLA_REAL square = 0;
        for (int i = 0; i < n; i++) square += cla_squared(cla_get(A, i, j));
        const CLA_REAL inverse = failed ? NAN : cla_lane_rsqrt(square);
        w[j * wrs] = failed ? NAN : cla_lane_re(cla_scaled(cla_lane_real(square - shift), -power));
        for (int i = 0; i < n; i++) cla_set(A, i, j, cla_get(A, i, j) * inverse);
    }
    for (int j = 0; j < n - 1; j++) {
        int least = j;
        for (int i = j + 1; i < n; i++) least = w[i * wrs] < w[least * wrs] ? i : least;
        if (least != j) {
            const CLA_REAL x = w[j * wrs];
            w[j * wrs] = w[least * wrs];
            w[least * wrs] = x;
            if (jobz == CLA_VECTORS) cla_swap_rows(j, least, n, cla_transposed(A));
        }
    }
    return failed ? n : 0;
}

#ifdef SYEV_BATCH
/* aconj and wconj are 0; info[q] for the first nm lanes, those that hold a matrix */
__kernel void syev_batch(long lanes, long nm, long n, long uplo, long jobz, CLA_OPERAND(CLA_REAL *A, a),
                         CLA_OPERAND(CLA_REAL *w, w), __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int failed = cla_syev(n, uplo, jobz, CLA_MATRIX(A, a, q, 0), w + w0 + cla_lane_place(q, wps), wrs);
    if (q < nm) info[q] = failed;
}
#endif

/* Batches whose size and strides are known when this is compiled: define N, UPLO and JOBZ, and, in numbers, ARS, ACS and
 * WRS. Tunables:
 *
 * SYEV_ITEM   one work-item a matrix: Jacobi in its registers, of N (N + 1) / 2 lanes and with vectors N N more
 *   GROUP     work-items of a work-group
 */
#ifdef SYEV_ITEM
#include "known.h"

#define EACH_PAIR(F) CLA_UNROLL1(N, F##_ROW)
/* element (i, j) of a Hermitian matrix of which the upper triangle is kept, and making it x */
#define AT(i, j) (i < j ? a[i][j] : cla_lane_conj(a[j][i]))
#define SET(i, j, x) if (i < j) a[i][j] = x; else a[j][i] = cla_lane_conj(x);
#define MATTERS(p, q) cla_matters(d[p], d[q], a[p][q], CLA_ROUNDING)

#define CHECK_ROW(p) CLA_UNROLL2(N, CHECK, p)
#define CHECK(p, q) if (q > p) again |= MATTERS(p, q);

/* In all lanes alike: what has not to be turned is turned by an angle of zero. */
#define TURN_ROW(p) CLA_UNROLL2(N, TURN, p)
#define TURN(p, q) \
    if (q > p) { \
        const int turns = MATTERS(p, q); \
        cla_rotation r = cla_rotation_of(d[p], d[q], a[p][q]); \
        r.tangent = cla_lane_select(turns, r.tangent, cla_lane_real(0)); \
        r.sine = cla_lane_select(turns, r.sine, cla_lane_real(0)); \
        r.shear = cla_lane_select(turns, r.shear, cla_lane_real(0)); \
        const CLA_REAL change = cla_inner(r.tangent, a[p][q]); \
        d[p] -= change; \
        d[q] += change; \
        a[p][q] = cla_lane_select(turns, cla_lane_real(0), a[p][q]); \
        CLA_UNROLL3(N, TURN_ELEMENTS, p, q) \
    }
#define TURN_ELEMENTS(p, q, i) \
    if (i != p && i != q) { \
        cla_lane x = AT(i, p), y = AT(i, q); \
        cla_turn(r, &x, &y); \
        SET(i, p, x) \
        SET(i, q, y) \
    } \
    if (JOBZ == CLA_VECTORS) cla_turn(r, &v[i][p], &v[i][q]);

#define SORT_ROW(s) CLA_UNROLL2(N, SORT, s)
#define SORT(s, j) \
    if (j % 2 == s % 2 && j + 1 < N) { \
        const int swap = d[j] > d[(j + 1) % N]; \
        const CLA_REAL x = d[j]; \
        d[j] = swap ? d[(j + 1) % N] : x; \
        d[(j + 1) % N] = swap ? x : d[(j + 1) % N]; \
        if (JOBZ == CLA_VECTORS) { CLA_UNROLL3(N, SWAP, s, j) } \
    }
#define SWAP(s, j, i) { \
        const cla_lane x = v[i][j], y = v[i][(j + 1) % N]; \
        v[i][j] = cla_lane_select(swap, y, x); \
        v[i][(j + 1) % N] = cla_lane_select(swap, x, y); \
    }

#define PLACE(i, j) ((i) * ARS + (j) * ACS)
#define GIVEN(i, j) (UPLO == CLA_UPPER ? cla_lane_load(A, PLACE(j, i)) : cla_lane_conj(cla_lane_load(A, PLACE(i, j))))

__kernel CLA_GROUP_OF(GROUP) void syev_item(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                            __global CLA_REAL *w, long w0, long wps, __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    w += w0 + cla_lane_place(q, wps);
    cla_lane a[N][N], v[N][N];
    CLA_REAL d[N], largest = 0;
    CLA_UNROLL for (int i = 0; i < N; i++) {
        d[i] = cla_lane_re(cla_lane_load(A, PLACE(i, i)));
        largest = cla_lane_maximum(largest, fabs(d[i]));
        CLA_UNROLL for (int j = 0; j < N; j++) {
            v[i][j] = cla_lane_real(i == j);
            if (i < j) {
                a[i][j] = GIVEN(j, i);
                largest = cla_larger(largest, a[i][j]);
            }
        }
    }
    const int known = largest < INFINITY, power = known ? cla_power(largest, CLA_SYEV_EXPONENT) : 0;
    CLA_UNROLL for (int i = 0; i < N; i++) {
        d[i] = cla_lane_re(cla_scaled(cla_lane_real(d[i]), power));
        CLA_UNROLL for (int j = i + 1; j < N; j++) a[i][j] = cla_scaled(a[i][j], power);
    }
    int again = known;
    for (int sweep = 0; again && sweep < CLA_SWEEPS; sweep++) {
        again = 0;
        EACH_PAIR(CHECK)
        if (again) { EACH_PAIR(TURN) }
    }
    EACH_PAIR(SORT)
    const int failed = !known || again;
    CLA_UNROLL for (int i = 0; i < N; i++) {
        w[i * WRS] = failed ? NAN : cla_lane_re(cla_scaled(cla_lane_real(d[i]), -power));
        if (JOBZ == CLA_VECTORS) {
            CLA_UNROLL for (int j = 0; j < N; j++)
                cla_lane_store(A, PLACE(i, j), failed ? cla_lane_real(NAN) : v[i][j]);
        }
    }
    if (q < nm) info[q] = failed ? N : 0;
}
#endif

#endif
