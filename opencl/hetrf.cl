/* hetrf: A <- L and D with A = L D L^H, A Hermitian: cla_hetrf, and the kernel for batches, are beside those of sytrf. */
#include "sytrf.cl"
