/* Sixteen numbers at a time, each in a register of AVX-512: avx2.h and neon.h have the same functions for processors
   without. There are products of bfloats where the compiler may; elsewhere (the variant "avx512vnni") the encoder's
   weights are widened to float32 in registers, and its activations stay float32. */
#include <cpuid.h>
#include <immintrin.h>
#include <stdint.h>

#ifdef __AVX512BF16__
#define BFLOATS 1   /* products of bfloats */
#else
#define BFLOATS 0
#endif
#define INT16S 1    /* products of int16, twice as many at once as of floats */
#if defined(EMULATED_TILES) /* a header of tests, for processors without them */
#include EMULATED_TILES
#elif defined(__AMX_BF16__) || defined(__AMXBF16__) /* as older clangs call it */
#include "amx.h"
#else
#define TILES 0
#define tiles_allowed() 1 /* none are used */
#endif
#define VECTORS 2   /* of sixteen columns, in a tile of a product */
#define ROWS 12     /* by VECTORS vectors: the sums of a product fill 24 of 32 registers */
#define COLUMNS 4   /* the same, where the tile is COLUMNS vectors by six rows: 24 registers too */
#define OFFSET 128  /* the instruction multiplies signed bytes by unsigned ones, so the stored bytes + 128 */
#define BYTES_TOGETHER 4 /* of a column side by side, which one instruction multiplies */
#define ALWAYS static inline __attribute__((always_inline))

typedef __m512 Floats;
typedef __m512i Ints;
typedef __m512d Doubles; /* eight */

enum { FLOAT32, BFLOAT16, BYTES, WIDENED, INT16 };

ALWAYS int has_instructions(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni") &&
           (!BFLOATS || __builtin_cpu_supports("avx512bf16")) && tiles_allowed();
}

ALWAYS Floats set16(float x) { return _mm512_set1_ps(x); }
ALWAYS Floats read16(const float *from) { return _mm512_loadu_ps(from); }
ALWAYS void write16(float *to, Floats x) { _mm512_storeu_ps(to, x); }
ALWAYS Floats add16(Floats a, Floats b) { return _mm512_add_ps(a, b); }
ALWAYS Floats sub16(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
ALWAYS Floats mul16(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
ALWAYS Floats div16(Floats a, Floats b) { return _mm512_div_ps(a, b); }
ALWAYS Floats min16(Floats a, Floats b) { return _mm512_min_ps(a, b); }
ALWAYS Floats max16(Floats a, Floats b) { return _mm512_max_ps(a, b); }
ALWAYS Floats abs16(Floats x) { return _mm512_abs_ps(x); }
ALWAYS Floats sqrt16(Floats x) { return _mm512_sqrt_ps(x); }
ALWAYS Floats fmadd16(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }   /* a b + c */
ALWAYS Floats fmsub16(Floats a, Floats b, Floats c) { return _mm512_fmsub_ps(a, b, c); }   /* a b - c */
ALWAYS Floats fnmadd16(Floats a, Floats b, Floats c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a b */
ALWAYS Floats round16(Floats x) { return _mm512_roundscale_ps(x, 0); }
ALWAYS float sum16(Floats x) { return _mm512_reduce_add_ps(x); }
ALWAYS float largest16(Floats x) { return _mm512_reduce_max_ps(x); }

ALWAYS float first_lane16(Floats x) { return _mm512_cvtss_f32(x); }

/* a where x > 0, b elsewhere. */
ALWAYS Floats if_positive16(Floats x, Floats a, Floats b) {
    return _mm512_mask_mov_ps(b, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ), a);
}

/* The scale where a random byte is at least the threshold, 0 elsewhere. */
ALWAYS Floats keep16(const uint8_t *random, int64_t threshold, float scale) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)random);
    __mmask16 keep = _mm_cmpge_epu8_mask(bytes, _mm_set1_epi8((char)threshold));
    return _mm512_maskz_mov_ps(keep, _mm512_set1_ps(scale));
}

/* Limits x to the range of scale16, which is any number here. */
ALWAYS Floats limit16(Floats x) { return x; }

/* x 2^whole; 0 far below. */
ALWAYS Floats scale16(Floats x, Floats whole) { return _mm512_scalef_ps(x, whole); }

/* The first `count` numbers of x, then those of `other`. */
ALWAYS Floats first16(int64_t count, Floats x, Floats other) {
    return _mm512_mask_mov_ps(other, (__mmask16)((1u << count) - 1), x);
}

/* Bit i: a[i] is not less than b[i], or one of them is no number. */
ALWAYS uint64_t not_less16(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ); }

/* Swaps each number with the one that is `apart` (1, 2, 4 or 8) places away. */
ALWAYS Floats swap16(Floats x, int apart) {
    if (apart == 1) return _mm512_permute_ps(x, 0xB1);
    if (apart == 2) return _mm512_permute_ps(x, 0x4E);
    return apart == 4 ? _mm512_shuffle_f32x4(x, x, 0xB1) : _mm512_shuffle_f32x4(x, x, 0x4E);
}

/* 1 where swap16 takes a number from a higher place, -1 elsewhere. */
ALWAYS Floats signs16(int apart) {
    __mmask16 minus = apart == 1 ? 0xAAAA : apart == 2 ? 0xCCCC : apart == 4 ? 0xF0F0 : 0xFF00;
    return _mm512_mask_blend_ps(minus, _mm512_set1_ps(1.0f), _mm512_set1_ps(-1.0f));
}

ALWAYS Floats load(const char *from, int64_t type) {
    if (type == FLOAT32) return _mm512_loadu_ps(from);
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

/* Rounds to the nearest bfloat, or to the even one of two equally near ones; NaN stays NaN. */
ALWAYS __m256i narrow16(Floats x) {
#if BFLOATS
    return (__m256i)_mm512_cvtneps_pbh(x);
#else
    __m512i bits = _mm512_castps_si512(x), last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), last);
    __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    __mmask16 is_number = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(quiet, is_number, rounded), 16));
#endif
}

ALWAYS void store(char *to, int64_t type, Floats x) {
    if (type == FLOAT32) _mm512_storeu_ps(to, x);
    else _mm256_storeu_si256((__m256i *)to, narrow16(x));
}

ALWAYS Ints set_ints16(int32_t x) { return _mm512_set1_epi32(x); }
ALWAYS Ints read_ints16(const void *from) { return _mm512_loadu_si512(from); }
ALWAYS void write_ints16(void *to, Ints x) { _mm512_storeu_si512(to, x); }
ALWAYS Ints add_ints16(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
ALWAYS Ints higher_half16(Ints x) { return _mm512_and_si512(x, _mm512_set1_epi32(-65536)); }
ALWAYS Ints lower_half16(Ints x) { return _mm512_slli_epi32(x, 16); } /* to the higher place */
ALWAYS Ints to_ints16(Floats x) { return _mm512_cvtps_epi32(x); }
ALWAYS Floats to_floats16(Ints x) { return _mm512_cvtepi32_ps(x); }
ALWAYS Floats as_floats16(Ints x) { return _mm512_castsi512_ps(x); }
ALWAYS Ints as_ints16(Floats x) { return _mm512_castps_si512(x); }
ALWAYS int32_t sum_ints16(Ints x) { return _mm512_reduce_add_epi32(x); }

/* Writes bytes; a number out of range becomes the nearest byte. */
ALWAYS void write_bytes16(char *to, Ints x) { _mm_storeu_si128((__m128i *)to, _mm512_cvtsepi32_epi8(x)); }

/* Writes int16; a number out of range becomes the nearest int16. */
ALWAYS void write_int16s16(char *to, Ints x) { _mm256_storeu_si256((__m256i *)to, _mm512_cvtsepi32_epi16(x)); }

/* sum + y x: four stored bytes y, which are 128 too large, by four signed bytes x. */
ALWAYS Ints dot_bytes16(Ints sum, Ints y, Ints x) { return _mm512_dpbusd_epi32(sum, y, x); }

#if BFLOATS
/* sum + y x: two bfloats by two bfloats. */
ALWAYS Ints dot_bfloats16(Ints sum, Ints y, Ints x) {
    return (Ints)_mm512_dpbf16_ps((Floats)sum, (__m512bh)y, (__m512bh)x);
}
#endif

/* sum + y x: two int16 by two int16. */
ALWAYS Ints dot_int16s16(Ints sum, Ints y, Ints x) { return _mm512_dpwssd_epi32(sum, y, x); }

/* Combines two bfloats in one unit: `first` in the lower half, `second` in the upper half. */
ALWAYS Floats pair_bfloats16(Floats first, Floats second) {
    return (Floats)_mm512_or_si512(_mm512_srli_epi32((Ints)first, 16), (Ints)second);
}

/* Keeps a sum in its own register; otherwise GCC copies and spills the sums in the loop before. */
ALWAYS void settle16(Ints *x) { __asm__("" : "+v"(*x)); }

ALWAYS Doubles zero8(void) { return _mm512_setzero_pd(); }
ALWAYS Doubles read8(const float *from) { return _mm512_cvtps_pd(_mm256_loadu_ps(from)); }
ALWAYS Doubles fmadd8(Doubles a, Doubles b, Doubles c) { return _mm512_fmadd_pd(a, b, c); }
ALWAYS double sum8(Doubles a, Doubles b) { return _mm512_reduce_add_pd(_mm512_add_pd(a, b)); }

/* 16 rows of up to 16 units of four bytes to columns; rows from count on are zeros. */
static inline void transpose16(const char *rows, int64_t stride, int64_t count, int64_t units, char *columns,
                               int64_t apart) {
    __m512i r[16], t[16];
    __mmask16 real = (__mmask16)((1u << units) - 1);
    for (int i = 0; i < 16; i++)
        r[i] = i < count ? _mm512_maskz_loadu_epi32(real, rows + i * stride) : _mm512_setzero_si512();
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int i = 0; i < 4; i++) { /* the quarters of r[i + 4 k] are columns i, i + 4 ... of four rows each */
        __m512i even = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88), odd = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xDD);
        __m512i even_below = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        __m512i odd_below = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xDD);
        t[i] = _mm512_shuffle_i32x4(even, even_below, 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(odd, odd_below, 0x88);
        t[i + 8] = _mm512_shuffle_i32x4(even, even_below, 0xDD);
        t[i + 12] = _mm512_shuffle_i32x4(odd, odd_below, 0xDD);
    }
    for (int i = 0; i < units; i++) _mm512_store_si512(columns + i * apart, t[i]);
}
