/* Products of the elements of a diagonal, of which none overflows on the way to one that does not. */
#ifndef CLA_DETERMINANT_H
#define CLA_DETERMINANT_H

#include "lane.h"

typedef struct {
    cla_lane product; /* times 2^exponent, or of signs */
    CLA_REAL sum; /* of logarithms */
    int exponent;
} cla_determinant;

/* 1 or, for an odd number of rows that were swapped, -1 */
CLA_INLINE cla_determinant cla_determinant_of(int odd)
{
    cla_determinant d = {cla_lane_real(odd ? -1 : 1), 0, 0};
    return d;
}

CLA_INLINE cla_lane cla_shifted(cla_lane a, int power)
{
#if CLA_COMPLEX
    return cla_lane_of(ldexp(a.x, power), ldexp(a.y, power));
#else
    return ldexp(a, power);
#endif
}

CLA_INLINE void cla_determinant_times(cla_determinant *d, cla_lane a)
{
    const cla_lane product = cla_lane_mul(d->product, a);
    const CLA_REAL size = cla_lane_abs1(product);
    const int power = size > 0 && size < INFINITY ? ilogb(size) + 1 : 0;
    d->exponent += power;
    d->product = cla_shifted(product, -power);
}

CLA_INLINE cla_lane cla_determinant_value(cla_determinant d) { return cla_shifted(d.product, d.exponent); }

/* The sign and the logarithm apart. */
CLA_INLINE void cla_determinant_times_sign(cla_determinant *d, cla_lane a)
{
    const CLA_REAL size = cla_lane_abs(a);
    d->sum += log(size);
    if (size > 0 && size < INFINITY) a = a / size;
    d->product = cla_lane_mul(d->product, a);
}

/* d times e */
CLA_INLINE void cla_determinant_join(cla_determinant *d, cla_determinant e)
{
    cla_determinant_times(d, e.product);
    d->sum += e.sum;
    d->exponent += e.exponent;
}

#endif
