/* Products of doubles on the matrix units of NVIDIA's GPUs from compute capability 8.0 on; other compilers refuse them.
 *
 * A matrix is in the registers of a warp: work-item 4 g + r has element (g, r) of a, 8 x 4, element (r, g) of b, 4 x 8,
 * and elements (g, 2 r) and (g, 2 r + 1) of c, 8 x 8. All work-items of a warp come here together.
 */
#ifndef CLA_MMA_H
#define CLA_MMA_H

#if !defined(__NV_CL_C_VERSION) && !defined(__CUDACC__)
#error "matrix units are those of NVIDIA's GPUs"
#endif

/* (c, d) <- (c, d) + a b */
#define CLA_MMA(c, d, a, b) \
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" \
                 : "+d"(c), "+d"(d) : "d"(a), "d"(b))

/* Likewise for two blocks of rows, (c, d) and (e, f), from compute capability 9.0 on: a and A are an element each of
 * theirs, or two or four of so many blocks of a, side by side, as b of blocks one below the other. */
#define CLA_MMA_1(c, d, e, f, a, A, b) \
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" \
                 : "+d"(c), "+d"(d), "+d"(e), "+d"(f) : "d"((a)[0]), "d"((A)[0]), "d"((b)[0]))
#define CLA_MMA_2(c, d, e, f, a, A, b) \
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, " \
                 "{%0,%1,%2,%3};" \
                 : "+d"(c), "+d"(d), "+d"(e), "+d"(f) \
                 : "d"((a)[0]), "d"((A)[0]), "d"((a)[1]), "d"((A)[1]), "d"((b)[0]), "d"((b)[1]))
#define CLA_MMA_4(c, d, e, f, a, A, b) \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, " \
                 "{%12,%13,%14,%15}, {%0,%1,%2,%3};" \
                 : "+d"(c), "+d"(d), "+d"(e), "+d"(f) \
                 : "d"((a)[0]), "d"((A)[0]), "d"((a)[1]), "d"((A)[1]), "d"((a)[2]), "d"((A)[2]), "d"((a)[3]), \
                   "d"((A)[3]), "d"((b)[0]), "d"((b)[1]), "d"((b)[2]), "d"((b)[3]))

/* c + a b for so many blocks of rows and columns, and blocks of 4 columns of a: c[i][j] is a pair, a[i] and b(j) are
 * elements side by side. TALL: 0, or so many blocks of 4 columns that an instruction takes of two of rows. */
#define CLA_MMA_BLOCKS(rows, columns, steps, c, a, b) \
    CLA_UNROLL for (int s = 0; s < (steps); s++) \
        CLA_UNROLL for (int i = 0; i < (rows); i++) \
            CLA_UNROLL for (int j = 0; j < (columns); j++) { \
                const int pair = i / 2 * 2; \
                if (!TALL || pair + 1 == (rows)) CLA_MMA((c)[i][j][0], (c)[i][j][1], (a)[i][s], (b(j))[s]); \
                else if (i == pair && TALL == 4 && s / 4 * 4 + 4 <= (steps)) { \
                    if (s % 4 == 0) CLA_MMA_IN_PAIRS(4, c, a, b) \
                } else if (i == pair && TALL >= 2 && s / 2 * 2 + 2 <= (steps)) { \
                    if (s % 2 == 0) CLA_MMA_IN_PAIRS(2, c, a, b) \
                } else if (i == pair) CLA_MMA_IN_PAIRS(1, c, a, b) \
            }
#define CLA_MMA_IN_PAIRS(n, c, a, b) \
    CLA_MMA_##n((c)[i][j][0], (c)[i][j][1], (c)[i + 1][j][0], (c)[i + 1][j][1], &(a)[i][s], &(a)[i + 1][s], &(b(j))[s]);

#endif
