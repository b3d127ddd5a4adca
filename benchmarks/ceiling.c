// The most operations per second that one core does in multiplications with addition, by dtype.
//
// Every loop keeps its operands and sums in registers and has enough independent sums to fill the
// pipeline, so that neither memory nor other work on the machine slows it: the clock is that of the
// thread. A multiplication and its addition are two operations. A function returns 0 where the
// processor has no instruction for its dtype.

#include <stdint.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#if defined(__AMX_TILE__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static volatile char sink;

__attribute__((noinline)) static void keep(const void *sums, unsigned long bytes) {
    const char *content = sums;
    for (unsigned long i = 0; i < bytes; i++) sink ^= content[i];
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

// Sums begin with different numbers: the compiler computes equal ones once. Sums are copied before they are kept: an array with an address would stay in memory.
#define MEASURE(TYPE, COUNT, FIRST, STEP, OPERATIONS)                        \
    TYPE sums[COUNT], copy[COUNT];                                          \
    _Pragma("GCC unroll 24") for (int i = 0; i < COUNT; i++) sums[i] = FIRST; \
    double start = seconds();                                               \
    for (long round = 0; round < rounds; round++) {                         \
        _Pragma("GCC unroll 24") for (int i = 0; i < COUNT; i++) STEP;      \
        __asm__ volatile("");                                               \
    }                                                                       \
    double taken = seconds() - start;                                       \
    _Pragma("GCC unroll 24") for (int i = 0; i < COUNT; i++) copy[i] = sums[i]; \
    keep(copy, sizeof copy);                                                \
    return (double)(OPERATIONS) * COUNT * rounds / taken

#if defined(__AMX_TILE__)
// Four sums of 16 x 16, of two tiles by two: all eight tiles.
static int tiles(void) {
    struct {
        uint8_t palette, first_row, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config;
    // ARCH_REQ_XCOMP_PERM for XTILEDATA: Linux wants to be asked once.
    if (syscall(SYS_arch_prctl, 0x1023, 18)) return 0;
    memset(&config, 0, sizeof config);
    config.palette = 1;
    for (int i = 0; i < 8; i++) {
        config.bytes[i] = 64;
        config.rows[i] = 16;
    }
    _tile_loadconfig(&config);
    _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);
    _tile_zero(4); _tile_zero(5); _tile_zero(6); _tile_zero(7);
    return 1;
}
#define TILE_RATE(PRODUCT, OPERATIONS)                     \
    if (tiles()) {                                         \
        double start = seconds();                          \
        for (long round = 0; round < rounds; round++) {    \
            PRODUCT(0, 4, 6);                              \
            PRODUCT(1, 4, 7);                              \
            PRODUCT(2, 5, 6);                              \
            PRODUCT(3, 5, 7);                              \
        }                                                  \
        double taken = seconds() - start;                  \
        _tile_release();                                   \
        return (double)(OPERATIONS) * 4 * rounds / taken;  \
    }
#endif

double float32(long rounds) {
#if defined(__AVX512F__)
    __m512 x = _mm512_set1_ps(1.0f), y = _mm512_set1_ps(0.5f);
    MEASURE(__m512, 24, _mm512_set1_ps(i), sums[i] = _mm512_fmadd_ps(x, y, sums[i]), 32);
#elif defined(__FMA__)
    __m256 x = _mm256_set1_ps(1.0f), y = _mm256_set1_ps(0.5f);
    MEASURE(__m256, 12, _mm256_set1_ps(i), sums[i] = _mm256_fmadd_ps(x, y, sums[i]), 16);
#elif defined(__aarch64__)
    float32x4_t x = vdupq_n_f32(1.0f), y = vdupq_n_f32(0.5f);
    MEASURE(float32x4_t, 24, vdupq_n_f32(i), sums[i] = vfmaq_f32(sums[i], x, y), 8);
#else
    return 0;
#endif
}

double bfloat16(long rounds) {
#if defined(__AMX_BF16__)
    TILE_RATE(_tile_dpbf16ps, 2 * 16 * 16 * 32)
#endif
#if defined(__AVX512BF16__)
    __m512bh x = (__m512bh)_mm512_set1_ps(1.0f), y = (__m512bh)_mm512_set1_ps(0.5f);
    MEASURE(__m512, 24, _mm512_set1_ps(i), sums[i] = _mm512_dpbf16_ps(sums[i], x, y), 64);
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
    bfloat16x8_t x = vreinterpretq_bf16_u16(vdupq_n_u16(0x3f80)), y = x;
    MEASURE(float32x4_t, 24, vdupq_n_f32(i), sums[i] = vbfmmlaq_f32(sums[i], x, y), 32);
#else
    return 0;
#endif
}

double int8(long rounds) {
#if defined(__AMX_INT8__)
    TILE_RATE(_tile_dpbusd, 2 * 16 * 16 * 64)
#endif
#if defined(__AVX512VNNI__)
    __m512i x = _mm512_set1_epi32(1), y = _mm512_set1_epi32(3);
    MEASURE(__m512i, 24, _mm512_set1_epi32(i), sums[i] = _mm512_dpbusd_epi32(sums[i], x, y), 128);
#elif defined(__AVXVNNI__)
    __m256i x = _mm256_set1_epi32(1), y = _mm256_set1_epi32(3);
    MEASURE(__m256i, 12, _mm256_set1_epi32(i), sums[i] = _mm256_dpbusd_avx_epi32(sums[i], x, y), 64);
#elif defined(__AVX2__)
    // Three instructions, the first of which reads the sum: else it would be done once.
    __m256i x = _mm256_set1_epi32(1), y = _mm256_set1_epi32(3), ones = _mm256_set1_epi16(1);
    MEASURE(__m256i, 12, _mm256_set1_epi32(i),
            sums[i] = _mm256_add_epi32(
                y, _mm256_madd_epi16(_mm256_maddubs_epi16(x, sums[i]), ones)), 64);
#elif defined(__ARM_FEATURE_MATMUL_INT8)
    int8x16_t x = vdupq_n_s8(1), y = vdupq_n_s8(3);
    MEASURE(int32x4_t, 24, vdupq_n_s32(i), sums[i] = vmmlaq_s32(sums[i], x, y), 64);
#elif defined(__ARM_FEATURE_DOTPROD)
    int8x16_t x = vdupq_n_s8(1), y = vdupq_n_s8(3);
    MEASURE(int32x4_t, 24, vdupq_n_s32(i), sums[i] = vdotq_s32(sums[i], x, y), 32);
#else
    return 0;
#endif
}
