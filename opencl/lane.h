/* The lane type and the matrix of lanes: what every kernel here is written in.
 *
 * One work-item holds one lane: a number of type REAL, or for COMPLEX a pair (.x the real, .y the imaginary part).
 * + and - are the operators of OpenCL C; the functions below are the operations that differ between real and complex.
 *
 * Memory: a pack interleaves V matrices, so the lanes of one element lie side by side. Offsets and strides count
 * REAL elements. An element's imaginary part lies `im` after its real part: V in a pack, 1 in an ordinary array.
 */
#ifndef LANE_H
#define LANE_H

#ifndef REAL
#define REAL double /* float or double */
#endif
#ifndef COMPLEX
#define COMPLEX 0 /* 1: an element is a pair of REAL */
#endif
#ifndef V
#define V 32 /* vector length: matrices of a pack */
#endif

#define PARTS (1 + COMPLEX) /* REAL numbers in an element */
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define INLINE static inline __attribute__((always_inline))

#if COMPLEX

typedef PASTE(REAL, 2) lane;

INLINE lane lane_of(REAL re, REAL im) { return (lane)(re, im); }
INLINE lane lane_conj(lane a) { return (lane)(a.x, -a.y); }
INLINE int lane_is_zero(lane a) { return a.x == 0 && a.y == 0; }
INLINE lane lane_mul(lane a, lane b) { return (lane)(fma(a.x, b.x, -a.y * b.y), fma(a.x, b.y, a.y * b.x)); }
/* c + a b */
INLINE lane lane_fma(lane a, lane b, lane c)
{
    return (lane)(fma(-a.y, b.y, fma(a.x, b.x, c.x)), fma(a.y, b.x, fma(a.x, b.y, c.y)));
}
/* c - a b */
INLINE lane lane_fnma(lane a, lane b, lane c)
{
    return (lane)(fma(a.y, b.y, fma(-a.x, b.x, c.x)), fma(-a.y, b.x, fma(-a.x, b.y, c.y)));
}
/* 1 / a, scaled so that |a|^2 neither overflows nor underflows */
INLINE lane lane_recip(lane a)
{
    const REAL s = 1 / fmax(fabs(a.x), fabs(a.y));
    const REAL x = a.x * s, y = a.y * s;
    const REAL d = s / fma(x, x, y * y);
    return (lane)(x * d, -y * d);
}
/* a b for a scalar a of BLAS: a real one touches no part with the other's infinity */
INLINE lane lane_scale(lane a, lane b) { return a.y == 0 ? (lane)(a.x * b.x, a.x * b.y) : lane_mul(a, b); }

#else

typedef REAL lane;

INLINE lane lane_of(REAL re, REAL im) { return re; }
INLINE lane lane_conj(lane a) { return a; }
INLINE int lane_is_zero(lane a) { return a == 0; }
INLINE lane lane_mul(lane a, lane b) { return a * b; }
INLINE lane lane_fma(lane a, lane b, lane c) { return fma(a, b, c); }
INLINE lane lane_fnma(lane a, lane b, lane c) { return fma(-a, b, c); }
INLINE lane lane_recip(lane a) { return 1 / a; }
INLINE lane lane_scale(lane a, lane b) { return a * b; }

#endif

INLINE lane lane_real(REAL a) { return lane_of(a, 0); }

/* The element at p[i], its imaginary part im further. */
INLINE lane lane_load_apart(__global const REAL *p, long i, long im)
{
#if COMPLEX
    return (lane)(p[i], p[i + im]);
#else
    return p[i];
#endif
}

INLINE void lane_store_apart(__global REAL *p, long i, long im, lane a)
{
#if COMPLEX
    p[i] = a.x;
    p[i + im] = a.y;
#else
    p[i] = a;
#endif
}

/* The element of a pack at p[i]. */
INLINE lane lane_load(__global const REAL *p, long i) { return lane_load_apart(p, i, V); }
INLINE void lane_store(__global REAL *p, long i, lane a) { lane_store_apart(p, i, V, a); }

/* One lane of a matrix: element (i, j) is at p[i * rs + j * cs], where strides may be negative. */
typedef struct {
    __global REAL *p;
    long rs, cs, im;
    int conj; /* 1: elements are conjugated when they are read */
} matrix;

INLINE matrix matrix_at(__global const REAL *p, long rs, long cs)
{
    matrix A = {(__global REAL *)p, rs, cs, V, 0};
    return A;
}

/* Matrix q of a contiguous batch of m x n matrices, shape (npack, m, n, V) or (npack, m, n, 2, V). */
INLINE matrix matrix_of_batch(__global const REAL *p, long q, int m, int n)
{
    return matrix_at(p + q / V * m * n * PARTS * V + q % V, n * PARTS * V, PARTS * V);
}

INLINE matrix transposed(matrix A)
{
    const long rs = A.rs;
    A.rs = A.cs;
    A.cs = rs;
    return A;
}

/* The part of A that begins at row i and column j. */
INLINE matrix from(matrix A, int i, int j)
{
    A.p += i * A.rs + j * A.cs;
    return A;
}

/* The m rows of A from the last to the first. */
INLINE matrix rows_reversed(matrix A, int m)
{
    A = from(A, m - 1, 0);
    A.rs = -A.rs;
    return A;
}

/* Both axes of an m x n matrix reversed, which makes an upper triangle a lower one. */
INLINE matrix reversed(matrix A, int m, int n)
{
    return transposed(rows_reversed(transposed(rows_reversed(A, m)), n));
}

INLINE lane matrix_load(matrix A, long i)
{
    const lane a = lane_load_apart(A.p, i, A.im);
    return A.conj ? lane_conj(a) : a;
}

INLINE void matrix_store(matrix A, long i, lane a) { lane_store_apart(A.p, i, A.im, a); }

#endif
