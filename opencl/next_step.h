/* STEP <- STEP + 1, in files of one step of a kernel, in plain C for a number STEP. They are written out by inclusion, so
 * that indices of private arrays are numbers, for the reasons of unroll.h, and a build log has their lines. Such a file is
 *
 *     #if STEP < N
 *     the step
 *     #include "next_step.h"
 *     #if STEP % 8
 *     #include "itself.h"
 *     #endif
 *     #endif
 *
 * which is eight steps: NVIDIA's compiler lets a file include itself ten times. A kernel says #define STEP 0, and includes
 * the file for every eight steps that there may be.
 */
#if STEP == 0
#undef STEP
#define STEP 1
#elif STEP == 1
#undef STEP
#define STEP 2
#elif STEP == 2
#undef STEP
#define STEP 3
#elif STEP == 3
#undef STEP
#define STEP 4
#elif STEP == 4
#undef STEP
#define STEP 5
#elif STEP == 5
#undef STEP
#define STEP 6
#elif STEP == 6
#undef STEP
#define STEP 7
#elif STEP == 7
#undef STEP
#define STEP 8
#elif STEP == 8
#undef STEP
#define STEP 9
#elif STEP == 9
#undef STEP
#define STEP 10
#elif STEP == 10
#undef STEP
#define STEP 11
#elif STEP == 11
#undef STEP
#define STEP 12
#elif STEP == 12
#undef STEP
#define STEP 13
#elif STEP == 13
#undef STEP
#define STEP 14
#elif STEP == 14
#undef STEP
#define STEP 15
#elif STEP == 15
#undef STEP
#define STEP 16
#elif STEP == 16
#undef STEP
#define STEP 17
#elif STEP == 17
#undef STEP
#define STEP 18
#elif STEP == 18
#undef STEP
#define STEP 19
#elif STEP == 19
#undef STEP
#define STEP 20
#elif STEP == 20
#undef STEP
#define STEP 21
#elif STEP == 21
#undef STEP
#define STEP 22
#elif STEP == 22
#undef STEP
#define STEP 23
#elif STEP == 23
#undef STEP
#define STEP 24
#elif STEP == 24
#undef STEP
#define STEP 25
#elif STEP == 25
#undef STEP
#define STEP 26
#elif STEP == 26
#undef STEP
#define STEP 27
#elif STEP == 27
#undef STEP
#define STEP 28
#elif STEP == 28
#undef STEP
#define STEP 29
#elif STEP == 29
#undef STEP
#define STEP 30
#elif STEP == 30
#undef STEP
#define STEP 31
#elif STEP == 31
#undef STEP
#define STEP 32
#endif
