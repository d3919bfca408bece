/* Sums and maxima over teams of MEMBERS work-items, which come to MEET together; see spectral.h, warp.h. */
#include "warp.h"

#ifndef MEMBERS
#define MEMBERS 2
#endif
#ifndef MEET
#define MEET CLA_TOGETHER
#endif

/* `combine` of x and what other members have, for all of them alike */
#if CLA_WARP
#define CLA_SHARED(combine, x) \
    CLA_UNROLL for (int distance = min(MEMBERS, 32) / 2; distance > 0; distance /= 2) { \
        const CLA_REAL other = cla_other(x, distance); \
        x = combine(x, other); \
    }
#define PARTS_OF_TEAM (MEMBERS > 32 ? MEMBERS / 32 : 1)
#else
#define CLA_SHARED(combine, x)
#define PARTS_OF_TEAM MEMBERS
#endif
#define CLA_OF_TEAM(name, combine) \
    CLA_INLINE CLA_REAL name(CLA_LOCAL CLA_REAL *room, CLA_REAL x) \
    { \
        CLA_SHARED(combine, x) \
        if (PARTS_OF_TEAM > 1) { \
            const int each = MEMBERS / PARTS_OF_TEAM, first = get_local_id(0) / MEMBERS * PARTS_OF_TEAM; \
            MEET \
            if (get_local_id(0) % each == 0) room[get_local_id(0) / each] = x; \
            MEET \
            x = room[first]; \
            for (int k = 1; k < PARTS_OF_TEAM; k++) x = combine(x, room[first + k]); \
        } \
        return x; \
    }
CLA_INLINE CLA_REAL cla_plus(CLA_REAL a, CLA_REAL b) { return a + b; }
CLA_OF_TEAM(cla_sum_of_team, cla_plus)
CLA_OF_TEAM(cla_largest_of_team, cla_lane_maximum)
