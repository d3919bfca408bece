/* hesv: B <- inv(A) B, A Hermitian: cla_hesv, and the kernel for batches, are beside those of sysv. */
#include "sysv.cl"
