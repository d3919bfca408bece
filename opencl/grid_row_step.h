/* What follows a step of grid_qr_step.h in grid_bidiagonal.cl: row k from column k + 1 on is reflected to its first
 * element, and stays as the conjugates of the reflector's; the last row has none. It and column k + 1 go through local
 * memory. */
#define NEXT_V (FIRST_V + 1 < OWN_OF_A ? FIRST_V + 1 : FIRST_V)
{
    CLA_LOCAL cla_lane *after = lines + team * ROOM + LINES, *above = after + OWN_ROWS * P;
    if (c == (k + 1) % Q)
        CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++)
            after[u * P + p] = cla_lane_select((k + 1) / Q > FIRST_V, a[u][NEXT_V], a[u][FIRST_V]);
    if (p == k % P)
        CLA_UNROLL for (int v = FIRST_V; v < OWN_OF_A; v++) {
            cla_lane x;
            CLA_TAKE_ROW(x, k, v)
            above[v * Q + c] = cla_lane_conj(x);
        }
    CLA_TOGETHER
    cla_lane z[OWN_OF_A], s[OWN_ROWS + 1];
    CLA_REAL squares = 0;
    CLA_UNROLL for (int v = FIRST_V; v < OWN_OF_A; v++) {
        const int j = v * Q + c, behind = j > k + 1 && CLA_GRID_HAS(j, N, Q);
        z[v] = cla_lane_select(behind, above[j], cla_lane_real(0));
        squares = cla_add_square(z[v], squares);
    }
    CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++) {
        s[u] = cla_lane_real(0);
        CLA_UNROLL for (int v = FIRST_V; v < OWN_OF_A; v++) s[u] = cla_lane_fma(a[u][v], z[v], s[u]);
    }
    s[OWN_ROWS] = cla_lane_real(squares);
    CLA_GRID_SUM_ACROSS(s, FIRST_U, OWN_ROWS + 1)
    const cla_reflection g = cla_reflection_of(above[min(k + 1, N - 1)], cla_lane_re(s[OWN_ROWS]));
    const cla_lane multiple = cla_lane_mul(g.tau, cla_lane_conj(g.inverse));
    CLA_UNROLL for (int v = FIRST_V; v <= NEXT_V; v++) z[v] = cla_lane_select(v * Q + c == k + 1, g.top, z[v]);
    CLA_UNROLL for (int u = FIRST_U; u < OWN_ROWS; u++) {
        const int below = k + 1 < N && (u >= FIRST_U + SPAN || u * P + p > k);
        const cla_lane all = cla_lane_fma(g.inverse, s[u], after[u * P + p]);
        const cla_lane x = cla_lane_select(below, cla_lane_mul(multiple, all), cla_lane_real(0));
        CLA_UNROLL for (int v = FIRST_V; v < OWN_OF_A; v++) a[u][v] = cla_lane_fnma(x, cla_lane_conj(z[v]), a[u][v]);
    }
    if (t == 0) { KEEP_ROW(k, g) }
}
#undef NEXT_V
