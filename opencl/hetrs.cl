/* hetrs: B <- inv(A) B with the factors of hetrf: cla_hetrs, and the kernel for batches, are beside those of sytrs. */
#include "sytrs.cl"
