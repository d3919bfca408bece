/* Complex numbers of one lane, also beside real matrices. */
#ifndef CLA_COMPLEX_H
#define CLA_COMPLEX_H

#include "lane.h"

typedef CLA_PASTE(CLA_REAL, 2) cla_complex;
CLA_INLINE cla_complex cla_complex_of(CLA_REAL re, CLA_REAL im)
{
    cla_complex z;
    z.x = re;
    z.y = im;
    return z;
}
CLA_INLINE cla_complex cla_complex_of_lane(cla_lane a) { return cla_complex_of(cla_lane_re(a), cla_lane_im(a)); }
CLA_INLINE cla_complex cla_complex_times(cla_complex a, cla_complex b)
{
    return cla_complex_of(fma(CLA_MINUS(a.y), b.y, a.x * b.x), fma(a.y, b.x, a.x * b.y));
}
CLA_INLINE cla_complex cla_complex_scaled(cla_complex a, CLA_REAL b) { return cla_complex_of(a.x * b, a.y * b); }
CLA_INLINE cla_complex cla_complex_less(cla_complex a, cla_complex b) { return cla_complex_of(a.x - b.x, a.y - b.y); }
CLA_INLINE CLA_REAL cla_complex_abs1(cla_complex a) { return fabs(a.x) + fabs(a.y); }
CLA_INLINE cla_complex cla_complex_inverse(cla_complex a)
{
    const CLA_REAL scale = 1 / fmax(fabs(a.x), fabs(a.y)), x = a.x * scale, y = a.y * scale;
    const CLA_REAL factor = scale / fma(x, x, y * y);
    return cla_complex_of(x * factor, CLA_MINUS(y) * factor);
}
CLA_INLINE cla_complex cla_complex_root(cla_complex a)
{
    const CLA_REAL larger = sqrt((hypot(a.x, a.y) + fabs(a.x)) * (CLA_REAL)0.5);
    const CLA_REAL smaller = larger == 0 ? 0 : fabs(a.y) * (CLA_REAL)0.5 / larger;
    const CLA_REAL im = a.x >= 0 ? smaller : larger;
    return cla_complex_of(a.x >= 0 ? larger : smaller, a.y < 0 ? CLA_MINUS(im) : im);
}

/* Element (i, j) of a matrix of complex numbers. */
CLA_INLINE cla_complex cla_complex_get(cla_matrix V, int i, int j)
{
    const long at = i * V.rs + j * V.cs;
    return cla_complex_of(V.p[at], V.p[at + CLA_VLEN]);
}
CLA_INLINE void cla_complex_set(cla_matrix V, int i, int j, cla_complex z)
{
    const long at = i * V.rs + j * V.cs;
    V.p[at] = z.x;
    V.p[at + CLA_VLEN] = z.y;
}

#endif
