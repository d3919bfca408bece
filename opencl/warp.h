/* What the work-items of a warp do together, on NVIDIA's GPUs: define CLA_WARP, 0 for any other device.
 *
 * Teams are parts of warps, of so many neighbours, a power of 2; their members run in step, and all of a warp come here.
 */
#ifndef CLA_WARP_H
#define CLA_WARP_H

#include "lane.h"

#ifndef CLA_WARP
#define CLA_WARP 0
#endif

/* What members have written to local memory before it, others see after it. */
#if CLA_WARP
#define CLA_TOGETHER asm volatile("bar.warp.sync -1;" ::: "memory");
#else
#define CLA_TOGETHER barrier(CLK_LOCAL_MEM_FENCE);
#endif

#if CLA_WARP
#define CLA_EXCHANGED(type, y, x, distance) \
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=" type(y) : type(x), "r"(distance))
/* x of the member whose number differs from that of this one by the bits of `distance` */
CLA_INLINE int cla_other_int(int x, int distance)
{
    int y;
    CLA_EXCHANGED("r", y, x, distance);
    return y;
}
CLA_INLINE CLA_REAL cla_other(CLA_REAL x, int distance)
{
    int low, high;
    if (sizeof(CLA_REAL) == 4) {
        float y;
        CLA_EXCHANGED("f", y, (float)x, distance);
        return y;
    }
    asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "d"((double)x));
    low = cla_other_int(low, distance);
    high = cla_other_int(high, distance);
    double y;
    asm("mov.b64 %0, {%1, %2};" : "=d"(y) : "r"(low), "r"(high));
    return y;
}
#endif

#endif
