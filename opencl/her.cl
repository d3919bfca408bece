/* her: A <- alpha x x^H + A: cla_her, and kernels for batches, are beside those of syr. */
#include "syr.cl"
