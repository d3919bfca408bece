/* gesvd: U diag(s) Vh = A, for one lane (pack level) and for a batch (define GESVD_BATCH).
 *
 * A is m x n with m >= n, U m x n, s n real numbers, Vh n x n; A is overwritten. First QR, A = Q R, which takes the
 * largest column that is left at every step and leaves columns where they are. Then one-sided Jacobi: rotations of rows
 * make R = V diag(s) Vh, so that U = Q V, which is orthogonal whatever the rank of A. Where nothing is left to factor,
 * rows of numbers that count as zeros are put into R, so that Vh is orthogonal too. Columns of A may differ in size:
 * small singular values that are due to that are as accurate as large ones.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item factors one lane.
 */
#ifndef CLA_GESVD_CL
#define CLA_GESVD_CL

#include "householder.h"
#include "jacobi.h"

/* Elements are scaled to 2^CLA_LARGEST at most, and singular values below CLA_LEAST count as zeros: there are no
 * squares to overflow or underflow. */
#define CLA_LARGEST (sizeof(CLA_REAL) == 8 ? 300 : 42)
#define CLA_LEAST ldexp((CLA_REAL)1, 1 - CLA_LARGEST)

/* x <- c x + conj(s) y, y <- c y - s x, of rows x and y; whether that does anything. */
typedef struct {
    CLA_REAL c;
    cla_lane s;
    int acts;
} cla_row_rotation;

/* The rotation that makes rows orthogonal and the first the larger one, from their squared norms a and b and their
 * inner product, or none where they are so; `tolerance` is the squared cosine of rows that count as orthogonal. No
 * number leaves the range that squares of norms have. */
CLA_INLINE cla_row_rotation cla_descending(CLA_REAL a, CLA_REAL b, cla_lane between, CLA_REAL tolerance)
{
    const CLA_REAL inverse_a = cla_lane_rsqrt(a), inverse_b = cla_lane_rsqrt(b);
    const cla_lane cosine = between * inverse_a * inverse_b;
    const CLA_REAL square = cla_squared(cosine);
    const int oblique = square > tolerance, swapped = a < b;
    const CLA_REAL largest = swapped ? inverse_b : inverse_a, smaller = swapped ? a * inverse_a : b * inverse_b;
#if CLA_COMPLEX
    const CLA_REAL size = sqrt(square);
    const cla_lane phase = oblique ? cosine * (1 / size) : cla_lane_real(1);
#else
    const CLA_REAL size = fabs(cosine);
    const cla_lane phase = copysign((CLA_REAL)1, cosine);
#endif
    const CLA_REAL difference = fabs(a - b) * largest * largest, twice = 2 * size * (smaller * largest);
    const CLA_REAL inverse = cla_lane_rsqrt(fma(difference, difference, twice * twice));
    const CLA_REAL c2 = fma(difference / 2, inverse, (CLA_REAL)0.5), root = cla_lane_rsqrt(c2);
    const CLA_REAL c = oblique ? c2 * root : 1, s = oblique ? twice / 2 * inverse * root : 0;
    cla_row_rotation r = {swapped ? s : c, phase * (swapped ? c : s), oblique || swapped};
    return r;
}

/* The macros write out what matrices in memory and in registers have in common, for the reasons of unroll.h:
 *   W(i, j), SET_W(i, j, x)          A, then R, then V, then U
 *   Q(i, j), SET_Q(i, j, x)          reflectors and, on the diagonal, their tau
 *   RIGHT(i, j), SET_RIGHT(i, j, x)  R, then Vh
 *   IS_USED(j), USE(j)               whether step 0 to k of QR took column j; that this one did
 *   EACH_STEP(F), EACH_COLUMN(F, k), EACH_ROW(F, k, s), EACH_ELEMENT(F, p, q)
 *       F(k), F(k, j), F(k, s, i) for all columns, or rows from k on, F(p, q, i) for columns
 */
#define CLA_GESVD_STEP(k) { \
        CLA_REAL best = -1; \
        int chosen = 0; \
        EACH_COLUMN(CLA_GESVD_CHOOSE, k) \
        cla_lane tau; \
        CLA_REFLECTOR(k, k) \
        const int nothing = best < CLA_LEAST * CLA_LEAST; \
        const cla_lane pivot = nothing ? cla_lane_real(CLA_LEAST / 2) : Q(k, k); \
        tau = nothing ? cla_lane_real(0) : tau; \
        SET_Q(k, k, tau) \
        tau = cla_lane_conj(tau); \
        EACH_COLUMN(CLA_GESVD_REFLECT, k) \
        EACH_COLUMN(CLA_GESVD_SETTLE, k) \
        USE(chosen) \
    }
#define CLA_GESVD_CHOOSE(k, j) { \
        CLA_REAL size = 0; \
        EACH_ROW(CLA_GESVD_ADD, k, j) \
        const int better = !IS_USED(j) && size > best; \
        best = better ? size : best; \
        chosen = better ? j : chosen; \
        EACH_ROW(CLA_GESVD_TAKE, k, j) \
    }
#define CLA_GESVD_ADD(k, j, i) if (i >= (k)) size = cla_add_square(W(i, j), size);
#define CLA_GESVD_TAKE(k, j, i) if (i >= (k)) SET_Q(i, k, j == 0 || better ? W(i, j) : Q(i, k))
#define CLA_GESVD_REFLECT(k, j) { \
        cla_lane w = W(k, j); \
        EACH_ROW(CLA_GESVD_INNER, k, j) \
        w = cla_lane_mul(tau, w); \
        SET_W(k, j, W(k, j) - w) \
        EACH_ROW(CLA_GESVD_OUTER, k, j) \
    }
#define CLA_GESVD_INNER(k, j, i) if (i > (k)) w = cla_lane_fma(cla_lane_conj(Q(i, k)), W(i, j), w);
#define CLA_GESVD_OUTER(k, j, i) if (i > (k)) SET_W(i, j, cla_lane_fnma(Q(i, k), w, W(i, j)))
#define CLA_GESVD_SETTLE(k, j) { \
        const int taken = j == chosen; \
        SET_W(k, j, taken ? pivot : nothing ? cla_lane_real(0) : W(k, j)) \
        EACH_ROW(CLA_GESVD_CLEAR, k, j) \
    }
#define CLA_GESVD_CLEAR(k, j, i) if (i > (k)) SET_W(i, j, taken ? cla_lane_real(0) : W(i, j))

/* Rows p and q of R, of norms that are kept as a and b; with VECTORS columns p and q of V likewise. */
#define CLA_GESVD_ROTATE(p, q) { \
        CLA_REAL a = 0, b = 0; \
        cla_lane between = cla_lane_real(0); \
        EACH_ELEMENT(CLA_GESVD_MULTIPLY, p, q) \
        const cla_row_rotation r = cla_descending(a, b, between, tolerance); \
        again |= r.acts; \
        if (ALWAYS || r.acts) { \
            EACH_ELEMENT(CLA_GESVD_TURN, p, q) \
        } \
    }
#define CLA_GESVD_MULTIPLY(p, q, i) { \
        a = cla_add_square(RIGHT(p, i), a); \
        b = cla_add_square(RIGHT(q, i), b); \
        between = cla_lane_fma(cla_lane_conj(RIGHT(p, i)), RIGHT(q, i), between); \
    }
#define CLA_GESVD_TURN(p, q, i) { \
        const cla_lane x = RIGHT(p, i), y = RIGHT(q, i); \
        SET_RIGHT(p, i, cla_lane_fma(cla_lane_conj(r.s), y, x * r.c)) \
        SET_RIGHT(q, i, cla_lane_fnma(r.s, x, y * r.c)) \
        if (VECTORS) { \
            const cla_lane v = W(i, p), w = W(i, q); \
            SET_W(i, p, cla_lane_fma(r.s, w, v * r.c)) \
            SET_W(i, q, cla_lane_fnma(cla_lane_conj(r.s), v, w * r.c)) \
        } \
    }

/* Row p of R, which becomes a unit vector, and its norm, scaled back: singular value p, of which the one before is
 * `last`: a root that is not rounded as it should be may be out of order. */
#define CLA_GESVD_NORMALISE(p) { \
        CLA_REAL size = 0; \
        EACH_ELEMENT(CLA_GESVD_NORM, p, p) \
        const CLA_REAL inverse = cla_lane_rsqrt(size), root = sqrt(size); \
        last = size < CLA_LEAST * CLA_LEAST ? 0 : root > last ? last : root; \
        PUT_S(p, finite ? cla_lane_re(cla_scaled(cla_lane_real(last), -power)) : NAN) \
        if (VECTORS) { \
            EACH_ELEMENT(CLA_GESVD_DIVIDE, p, p) \
        } \
    }
#define CLA_GESVD_NORM(p, q, i) size = cla_add_square(RIGHT(p, i), size);
#define CLA_GESVD_DIVIDE(p, q, i) SET_RIGHT(p, i, RIGHT(p, i) * inverse)

#ifndef GESVD_ITEM
/* s has its numbers `rs` apart. Without `vectors`, U and Vh are room to work in. Returns 0, or CLA_SWEEPS if so many
 * sweeps do not suffice, or A has NaN or infinity in it: then singular values are NaN. */
CLA_INLINE int cla_gesvd(int m, int n, int vectors, cla_matrix A, cla_matrix U, __global CLA_REAL *s, long rs,
                         cla_matrix Vh)
{
    const CLA_REAL tolerance = (n + 64) * 4 * CLA_ROUNDING * CLA_ROUNDING;
    const cla_matrix rows = vectors ? Vh : U;
    CLA_REAL largest = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) largest = cla_larger(largest, cla_get(A, i, j));
    const int finite = largest < INFINITY;
    const int power = cla_power(finite ? largest : 1, CLA_LARGEST);
#define W(i, j) cla_get(U, i, j)
#define SET_W(i, j, x) cla_set(U, i, j, x);
#define Q(i, j) cla_get(A, i, j)
#define SET_Q(i, j, x) cla_set(A, i, j, x);
#define RIGHT(i, j) cla_get(rows, i, j)
#define SET_RIGHT(i, j, x) cla_set(rows, i, j, x);
#define IS_USED(j) (s[(j) * rs] != 0)
#define USE(j) s[(j) * rs] = 1;
#define PUT_S(j, x) s[(j) * rs] = x;
#define AT Q
#define SET SET_Q
#define EACH_COLUMN(F, k) for (int j = 0; j < n; j++) F(k, j)
#define EACH_ROW(F, k, s) for (int i = (k); i < m; i++) { F(k, s, i) }
#define EACH_ELEMENT(F, p, q) for (int i = 0; i < n; i++) { F(p, q, i) }
#define ALWAYS 0
#define VECTORS vectors
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) cla_set(U, i, j, finite ? cla_scaled(cla_get(A, i, j), power) : cla_lane_real(NAN));
    for (int j = 0; j < n; j++) s[j * rs] = 0;
    for (int k = 0; k < n; k++) CLA_GESVD_STEP(k)
    for (int i = 0; vectors && i < m; i++) {
        for (int j = 0; j < n; j++) {
            if (i < n) cla_set(Vh, i, j, cla_get(U, i, j));
            cla_set(U, i, j, cla_lane_real(i == j));
        }
    }
    int again = 1;
    for (int sweep = 0; again && sweep < CLA_SWEEPS; sweep++) {
        again = 0;
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++) CLA_GESVD_ROTATE(p, q)
    }
    CLA_REAL last = INFINITY;
    for (int p = 0; p < n; p++) CLA_GESVD_NORMALISE(p)
    for (int k = n - 1; vectors && k >= 0; k--) {
        const cla_lane tau = cla_get(A, k, k);
        EACH_COLUMN(CLA_GESVD_REFLECT, k)
    }
#undef W
#undef SET_W
#undef Q
#undef SET_Q
#undef RIGHT
#undef SET_RIGHT
#undef IS_USED
#undef USE
#undef PUT_S
#undef AT
#undef SET
#undef EACH_COLUMN
#undef EACH_ROW
#undef EACH_ELEMENT
#undef ALWAYS
#undef VECTORS
    return again || !finite ? CLA_SWEEPS : 0;
}
#endif

#ifdef GESVD_BATCH
/* compute_uv is 0 where U and Vh are wanted; info[q] for the first nm lanes, those that hold a matrix */
__kernel void gesvd_batch(long lanes, long nm, long m, long n, long compute_uv, CLA_OPERAND(CLA_REAL *A, a),
                          CLA_OPERAND(CLA_REAL *U, u), CLA_OPERAND(CLA_REAL *s, s), CLA_OPERAND(CLA_REAL *Vh, vh),
                          __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int found = cla_gesvd(m, n, compute_uv == 0, CLA_MATRIX(A, a, q, aconj), CLA_MATRIX(U, u, q, uconj),
                                s + s0 + cla_lane_place(q, sps), srs, CLA_MATRIX(Vh, vh, q, vhconj));
    if (q < nm) info[q] = found;
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M and N with M >= N, COMPUTE_UV as above and,
 * in numbers, ARS, ACS, URS, UCS, SRS, VHRS, VHCS; ACONJ, UCONJ, VHCONJ, 1 if memory holds the conjugates. Tunables:
 *
 * GESVD_ITEM  one work-item a matrix, all of it in registers: 2 M N + N N lanes
 *   GROUP     work-items of a work-group
 */
#ifdef GESVD_ITEM
#include "known.h"

#define W(i, j) left[i][j]
#define SET_W(i, j, x) left[i][j] = x;
#define Q(i, j) reflectors[i][j]
#define SET_Q(i, j, x) reflectors[i][j] = x;
#define IS_USED(j) (used >> (j) & 1)
#define USE(j) used |= 1 << (j);
#define PUT_S(j, x) s[(j) * SRS] = x;
#define AT Q
#define SET SET_Q
#define EACH_COLUMN(F, k) CLA_UNROLL2(N, F, k)
#define EACH_ROW(F, k, s) CLA_UNROLL3(M, F, k, s)
#define EACH_ELEMENT(F, p, q) CLA_UNROLL3(N, F, p, q)
#define ALWAYS 1
#define VECTORS (COMPUTE_UV == 0)
#if COMPUTE_UV == 0
#define RIGHT(i, j) right[i][j]
#define SET_RIGHT(i, j, x) right[i][j] = x;
#else
#define RIGHT W
#define SET_RIGHT SET_W
#endif

__kernel CLA_GROUP_OF(GROUP) void gesvd_item(long lanes, long nm, __global CLA_REAL *A, long a0, long aps,
                                             __global CLA_REAL *U, long u0, long ups, __global CLA_REAL *s, long s0,
                                             long sps, __global CLA_REAL *Vh, long vh0, long vhps, __global int *info)
{
    const long place = get_global_id(0);
    if (place >= lanes) return;
    A += a0 + cla_lane_place(place, aps);
    U += u0 + cla_lane_place(place, ups);
    s += s0 + cla_lane_place(place, sps);
    Vh += vh0 + cla_lane_place(place, vhps);
    const CLA_REAL tolerance = (N + 64) * 4 * CLA_ROUNDING * CLA_ROUNDING;
    cla_lane left[M][N], reflectors[M][N];
    CLA_REAL largest = 0;
    int used = 0;
#define LOAD(i, j) W(i, j) = cla_lane_load_as(ACONJ, A, (i) * ARS + (j) * ACS); largest = cla_larger(largest, W(i, j));
#define LOAD_ROW(i) CLA_UNROLL2(N, LOAD, i)
    CLA_UNROLL1(M, LOAD_ROW)
    const int finite = largest < INFINITY;
    const int power = cla_power(finite ? largest : 1, CLA_LARGEST);
#define SCALE(i, j) W(i, j) = finite ? cla_scaled(W(i, j), power) : cla_lane_real(NAN);
#define SCALE_ROW(i) CLA_UNROLL2(N, SCALE, i)
    CLA_UNROLL1(M, SCALE_ROW)
    CLA_UNROLL1(N, CLA_GESVD_STEP)
#if VECTORS
    cla_lane right[N][N];
#define DIVIDE(i, j) if (i < N) RIGHT(i, j) = W(i, j); W(i, j) = cla_lane_real(i == j);
#define DIVIDE_ROW(i) CLA_UNROLL2(N, DIVIDE, i)
    CLA_UNROLL1(M, DIVIDE_ROW)
#endif
    int again = 1;
#define SECOND(p, q) if (q > p) CLA_GESVD_ROTATE(p, q)
#define FIRST(p) CLA_UNROLL2(N, SECOND, p)
    for (int sweep = 0; again && sweep < CLA_SWEEPS; sweep++) {
        again = 0;
        CLA_UNROLL1(N, FIRST)
    }
    CLA_REAL last = INFINITY;
    CLA_UNROLL1(N, CLA_GESVD_NORMALISE)
#if VECTORS
#define BACK(k) { const cla_lane tau = Q(N - 1 - k, N - 1 - k); EACH_COLUMN(CLA_GESVD_REFLECT, (N - 1 - k)) }
#define STORE(i, j) \
    cla_lane_store_as(UCONJ, U, (i) * URS + (j) * UCS, W(i, j)); \
    if (i < N) cla_lane_store_as(VHCONJ, Vh, (i) * VHRS + (j) * VHCS, RIGHT(i, j));
#define STORE_ROW(i) CLA_UNROLL2(N, STORE, i)
    CLA_UNROLL1(N, BACK)
    CLA_UNROLL1(M, STORE_ROW)
#endif
    if (place < nm) info[place] = again || !finite ? CLA_SWEEPS : 0;
}
#endif

#endif
