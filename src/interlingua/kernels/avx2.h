/* Sixteen numbers at a time, each in two registers of AVX2: the functions of avx512.h, with the same results.

   Products of bytes and of int16 use AVX-VNNI where the compiler may (the variant "avxvnni"). There are no products of
   bfloats: the encoder's weights are widened to float32 in registers, and its activations stay float32. */
#include <cpuid.h>
#include <immintrin.h>
#include <stdint.h>

#if defined(__AVXVNNI__) || defined(BYTES_IN_PAIRS)
#define OFFSET 128 /* the instruction multiplies signed bytes by unsigned ones, so the stored bytes + 128 */
#else
#define OFFSET 0   /* dot_bytes16 takes the 128 away again */
#endif
#define BYTES_TOGETHER 4 /* of a column side by side, which one instruction multiplies */
#define TILES 0
#define BFLOATS 0
#define INT16S 1  /* products of int16, twice as many at once as of floats */
#define VECTORS 1 /* of sixteen columns, in a tile of a product */
#define ROWS 6    /* by one vector: the sums of a product fill 12 of 16 registers */
#define COLUMNS 1 /* the same, where the tile is COLUMNS vectors by six rows */
#define ALWAYS static inline __attribute__((always_inline))

typedef struct {
    __m256 low, high;
} Floats;

typedef struct {
    __m256i low, high;
} Ints;

typedef struct {
    __m256d low, high;
} Doubles; /* eight */

enum { FLOAT32, BFLOAT16, BYTES, WIDENED, INT16 };

/* Leaf 7.1 of cpuid, for compilers that have no name for it; the system's support of AVX is that of AVX2. */
ALWAYS int has_avxvnni(void) {
    uint32_t a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}

ALWAYS int has_instructions(void) {
#ifdef __AVXVNNI__
    if (!has_avxvnni()) return 0;
#endif
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* A function of Floats that is one instruction for each half. */
#define FUNCTION1(name, f) \
    ALWAYS Floats name(Floats x) { return (Floats){f(x.low), f(x.high)}; }
#define FUNCTION2(name, f) \
    ALWAYS Floats name(Floats a, Floats b) { return (Floats){f(a.low, b.low), f(a.high, b.high)}; }
#define FUNCTION3(name, f) \
    ALWAYS Floats name(Floats a, Floats b, Floats c) { \
        return (Floats){f(a.low, b.low, c.low), f(a.high, b.high, c.high)}; \
    }
FUNCTION1(sqrt16, _mm256_sqrt_ps)
FUNCTION2(add16, _mm256_add_ps)
FUNCTION2(sub16, _mm256_sub_ps)
FUNCTION2(mul16, _mm256_mul_ps)
FUNCTION2(div16, _mm256_div_ps)
FUNCTION2(min16, _mm256_min_ps)
FUNCTION2(max16, _mm256_max_ps)
FUNCTION3(fmadd16, _mm256_fmadd_ps)   /* a b + c */
FUNCTION3(fmsub16, _mm256_fmsub_ps)   /* a b - c */
FUNCTION3(fnmadd16, _mm256_fnmadd_ps) /* c - a b */

ALWAYS Floats set16(float x) { return (Floats){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
ALWAYS Floats read16(const float *from) { return (Floats){_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }

ALWAYS void write16(float *to, Floats x) {
    _mm256_storeu_ps(to, x.low);
    _mm256_storeu_ps(to + 8, x.high);
}

ALWAYS Floats abs16(Floats x) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return (Floats){_mm256_andnot_ps(sign, x.low), _mm256_andnot_ps(sign, x.high)};
}

ALWAYS Floats round16(Floats x) {
    return (Floats){_mm256_round_ps(x.low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                    _mm256_round_ps(x.high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

/* Halves are added until one number is left, the order of AVX-512's own sum. */
ALWAYS float sum16(Floats x) {
    __m256 eight = _mm256_add_ps(x.low, x.high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

ALWAYS float largest16(Floats x) {
    __m256 eight = _mm256_max_ps(x.low, x.high);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

ALWAYS float first_lane16(Floats x) { return _mm256_cvtss_f32(x.low); }

/* a where x > 0, b elsewhere. */
ALWAYS Floats if_positive16(Floats x, Floats a, Floats b) {
    __m256 zero = _mm256_setzero_ps();
    return (Floats){_mm256_blendv_ps(b.low, a.low, _mm256_cmp_ps(x.low, zero, _CMP_GT_OQ)),
                    _mm256_blendv_ps(b.high, a.high, _mm256_cmp_ps(x.high, zero, _CMP_GT_OQ))};
}

/* The scale where a random byte is at least the threshold, 0 elsewhere. */
ALWAYS Floats keep16(const uint8_t *random, int64_t threshold, float scale) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)random);
    __m128i keep = _mm_cmpeq_epi8(_mm_max_epu8(bytes, _mm_set1_epi8((char)threshold)), bytes); /* all ones */
    __m256 low = _mm256_castsi256_ps(_mm256_cvtepi8_epi32(keep)), factor = _mm256_set1_ps(scale);
    __m256 high = _mm256_castsi256_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(keep, 8)));
    return (Floats){_mm256_and_ps(low, factor), _mm256_and_ps(high, factor)};
}

/* Limits x to the range of scale16; the order of the operands keeps NaN. */
ALWAYS Floats limit16(Floats x) { return min16(set16(127.0f), max16(set16(-127.0f), x)); }

/* x 2^whole for -126 <= whole <= 127, put together from the bits of an exponent; 0 for -127. */
ALWAYS __m256 scale8(__m256 x, __m256 whole) {
    __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(whole), _mm256_set1_epi32(127));
    return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
}

ALWAYS Floats scale16(Floats x, Floats whole) {
    return (Floats){scale8(x.low, whole.low), scale8(x.high, whole.high)};
}

/* The first `count` numbers of x, then those of `other`. */
ALWAYS Floats first16(int64_t count, Floats x, Floats other) {
    __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i low = _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)count), places);
    __m256i high = _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)count - 8), places);
    return (Floats){_mm256_blendv_ps(other.low, x.low, _mm256_castsi256_ps(low)),
                    _mm256_blendv_ps(other.high, x.high, _mm256_castsi256_ps(high))};
}

/* Bit i: a[i] is not less than b[i], or one of them is no number. */
ALWAYS uint64_t not_less16(Floats a, Floats b) {
    uint32_t low = _mm256_movemask_ps(_mm256_cmp_ps(a.low, b.low, _CMP_NLT_UQ));
    uint32_t high = _mm256_movemask_ps(_mm256_cmp_ps(a.high, b.high, _CMP_NLT_UQ));
    return low | high << 8;
}

/* Swaps each number with the one that is `apart` (1, 2, 4 or 8) places away. */
ALWAYS Floats swap16(Floats x, int apart) {
    if (apart == 1) return (Floats){_mm256_permute_ps(x.low, 0xB1), _mm256_permute_ps(x.high, 0xB1)};
    if (apart == 2) return (Floats){_mm256_permute_ps(x.low, 0x4E), _mm256_permute_ps(x.high, 0x4E)};
    if (apart == 8) return (Floats){x.high, x.low};
    return (Floats){_mm256_permute2f128_ps(x.low, x.low, 1), _mm256_permute2f128_ps(x.high, x.high, 1)};
}

/* 1 where swap16 takes a number from a higher place, -1 elsewhere. */
ALWAYS Floats signs16(int apart) {
    __m256 one = _mm256_set1_ps(1.0f), minus = _mm256_set1_ps(-1.0f);
    if (apart == 8) return (Floats){one, minus};
    __m256 eight = apart == 1   ? _mm256_blend_ps(one, minus, 0xAA)
                   : apart == 2 ? _mm256_blend_ps(one, minus, 0xCC)
                                : _mm256_blend_ps(one, minus, 0xF0);
    return (Floats){eight, eight};
}

/* Eight bfloats are the upper halves of floats. */
ALWAYS __m256 widen8(const char *from) {
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* Rounds to the nearest bfloat, or to the even one of two equally near ones; NaN stays NaN. */
ALWAYS void narrow8(char *to, __m256 x) {
    __m256i bits = _mm256_castps_si256(x), last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), last);
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256i is_number = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_ORD_Q));
    __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(quiet, rounded, is_number), 16);
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
    _mm_storeu_si128((__m128i *)to, packed);
}

ALWAYS Floats load(const char *from, int64_t type) {
    if (type == FLOAT32) return read16((const float *)from);
    return (Floats){widen8(from), widen8(from + 16)};
}

ALWAYS void store(char *to, int64_t type, Floats x) {
    if (type == FLOAT32) {
        write16((float *)to, x);
    } else {
        narrow8(to, x.low);
        narrow8(to + 16, x.high);
    }
}

ALWAYS Ints set_ints16(int32_t x) { return (Ints){_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }

ALWAYS Ints read_ints16(const void *from) {
    const __m256i *halves = from;
    return (Ints){_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)};
}

ALWAYS void write_ints16(void *to, Ints x) {
    _mm256_storeu_si256((__m256i *)to, x.low);
    _mm256_storeu_si256((__m256i *)to + 1, x.high);
}

ALWAYS Ints add_ints16(Ints a, Ints b) {
    return (Ints){_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}

ALWAYS Ints higher_half16(Ints x) {
    __m256i mask = _mm256_set1_epi32(-65536);
    return (Ints){_mm256_and_si256(x.low, mask), _mm256_and_si256(x.high, mask)};
}

/* Moves the lower half to the place of the higher one. */
ALWAYS Ints lower_half16(Ints x) { return (Ints){_mm256_slli_epi32(x.low, 16), _mm256_slli_epi32(x.high, 16)}; }

ALWAYS Ints to_ints16(Floats x) { return (Ints){_mm256_cvtps_epi32(x.low), _mm256_cvtps_epi32(x.high)}; }
ALWAYS Floats to_floats16(Ints x) { return (Floats){_mm256_cvtepi32_ps(x.low), _mm256_cvtepi32_ps(x.high)}; }
ALWAYS Floats as_floats16(Ints x) { return (Floats){_mm256_castsi256_ps(x.low), _mm256_castsi256_ps(x.high)}; }
ALWAYS Ints as_ints16(Floats x) { return (Ints){_mm256_castps_si256(x.low), _mm256_castps_si256(x.high)}; }

ALWAYS int32_t sum_ints16(Ints x) {
    __m256i eight = _mm256_add_epi32(x.low, x.high);
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}

/* Writes bytes; a number out of range becomes the nearest byte. */
ALWAYS void write_bytes16(char *to, Ints x) {
    __m128i low = _mm_packs_epi32(_mm256_castsi256_si128(x.low), _mm256_extracti128_si256(x.low, 1));
    __m128i high = _mm_packs_epi32(_mm256_castsi256_si128(x.high), _mm256_extracti128_si256(x.high, 1));
    _mm_storeu_si128((__m128i *)to, _mm_packs_epi16(low, high));
}

/* Writes int16; a number out of range becomes the nearest int16. */
ALWAYS void write_int16s16(char *to, Ints x) {
    __m256i packed = _mm256_packs_epi32(x.low, x.high); /* quarters: low's first, high's first, low's second ... */
    _mm256_storeu_si256((__m256i *)to, _mm256_permute4x64_epi64(packed, 0xD8));
}

#ifdef __AVXVNNI__
ALWAYS __m256i dot_bytes8(__m256i sum, __m256i y, __m256i x) { return _mm256_dpbusd_avx_epi32(sum, y, x); }
ALWAYS __m256i dot_int16s8(__m256i sum, __m256i y, __m256i x) { return _mm256_dpwssd_avx_epi32(sum, y, x); }
#else
ALWAYS __m256i dot_bytes8(__m256i sum, __m256i y, __m256i x) {
#ifdef BYTES_IN_PAIRS
    /* Exact: two neighboring x are together at most 128, so that 255 of each fit the 16 bits in between. */
    __m256i pairs = _mm256_maddubs_epi16(y, x);
#else
    /* Exact: with y's sign moved to x, two products are at most 2 * 127 * 127, which fit the 16 bits in between. */
    __m256i byte = _mm256_xor_si256(y, _mm256_set1_epi8(-128));
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(byte), _mm256_sign_epi8(x, byte));
#endif
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

ALWAYS __m256i dot_int16s8(__m256i sum, __m256i y, __m256i x) { return _mm256_add_epi32(sum, _mm256_madd_epi16(y, x)); }
#endif

/* sum + y x: four stored bytes y, which are 128 too large, by four signed bytes x. */
ALWAYS Ints dot_bytes16(Ints sum, Ints y, Ints x) {
    return (Ints){dot_bytes8(sum.low, y.low, x.low), dot_bytes8(sum.high, y.high, x.high)};
}

/* sum + y x: two int16 by two int16. */
ALWAYS Ints dot_int16s16(Ints sum, Ints y, Ints x) {
    return (Ints){dot_int16s8(sum.low, y.low, x.low), dot_int16s8(sum.high, y.high, x.high)};
}

/* Keeps sums in their own registers; otherwise GCC copies and spills them in the loop before. */
ALWAYS void settle16(Ints *x) { __asm__("" : "+x"(x->low), "+x"(x->high)); }

ALWAYS Doubles zero8(void) { return (Doubles){_mm256_setzero_pd(), _mm256_setzero_pd()}; }

ALWAYS Doubles read8(const float *from) {
    return (Doubles){_mm256_cvtps_pd(_mm_loadu_ps(from)), _mm256_cvtps_pd(_mm_loadu_ps(from + 4))};
}

ALWAYS Doubles fmadd8(Doubles a, Doubles b, Doubles c) {
    return (Doubles){_mm256_fmadd_pd(a.low, b.low, c.low), _mm256_fmadd_pd(a.high, b.high, c.high)};
}

/* Sum of both together; halves are added until one number is left, the order of AVX-512's own sum. */
ALWAYS double sum8(Doubles a, Doubles b) {
    __m256d four = _mm256_add_pd(_mm256_add_pd(a.low, b.low), _mm256_add_pd(a.high, b.high));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/* Eight rows of eight units to columns; rows from count on are zeros. */
ALWAYS void transpose8(const char *rows, int64_t stride, int64_t count, char *columns, int64_t apart) {
    __m256 r[8], t[8];
    for (int i = 0; i < 8; i++)
        r[i] = i < count ? _mm256_loadu_ps((const float *)(rows + i * stride)) : _mm256_setzero_ps();
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) { /* the halves of r[i] are columns i and i + 4 of four rows */
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
    }
    for (int i = 0; i < 4; i++) {
        _mm256_store_ps((float *)(columns + i * apart), _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_store_ps((float *)(columns + (i + 4) * apart), _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

/* 16 rows of 16 units of four bytes to columns; rows from count on are zeros. */
static inline void transpose16(const char *rows, int64_t stride, int64_t count, int64_t units, char *columns,
                               int64_t apart) {
    for (int64_t row = 0; row < 16; row += 8)
        for (int64_t unit = 0; unit < units; unit += 8)
            transpose8(rows + row * stride + 4 * unit, stride, count - row, columns + unit * apart + 4 * row, apart);
}
