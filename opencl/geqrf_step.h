/* Step STEP of geqrf_team in geqrf.cl: its reflector goes to local memory, with the conjugate of tau in row STEP, and is
 * applied to columns on its right. From those of a work-item that are not, 0 is subtracted.
 */
#if STEP < STEPS
{
    CLA_LOCAL cla_lane *v = vectors + STEP % 2 * (M * LANES);
    if (c == OWNER(STEP)) {
        cla_lane tau;
        CLA_REFLECTOR(STEP, OWN(STEP))
        v[STEP * LANES] = cla_lane_conj(tau);
        CLA_UNROLL for (int i = STEP + 1; i < M; i++) v[i * LANES] = AT(i, OWN(STEP));
        cla_lane_store(tau_part, STEP * TAURS, tau);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    CLA_UNROLL for (int j = OWN(STEP); j < COLUMNS; j++) {
        cla_lane w = AT(STEP, j);
        CLA_UNROLL for (int i = STEP + 1; i < M; i++) w = cla_lane_fma(cla_lane_conj(v[i * LANES]), AT(i, j), w);
        w = j > OWN(STEP) || c > OWNER(STEP) ? cla_lane_mul(v[STEP * LANES], w) : cla_lane_real(0);
        AT(STEP, j) = AT(STEP, j) - w;
        CLA_UNROLL for (int i = STEP + 1; i < M; i++) AT(i, j) = cla_lane_fnma(v[i * LANES], w, AT(i, j));
    }
}
#include "next_step.h"
#if STEP % 8
#include "geqrf_step.h"
#endif
#endif
