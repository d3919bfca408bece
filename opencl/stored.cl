/* Numbers of blocks rounded to the type that they are stored in, CLA_STORED of stored.h. */
#include "stored.h"

/* target <- source, rounded; *overflow <- 1 if a number is larger than `limit` */
__kernel void round_blocks(long count, __global const CLA_REAL *restrict source, __global cla_stored *restrict target,
                           CLA_REAL limit, __global long *overflow)
{
    const long i = get_global_id(0);
    if (i >= count) return;
    const CLA_REAL a = source[i];
    cla_round_to(target, i, a);
    if (fabs(a) > limit) *overflow = 1;
}
