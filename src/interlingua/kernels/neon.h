/* Sixteen numbers at a time, each in four registers of NEON: the functions of avx512.h, for AArch64.

   Products of bytes use the dot product of Armv8.2 where the compiler may (the variant "dotprod"), or products of small
   matrices (FEAT_I8MM, the variant "i8mm"), and are exact without.
   There are products of bfloats (FEAT_BF16) only in "i8mm": elsewhere the encoder's weights are widened to float32 in
   registers, and its activations stay float32. largest16, max16 and min16 may return NaN where other
   processors ignore it; sums with NaN are NaN on all processors. */
#include <arm_neon.h>
#include <stdint.h>
#ifdef __linux__
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <stddef.h>
#include <sys/sysctl.h>
#endif

#define TILES 0
#ifdef __ARM_FEATURE_BF16_VECTOR_ARITHMETIC
#define BFLOATS 1
#else
#define BFLOATS 0
#endif
#define INT16S 0
#define VECTORS 1 /* of sixteen columns, in a tile of a product */
#define ROWS 6    /* by one vector: the sums of a product fill 24 of 32 registers */
#define COLUMNS 1 /* the same, where the tile is COLUMNS vectors by six rows */
#ifdef __ARM_FEATURE_MATMUL_INT8
#define OFFSET 128       /* its instructions multiply unsigned bytes by signed ones, so the stored bytes + 128 */
#define BYTES_TOGETHER 8 /* of a column side by side */
#else
#define OFFSET 0 /* dot_bytes16 takes the 128 of the stored bytes away again */
#define BYTES_TOGETHER 4
#endif
#define ALWAYS static inline __attribute__((always_inline))

typedef struct {
    float32x4_t a, b, c, d;
} Floats;

typedef struct {
    int32x4_t a, b, c, d;
} Ints;

typedef struct {
    float64x2_t a, b, c, d;
} Doubles; /* eight */

enum { FLOAT32, BFLOAT16, BYTES, WIDENED, INT16 };

#if defined(__linux__)
#define HAS_DOT_PRODUCT (1UL << 20)   /* HWCAP_ASIMDDP, for systems that have no name for it */
#define HAS_BYTE_MATRICES (1UL << 13) /* HWCAP2_I8MM, in the second word of flags */
#define HAS_BFLOATS (1UL << 14)       /* HWCAP2_BF16 */
ALWAYS int has_dot_product(void) { return (getauxval(AT_HWCAP) & HAS_DOT_PRODUCT) != 0; }
ALWAYS int has_byte_matrices(void) { return (getauxval(AT_HWCAP2) & HAS_BYTE_MATRICES) != 0; }
ALWAYS int has_bfloat_products(void) { return (getauxval(AT_HWCAP2) & HAS_BFLOATS) != 0; }
#elif defined(__APPLE__)
ALWAYS int has_feature(const char *name) {
    int value = 0;
    size_t size = sizeof(value);
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value;
}
ALWAYS int has_dot_product(void) { return has_feature("hw.optional.arm.FEAT_DotProd"); }
ALWAYS int has_byte_matrices(void) { return has_feature("hw.optional.arm.FEAT_I8MM"); }
ALWAYS int has_bfloat_products(void) { return has_feature("hw.optional.arm.FEAT_BF16"); }
#else
ALWAYS int has_dot_product(void) { return 0; }
ALWAYS int has_byte_matrices(void) { return 0; }
ALWAYS int has_bfloat_products(void) { return 0; }
#endif

/* Every AArch64 has NEON; the system knows of the rest. */
ALWAYS int has_instructions(void) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
    return has_dot_product() && has_byte_matrices() && has_bfloat_products();
#elif defined(__ARM_FEATURE_DOTPROD)
    return has_dot_product();
#else
    return 1;
#endif
}

/* A function of Floats that is one instruction for each quarter. */
#define FUNCTION1(name, f) \
    ALWAYS Floats name(Floats x) { return (Floats){f(x.a), f(x.b), f(x.c), f(x.d)}; }
#define FUNCTION2(name, f) \
    ALWAYS Floats name(Floats x, Floats y) { \
        return (Floats){f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d)}; \
    }
FUNCTION1(sqrt16, vsqrtq_f32)
FUNCTION1(abs16, vabsq_f32)
FUNCTION1(round16, vrndnq_f32)
FUNCTION2(add16, vaddq_f32)
FUNCTION2(sub16, vsubq_f32)
FUNCTION2(mul16, vmulq_f32)
FUNCTION2(div16, vdivq_f32)
FUNCTION2(min16, vminq_f32)
FUNCTION2(max16, vmaxq_f32)

ALWAYS Floats set16(float x) {
    float32x4_t four = vdupq_n_f32(x);
    return (Floats){four, four, four, four};
}

ALWAYS Floats read16(const float *from) {
    return (Floats){vld1q_f32(from), vld1q_f32(from + 4), vld1q_f32(from + 8), vld1q_f32(from + 12)};
}

ALWAYS void write16(float *to, Floats x) {
    vst1q_f32(to, x.a);
    vst1q_f32(to + 4, x.b);
    vst1q_f32(to + 8, x.c);
    vst1q_f32(to + 12, x.d);
}

ALWAYS Floats fmadd16(Floats x, Floats y, Floats sum) { /* x y + sum */
    return (Floats){vfmaq_f32(sum.a, x.a, y.a), vfmaq_f32(sum.b, x.b, y.b), vfmaq_f32(sum.c, x.c, y.c),
                    vfmaq_f32(sum.d, x.d, y.d)};
}

ALWAYS Floats fnmadd16(Floats x, Floats y, Floats sum) { /* sum - x y */
    return (Floats){vfmsq_f32(sum.a, x.a, y.a), vfmsq_f32(sum.b, x.b, y.b), vfmsq_f32(sum.c, x.c, y.c),
                    vfmsq_f32(sum.d, x.d, y.d)};
}

ALWAYS Floats fmsub16(Floats x, Floats y, Floats z) { /* x y - z */
    return fmadd16(x, y, (Floats){vnegq_f32(z.a), vnegq_f32(z.b), vnegq_f32(z.c), vnegq_f32(z.d)});
}

/* Halves are added until one number is left, the order of AVX-512's own sum. */
ALWAYS float sum16(Floats x) {
    float32x4_t four = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
    float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

ALWAYS float largest16(Floats x) { return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.a, x.c), vmaxq_f32(x.b, x.d))); }

ALWAYS float first_lane16(Floats x) { return vgetq_lane_f32(x.a, 0); }

ALWAYS float32x4_t if_positive4(float32x4_t x, float32x4_t a, float32x4_t b) {
    return vbslq_f32(vcgtzq_f32(x), a, b);
}

/* a where x > 0, b elsewhere. */
ALWAYS Floats if_positive16(Floats x, Floats a, Floats b) {
    return (Floats){if_positive4(x.a, a.a, b.a), if_positive4(x.b, a.b, b.b), if_positive4(x.c, a.c, b.c),
                    if_positive4(x.d, a.d, b.d)};
}

/* The scale where four words of a mask are all ones, 0 elsewhere. */
ALWAYS float32x4_t keep4(int32x4_t keep, float scale) {
    return vreinterpretq_f32_s32(vandq_s32(keep, vreinterpretq_s32_f32(vdupq_n_f32(scale))));
}

/* The scale where a random byte is at least the threshold, 0 elsewhere. */
ALWAYS Floats keep16(const uint8_t *random, int64_t threshold, float scale) {
    int8x16_t keep = vreinterpretq_s8_u8(vcgeq_u8(vld1q_u8(random), vdupq_n_u8((uint8_t)threshold)));
    int16x8_t low = vmovl_s8(vget_low_s8(keep)), high = vmovl_s8(vget_high_s8(keep));
    return (Floats){
        keep4(vmovl_s16(vget_low_s16(low)), scale), keep4(vmovl_s16(vget_high_s16(low)), scale),
        keep4(vmovl_s16(vget_low_s16(high)), scale), keep4(vmovl_s16(vget_high_s16(high)), scale)};
}

/* Limits x to the range of scale16. */
ALWAYS Floats limit16(Floats x) { return min16(set16(127.0f), max16(set16(-127.0f), x)); }

/* x 2^whole for -126 <= whole <= 127, put together from the bits of an exponent; 0 for -127. */
ALWAYS float32x4_t scale4(float32x4_t x, float32x4_t whole) {
    int32x4_t exponent = vaddq_s32(vcvtnq_s32_f32(whole), vdupq_n_s32(127));
    return vmulq_f32(x, vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23)));
}

ALWAYS Floats scale16(Floats x, Floats whole) {
    return (Floats){scale4(x.a, whole.a), scale4(x.b, whole.b), scale4(x.c, whole.c), scale4(x.d, whole.d)};
}

/* Four places from `at` on: numbers of x in places below `count`, then those of `other`. */
ALWAYS float32x4_t first4(int32_t count, int32_t at, float32x4_t x, float32x4_t other) {
    static const int32_t places[4] = {0, 1, 2, 3};
    return vbslq_f32(vcltq_s32(vld1q_s32(places), vdupq_n_s32(count - at)), x, other);
}

/* The first `count` numbers of x, then those of `other`. */
ALWAYS Floats first16(int64_t count, Floats x, Floats other) {
    int32_t n = (int32_t)count;
    return (Floats){first4(n, 0, x.a, other.a), first4(n, 4, x.b, other.b), first4(n, 8, x.c, other.c),
                    first4(n, 12, x.d, other.d)};
}

/* Four bits: 1, 2, 4 and 8 where x is not less than y, or one of them is no number. */
ALWAYS uint32_t not_less4(float32x4_t x, float32x4_t y) {
    static const uint32_t bits[4] = {1, 2, 4, 8};
    return vaddvq_u32(vbicq_u32(vld1q_u32(bits), vcltq_f32(x, y)));
}

/* Bit i: x[i] is not less than y[i], or one of them is no number. */
ALWAYS uint64_t not_less16(Floats x, Floats y) {
    return not_less4(x.a, y.a) | not_less4(x.b, y.b) << 4 | not_less4(x.c, y.c) << 8 | not_less4(x.d, y.d) << 12;
}

/* Swaps each number with the one that is `apart` (1, 2, 4 or 8) places away. */
ALWAYS Floats swap16(Floats x, int apart) {
    if (apart == 1) return (Floats){vrev64q_f32(x.a), vrev64q_f32(x.b), vrev64q_f32(x.c), vrev64q_f32(x.d)};
    if (apart == 2)
        return (Floats){vextq_f32(x.a, x.a, 2), vextq_f32(x.b, x.b, 2), vextq_f32(x.c, x.c, 2), vextq_f32(x.d, x.d, 2)};
    return apart == 4 ? (Floats){x.b, x.a, x.d, x.c} : (Floats){x.c, x.d, x.a, x.b};
}

/* 1 where swap16 takes a number from a higher place, -1 elsewhere. */
ALWAYS Floats signs16(int apart) {
    static const float by_one[4] = {1, -1, 1, -1}, by_two[4] = {1, 1, -1, -1};
    float32x4_t plus = vdupq_n_f32(1.0f), minus = vdupq_n_f32(-1.0f);
    if (apart == 4) return (Floats){plus, minus, plus, minus};
    if (apart == 8) return (Floats){plus, plus, minus, minus};
    float32x4_t four = vld1q_f32(apart == 1 ? by_one : by_two);
    return (Floats){four, four, four, four};
}

/* Four bfloats are the upper halves of floats. */
ALWAYS float32x4_t widen4(uint16x4_t halves) { return vreinterpretq_f32_u32(vshll_n_u16(halves, 16)); }

/* Rounds to the nearest bfloat, or to the even one of two equally near ones; NaN stays NaN. */
ALWAYS uint16x4_t narrow4(float32x4_t x) {
    uint32x4_t bits = vreinterpretq_u32_f32(x), last = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7FFF)), last);
    uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    return vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet), 16);
}

ALWAYS Floats load(const char *from, int64_t type) {
    if (type == FLOAT32) return read16((const float *)from);
    uint16x8_t low = vld1q_u16((const uint16_t *)from), high = vld1q_u16((const uint16_t *)from + 8);
    return (Floats){widen4(vget_low_u16(low)), widen4(vget_high_u16(low)), widen4(vget_low_u16(high)),
                    widen4(vget_high_u16(high))};
}

ALWAYS void store(char *to, int64_t type, Floats x) {
    if (type == FLOAT32) {
        write16((float *)to, x);
    } else {
#if BFLOATS
        vst1q_bf16((bfloat16_t *)to, vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(x.a), x.b));
        vst1q_bf16((bfloat16_t *)to + 8, vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(x.c), x.d));
#else
        vst1q_u16((uint16_t *)to, vcombine_u16(narrow4(x.a), narrow4(x.b)));
        vst1q_u16((uint16_t *)to + 8, vcombine_u16(narrow4(x.c), narrow4(x.d)));
#endif
    }
}

ALWAYS Ints set_ints16(int32_t x) {
    int32x4_t four = vdupq_n_s32(x);
    return (Ints){four, four, four, four};
}

/* Reads bytes, because they may have any alignment. */
ALWAYS int32x4_t read_ints4(const uint8_t *from) { return vreinterpretq_s32_u8(vld1q_u8(from)); }

ALWAYS Ints read_ints16(const void *memory) {
    const uint8_t *from = memory;
    return (Ints){read_ints4(from), read_ints4(from + 16), read_ints4(from + 32), read_ints4(from + 48)};
}

ALWAYS void write_ints16(void *memory, Ints x) {
    uint8_t *to = memory;
    vst1q_u8(to, vreinterpretq_u8_s32(x.a));
    vst1q_u8(to + 16, vreinterpretq_u8_s32(x.b));
    vst1q_u8(to + 32, vreinterpretq_u8_s32(x.c));
    vst1q_u8(to + 48, vreinterpretq_u8_s32(x.d));
}

ALWAYS Ints add_ints16(Ints x, Ints y) {
    return (Ints){vaddq_s32(x.a, y.a), vaddq_s32(x.b, y.b), vaddq_s32(x.c, y.c), vaddq_s32(x.d, y.d)};
}

ALWAYS Ints higher_half16(Ints x) {
    int32x4_t mask = vdupq_n_s32(-65536);
    return (Ints){vandq_s32(x.a, mask), vandq_s32(x.b, mask), vandq_s32(x.c, mask), vandq_s32(x.d, mask)};
}

/* Moves the lower half to the place of the higher one. */
ALWAYS Ints lower_half16(Ints x) {
    return (Ints){vshlq_n_s32(x.a, 16), vshlq_n_s32(x.b, 16), vshlq_n_s32(x.c, 16), vshlq_n_s32(x.d, 16)};
}

ALWAYS Ints to_ints16(Floats x) {
    return (Ints){vcvtnq_s32_f32(x.a), vcvtnq_s32_f32(x.b), vcvtnq_s32_f32(x.c), vcvtnq_s32_f32(x.d)};
}

ALWAYS Floats to_floats16(Ints x) {
    return (Floats){vcvtq_f32_s32(x.a), vcvtq_f32_s32(x.b), vcvtq_f32_s32(x.c), vcvtq_f32_s32(x.d)};
}

ALWAYS Floats as_floats16(Ints x) {
    return (Floats){vreinterpretq_f32_s32(x.a), vreinterpretq_f32_s32(x.b), vreinterpretq_f32_s32(x.c),
                    vreinterpretq_f32_s32(x.d)};
}

ALWAYS Ints as_ints16(Floats x) {
    return (Ints){vreinterpretq_s32_f32(x.a), vreinterpretq_s32_f32(x.b), vreinterpretq_s32_f32(x.c),
                  vreinterpretq_s32_f32(x.d)};
}

ALWAYS int32_t sum_ints16(Ints x) { return vaddvq_s32(vaddq_s32(vaddq_s32(x.a, x.b), vaddq_s32(x.c, x.d))); }

/* Writes bytes; a number out of range becomes the nearest byte. */
ALWAYS void write_bytes16(char *to, Ints x) {
    int16x8_t low = vcombine_s16(vqmovn_s32(x.a), vqmovn_s32(x.b));
    int16x8_t high = vcombine_s16(vqmovn_s32(x.c), vqmovn_s32(x.d));
    vst1q_s8((int8_t *)to, vcombine_s8(vqmovn_s16(low), vqmovn_s16(high)));
}

/* sum + y x of sixteen bytes by sixteen, in fours. Without the instruction: two products are at most 2 * 128 * 127, which
   the 16 bits in between hold, but they are not added there. */
ALWAYS int32x4_t dot_bytes4(int32x4_t sum, int32x4_t y, int32x4_t x) {
#if OFFSET
    return vusdotq_s32(sum, vreinterpretq_u8_s32(y), vreinterpretq_s8_s32(x));
#else
    int8x16_t bytes = vreinterpretq_s8_u8(veorq_u8(vreinterpretq_u8_s32(y), vdupq_n_u8(128)));
    int8x16_t by = vreinterpretq_s8_s32(x);
#ifdef __ARM_FEATURE_DOTPROD
    return vdotq_s32(sum, bytes, by);
#else
    int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(bytes), vget_low_s8(by)));
    int32x4_t high = vpaddlq_s16(vmull_high_s8(bytes, by));
    return vaddq_s32(sum, vpaddq_s32(low, high));
#endif
#endif
}

/* sum + y x: four stored bytes y, which are OFFSET too large, by four signed bytes x. */
ALWAYS Ints dot_bytes16(Ints sum, Ints y, Ints x) {
    return (Ints){dot_bytes4(sum.a, y.a, x.a), dot_bytes4(sum.b, y.b, x.b), dot_bytes4(sum.c, y.c, x.c),
                  dot_bytes4(sum.d, y.d, x.d)};
}

#if BFLOATS
ALWAYS int32x4_t dot_bfloats4(int32x4_t sum, int32x4_t y, int32x4_t x) {
    bfloat16x8_t by = vreinterpretq_bf16_s32(x);
    return vreinterpretq_s32_f32(vbfdotq_f32(vreinterpretq_f32_s32(sum), vreinterpretq_bf16_s32(y), by));
}

/* sum + y x: two bfloats by two bfloats. */
ALWAYS Ints dot_bfloats16(Ints sum, Ints y, Ints x) {
    /* Reads no other row too early; otherwise GCC spills sums to hold all six rows. */
    __asm__ volatile("" ::: "memory");
    return (Ints){dot_bfloats4(sum.a, y.a, x.a), dot_bfloats4(sum.b, y.b, x.b), dot_bfloats4(sum.c, y.c, x.c),
                  dot_bfloats4(sum.d, y.d, x.d)};
}

ALWAYS float32x4_t pair_bfloats4(float32x4_t first, float32x4_t second) {
    uint32x4_t below = vshrq_n_u32(vreinterpretq_u32_f32(first), 16);
    return vreinterpretq_f32_u32(vorrq_u32(below, vreinterpretq_u32_f32(second)));
}

/* Combines two bfloats in one unit: `first` in the lower half, `second` in the upper half. */
ALWAYS Floats pair_bfloats16(Floats first, Floats second) {
    return (Floats){pair_bfloats4(first.a, second.a), pair_bfloats4(first.b, second.b),
                    pair_bfloats4(first.c, second.c), pair_bfloats4(first.d, second.d)};
}
#endif

/* Keeps sums in their own registers; otherwise GCC copies and spills them in the loop before. */
ALWAYS void settle16(Ints *x) { __asm__("" : "+w"(x->a), "+w"(x->b), "+w"(x->c), "+w"(x->d)); }

#if BYTES_TOGETHER == 8
/* Sums of two rows with sixteen columns. Each register has those of two columns: of the first one with both rows, then of
   the second one. */
typedef struct {
    int32x4_t at[8];
} TwoRows;

/* All sums of the first row begin with one number, those of the second with another. */
ALWAYS TwoRows set_two_rows(int32_t first, int32_t second) {
    int32x4_t start = vzip1q_s32(vdupq_n_s32(first), vdupq_n_s32(second));
    return (TwoRows){{start, start, start, start, start, start, start, start}};
}

/* sums + y x for `pairs` pairs of rows: eight stored bytes of each column by eight signed bytes of each row. Rows are
   `stride` bytes apart. */
ALWAYS void multiply_two_rows(int pairs, TwoRows *sums, const void *columns, const void *rows, int64_t stride) {
    const uint8_t *y = columns;
    const int8_t *x = rows;
    int8x16_t eight[ROWS / 2];
#pragma GCC unroll 3
    for (int p = 0; p < pairs; p++, x += 2 * stride) eight[p] = vcombine_s8(vld1_s8(x), vld1_s8(x + stride));
#pragma GCC unroll 8
    for (int c = 0; c < 8; c++) {
        uint8x16_t two = vld1q_u8(y + 16 * c);
#pragma GCC unroll 3
        for (int p = 0; p < pairs; p++) sums[p].at[c] = vusmmlaq_s32(sums[p].at[c], two, eight[p]);
        /* Reads no column too early; otherwise GCC spills sums to hold all eight columns. */
        __asm__ volatile("" ::: "memory");
    }
}

/* The sums of the first row, or of the second. */
ALWAYS Ints row_of_two(const TwoRows *sums, int second) {
    const int32x4_t *s = sums->at;
    if (second)
        return (Ints){vuzp2q_s32(s[0], s[1]), vuzp2q_s32(s[2], s[3]), vuzp2q_s32(s[4], s[5]), vuzp2q_s32(s[6], s[7])};
    return (Ints){vuzp1q_s32(s[0], s[1]), vuzp1q_s32(s[2], s[3]), vuzp1q_s32(s[4], s[5]), vuzp1q_s32(s[6], s[7])};
}
#endif

ALWAYS Doubles zero8(void) {
    float64x2_t two = vdupq_n_f64(0.0);
    return (Doubles){two, two, two, two};
}

ALWAYS Doubles read8(const float *from) {
    float32x4_t low = vld1q_f32(from), high = vld1q_f32(from + 4);
    return (Doubles){vcvt_f64_f32(vget_low_f32(low)), vcvt_high_f64_f32(low), vcvt_f64_f32(vget_low_f32(high)),
                     vcvt_high_f64_f32(high)};
}

ALWAYS Doubles fmadd8(Doubles x, Doubles y, Doubles sum) {
    return (Doubles){vfmaq_f64(sum.a, x.a, y.a), vfmaq_f64(sum.b, x.b, y.b), vfmaq_f64(sum.c, x.c, y.c),
                     vfmaq_f64(sum.d, x.d, y.d)};
}

/* Sum of both together; halves are added until one number is left, the order of AVX-512's own sum. */
ALWAYS double sum8(Doubles x, Doubles y) {
    float64x2_t first = vaddq_f64(vaddq_f64(x.a, y.a), vaddq_f64(x.c, y.c));
    float64x2_t second = vaddq_f64(vaddq_f64(x.b, y.b), vaddq_f64(x.d, y.d));
    float64x2_t two = vaddq_f64(first, second);
    return vgetq_lane_f64(two, 0) + vgetq_lane_f64(two, 1);
}

/* Four rows of four units to columns; rows from count on are zeros. */
ALWAYS void transpose4(const char *rows, int64_t stride, int64_t count, char *columns, int64_t apart) {
    int32x4_t r[4];
    for (int i = 0; i < 4; i++) r[i] = i < count ? read_ints4((const uint8_t *)rows + i * stride) : vdupq_n_s32(0);
    int64x2_t low = vreinterpretq_s64_s32(vtrn1q_s32(r[0], r[1])), high = vreinterpretq_s64_s32(vtrn1q_s32(r[2], r[3]));
    int64x2_t odd = vreinterpretq_s64_s32(vtrn2q_s32(r[0], r[1]));
    int64x2_t odd_high = vreinterpretq_s64_s32(vtrn2q_s32(r[2], r[3]));
    vst1q_s64((int64_t *)columns, vtrn1q_s64(low, high));
    vst1q_s64((int64_t *)(columns + apart), vtrn1q_s64(odd, odd_high));
    vst1q_s64((int64_t *)(columns + 2 * apart), vtrn2q_s64(low, high));
    vst1q_s64((int64_t *)(columns + 3 * apart), vtrn2q_s64(odd, odd_high));
}

/* 16 rows of 16 units of four bytes to columns; rows from count on are zeros. */
static inline void transpose16(const char *rows, int64_t stride, int64_t count, int64_t units, char *columns,
                               int64_t apart) {
    for (int64_t row = 0; row < 16; row += 4)
        for (int64_t unit = 0; unit < units; unit += 4)
            transpose4(rows + row * stride + 4 * unit, stride, count - row, columns + unit * apart + 4 * row, apart);
}
