/* CLA_ROOM_OF(type, name, count): the array that all of a kernel's local memory but a few numbers is in, aligned to 16
 * bytes. In CUDA it may be larger than what a compiler takes: with CLA_ROOM, its bytes, the launch provides it, see
 * cuda.h. */
#ifndef CLA_ROOM_H
#define CLA_ROOM_H

#ifndef CLA_ROOM_OF
#define CLA_ROOM_OF(type, name, count) __local type name[count] __attribute__((aligned(16)))
#endif

#endif
