/* OpenCL C's words in CUDA C++: what NVRTC compiles is this file and then a program.
 *
 * `--device-as-default-execution-space` makes functions the device's. What this leaves to programs: `__local` declares
 * arrays in local memory, and CLA_LOCAL points there: in CUDA, two things; vectors are made by functions such as
 * `cla_lane_of` and by CLA_ALL, since a cast of a list in parentheses means something else; names of addresses' spaces
 * begin with two underscores; no kernel has an argument in local memory.
 */
#define long long long /* 64 bits, also where a long of C++ has 32 */
#define cl_khr_fp64 1

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define __kernel extern "C" __global__
#define __global
#define __constant const
#define __local __shared__
#define __private
#ifdef CLA_ROOM /* bytes of the array, which the launch provides: a compiler takes no more than 48 KB */
#define CLA_ROOM_OF(type, name, count) \
    extern __shared__ double2 cla_room[]; \
    type *name = (type *)cla_room
#endif
#define CLA_LOCAL
#define restrict __restrict__

/* Attributes of kernels and loops. CLA_GROUPS: how many work-groups a compute unit has registers for; without it, or 0, the
 * compiler may spill some for the sake of more groups. */
#if CLA_GROUPS
#define reqd_work_group_size(x, y, z) launch_bounds((x) * (y) * (z), CLA_GROUPS)
#else
#define reqd_work_group_size(x, y, z) launch_bounds((x) * (y) * (z))
#endif

/* Where a work-item is */
#define CLA_PLACE(name, x_of, y_of, z_of) \
    static inline size_t name(int axis) { return axis == 0 ? (x_of) : axis == 1 ? (y_of) : (z_of); }
CLA_PLACE(get_local_id, threadIdx.x, threadIdx.y, threadIdx.z)
CLA_PLACE(get_local_size, blockDim.x, blockDim.y, blockDim.z)
CLA_PLACE(get_group_id, blockIdx.x, blockIdx.y, blockIdx.z)
CLA_PLACE(get_num_groups, gridDim.x, gridDim.y, gridDim.z)
#undef CLA_PLACE
static inline size_t get_global_id(int axis) { return get_group_id(axis) * get_local_size(axis) + get_local_id(axis); }
static inline size_t get_global_size(int axis) { return get_num_groups(axis) * get_local_size(axis); }

/* Barriers, which are fences of both kinds of memory, and atomic operations */
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define barrier(fences) __syncthreads()
#define mem_fence(fences) __threadfence_block()
#define atomic_add atomicAdd
#define atomic_min atomicMin
#define atomic_max atomicMax
#define atomic_xchg atomicExch
#define atomic_cmpxchg atomicCAS

/* Numbers */
#define INT_MAX 0x7fffffff
#define INT_MIN (-INT_MAX - 1)
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#define as_int __float_as_int
#define as_uint __float_as_uint
#define as_float __uint_as_float
#define as_long __double_as_longlong
#define as_double __longlong_as_double

/* Minimum and maximum, also of numbers of two types, of which CUDA has none for some */
template <typename T, typename U> static inline auto min(T a, U b) -> decltype(a + b) { return b < a ? b : a; }
template <typename T, typename U> static inline auto max(T a, U b) -> decltype(a + b) { return a < b ? b : a; }

/* Vectors: operators for each element, of two vectors or of a vector and a number; loads, stores */
#define CLA_OF_TWO(F) F(x, 0), F(y, 1)
#define CLA_OF_FOUR(F) CLA_OF_TWO(F), F(z, 2), F(w, 3)
#define CLA_PLUS(e, i) a.e + b.e
#define CLA_LESS(e, i) a.e - b.e
#define CLA_TIMES(e, i) a.e * b.e
#define CLA_OVER(e, i) a.e / b.e
#define CLA_NEGATIVE(e, i) -a.e
#define CLA_FUSED(e, i) fma(a.e, b.e, c.e)
#define CLA_NUMBER(e, i) number
#define CLA_READ(e, i) p[i]
#define CLA_WRITTEN(e, i) p[i] = a.e
#define CLA_ALL(type, number) cla_all(type(), number)
#define CLA_VECTOR(V, T, N, OF) \
    static inline V cla_all(V, T number) { return {OF(CLA_NUMBER)}; } \
    static inline V operator+(V a, V b) { return {OF(CLA_PLUS)}; } \
    static inline V operator-(V a, V b) { return {OF(CLA_LESS)}; } \
    static inline V operator*(V a, V b) { return {OF(CLA_TIMES)}; } \
    static inline V operator/(V a, V b) { return {OF(CLA_OVER)}; } \
    static inline V operator*(V a, T b) { return a * cla_all(a, b); } \
    static inline V operator*(T a, V b) { return cla_all(b, a) * b; } \
    static inline V operator/(V a, T b) { return a / cla_all(a, b); } \
    static inline V operator-(V a) { return {OF(CLA_NEGATIVE)}; } \
    static inline V &operator+=(V &a, V b) { return a = a + b; } \
    static inline V &operator-=(V &a, V b) { return a = a - b; } \
    static inline V &operator*=(V &a, V b) { return a = a * b; } \
    static inline V fma(V a, V b, V c) { return {OF(CLA_FUSED)}; } \
    static inline V vload##N(size_t i, const T *p) { p += N * i; return {OF(CLA_READ)}; } \
    static inline void vstore##N(V a, size_t i, T *p) { p += N * i; OF(CLA_WRITTEN); }
CLA_VECTOR(float2, float, 2, CLA_OF_TWO)
CLA_VECTOR(float4, float, 4, CLA_OF_FOUR)
CLA_VECTOR(double2, double, 2, CLA_OF_TWO)

/* Halves in memory, as their bits; to the nearest, like conversions of C */
struct half {
    ushort bits;
};
static inline float vload_half(size_t i, const half *p)
{
    float a;
    asm("cvt.f32.f16 %0, %1;" : "=f"(a) : "h"(p[i].bits));
    return a;
}
static inline void vstore_half_rte(float a, size_t i, half *p)
{
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(p[i].bits) : "f"(a));
}
