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

#endif
