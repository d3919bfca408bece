/* Teams: CLA_TEAM work-items share the work for one lane, and a work-group has teams for CLA_TEAM_LANES neighbouring
 * lanes, in dimension 0 of its range; dimension 1 numbers the members. What a team does is called by all work-items of
 * the group. By default a work-item is a team of its own, and may call it wherever it likes.
 */
#ifndef CLA_TEAM_H
#define CLA_TEAM_H

#include "lane.h"

#ifndef CLA_TEAM
#define CLA_TEAM 1
#endif
#ifndef CLA_TEAM_LANES
#define CLA_TEAM_LANES 1
#endif

#if CLA_TEAM > 1
CLA_INLINE int cla_team_member(void) { return get_local_id(1); }

/* What members have written before it others see after it. */
CLA_INLINE void cla_team_sync(void) { barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); }

/* The sum over the neighbouring members of a part of the team, of so many: for all of them, in the same order. `room`
 * is for a lane of each work-item of the group. */
CLA_INLINE cla_lane cla_team_sum(CLA_LOCAL cla_lane *room, int part, cla_lane x)
{
    const int first = get_local_id(1) / part * part, lane = get_local_id(0);
    for (int passes = part > 1; passes > 0; passes--) { /* a condition: of these PoCL copies all that follows */
        cla_lane even = cla_lane_real(0), odd = even;
        barrier(CLK_LOCAL_MEM_FENCE);
        room[get_local_id(1) * CLA_TEAM_LANES + lane] = x;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < part; k += 2) {
            even = even + room[(first + k) * CLA_TEAM_LANES + lane];
            if (k + 1 < part) odd = odd + room[(first + k + 1) * CLA_TEAM_LANES + lane];
        }
        x = even + odd;
    }
    return x;
}
#else
CLA_INLINE int cla_team_member(void) { return 0; }
CLA_INLINE void cla_team_sync(void) {}
CLA_INLINE cla_lane cla_team_sum(CLA_LOCAL cla_lane *room, int part, cla_lane x) { return x; }
#endif

#endif
