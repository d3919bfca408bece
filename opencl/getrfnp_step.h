/* Step STEP, and those whose columns of L go through local memory together with its, in getrfnp_team of getrfnp.cl. */
#if STEP < STEPS
#if STEP % AT_ONCE == 0
if (c == OWNER(STEP))
    CLA_UNROLL for (int k = STEP; k < STEP + AT_ONCE; k++)
        if (k < STEPS) { /* in the work-item that has the pivot; column k of L goes to local memory */
            const int own = OWN(k);
            CLA_LOCAL cla_lane *column = LOCAL_COLUMN(k);
            MOVE_PIVOT(k, own)
            const cla_lane r = cla_pivot(AT(k, own), k, &bad);
            CLA_ELIMINATE(k, own)
            CLA_UNROLL for (int i = k + 1; i < M; i++) column[i * LANES] = AT(i, own);
        }
barrier(CLK_LOCAL_MEM_FENCE);
if (!PANEL || c > OWNER(STEP))
    CLA_UNROLL for (int k = STEP; k < STEP + AT_ONCE; k++)
        if (k < STEPS) { /* in work-items with columns right of it */
            const int own = OWN(k);
            CLA_LOCAL const cla_lane *column = LOCAL_COLUMN(k);
            const cla_lane u = PANEL || c > OWNER(k) ? AT(k, own) : cla_lane_real(0);
            CLA_UNROLL for (int i = k + 1; i < M; i++) {
                const cla_lane l = column[i * LANES];
                CLA_UNROLL for (int j = PANEL ? 0 : own; j < COLUMNS; j++)
                    AT(i, j) = cla_lane_fnma(l, !PANEL && j == own ? u : AT(k, j), AT(i, j));
            }
        }
#endif
#include "next_step.h"
#if STEP % 8
#include "getrfnp_step.h"
#endif
#endif
