/* A substitution in grid_triangular.cl, downwards or UP, with ones on the diagonal for UNIT. Blocks of P rows go round in
 * x, so that the first, or last, one is that of a step, and steps need not be written out. */
CLA_ROLLED for (int turn = 0; turn < BLOCKS; turn++) {
    const int k0 = (UP ? BLOCKS - 1 - turn : turn) * P, buffer = (UP && FORWARD ? turn + BLOCKS : turn) % 2;
    const int first = PANEL == N ? 0 : k0 / PANEL * PANEL;
    if (PANEL < N && (UP ? turn == 0 || (k0 + P) % PANEL == 0 : k0 == first)) {
        CLA_TOGETHER
        NEXT_PANEL
    }
    cla_lane y[P][CHUNK];
    CLA_LOCAL cla_lane *block = blocks + (team * 2 + buffer) * (CHUNK * Q * P) + c * P;
    if (P > 1) {
        CLA_UNROLL for (int v = 0; v < CHUNK; v++) block[v * Q * P + p] = x[UP ? BLOCKS - 1 : 0][v];
        CLA_TOGETHER
    }
    CLA_UNROLL for (int v = 0; v < CHUNK; v++)
        CLA_UNROLL for (int s = 0; s < P; s++) y[s][v] = P > 1 ? block[v * Q * P + s] : x[UP ? BLOCKS - 1 : 0][v];
    CLA_UNROLL for (int s0 = 0; s0 < P; s0++) {
        const int s = UP ? P - 1 - s0 : s0, k = OF_N(k0 + s);
        const cla_lane inverse = UNIT ? cla_lane_real(1) : T_AT(k, k);
        CLA_UNROLL for (int v = 0; v < CHUNK; v++) {
            const cla_lane solved = UNIT ? y[s][v] : cla_lane_mul(inverse, y[s][v]);
            y[s][v] = IN_N(k0 + s) ? solved : cla_lane_real(0);
        }
        CLA_UNROLL for (int o = UP ? 0 : s + 1; o < (UP ? s : P); o++) {
            const cla_lane e = T_AT(OF_N(k0 + o), k);
            CLA_UNROLL for (int v = 0; v < CHUNK; v++) y[o][v] = cla_lane_fnma(e, y[s][v], y[o][v]);
        }
    }
    CLA_UNROLL for (int n = 1; n < BLOCKS; n++) { /* rows of blocks that come n steps later */
        const int from = UP ? BLOCKS - 1 - n : n, to = UP ? from + 1 : from - 1;
        CLA_UNROLL for (int v = 0; v < CHUNK; v++) x[to][v] = x[from][v];
        if (turn + n < BLOCKS) {
            const int i = OF_N(UP ? k0 - n * P + p : k0 + n * P + p);
            CLA_UNROLL for (int s = 0; s < P; s++) {
                const cla_lane e = T_AT(i, OF_N(k0 + s));
                CLA_UNROLL for (int v = 0; v < CHUNK; v++) x[to][v] = cla_lane_fnma(e, y[s][v], x[to][v]);
            }
        }
    }
    CLA_UNROLL for (int v = 0; v < CHUNK; v++)
        CLA_UNROLL for (int s = 0; s < P; s++) x[UP ? 0 : BLOCKS - 1][v] = p == s ? y[s][v] : x[UP ? 0 : BLOCKS - 1][v];
}
#undef UP
#undef UNIT
#undef T_AT
#undef NEXT_PANEL
