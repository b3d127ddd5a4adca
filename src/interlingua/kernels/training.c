/* What lies between the matrix products of training, forward and backward, each in one pass: in a transformer layer
   attention of packed sentences, dropout with residual sum and LayerNorm, activation; over a vocabulary the softmax. The
   products' biases are added on the way.

   Activations and their gradients are float32 or bfloat16, all that is computed in between is float32. Dropout keeps an
   element if its random byte is at least a threshold; no bytes: keeps all. Sums over rows are added to what is there.
   Widths are multiples of LANES, that of a vocabulary is not. Functions return 0, or 1 where there is no memory. */
#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LANES 16
#define ROWS 6
#define QUERIES 96 /* that are scored at once */
#define INLINE static inline __attribute__((always_inline))

enum { FLOAT32, BFLOAT16 };
enum { NONE, GELU, GELU_TANH, RELU, SILU, TANH };

typedef struct {
    const uint8_t *random;
    int64_t threshold;
    float scale;
} Dropout;

/* Of this file, so that a library of an older one is noticed; given at compilation. */
uint32_t digest(void) { return DIGEST; }

int supported(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

static int64_t up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

/* ---- sixteen numbers at a time ---- */

INLINE __m512 load(const void *x, int64_t at, int type) {
    if (type == FLOAT32) return _mm512_loadu_ps((const float *)x + at);
    __m256i halves = _mm256_loadu_si256((const __m256i *)((const uint16_t *)x + at));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

INLINE void store(void *x, int64_t at, __m512 value, int type) {
    if (type == FLOAT32)
        _mm512_storeu_ps((float *)x + at, value);
    else
        _mm256_storeu_si256((__m256i *)((uint16_t *)x + at), (__m256i)_mm512_cvtneps_pbh(value));
}

/* Some of them; zeros for the others. */
INLINE __m512 load_real(const void *x, int64_t at, __mmask16 real, int type) {
    if (type == FLOAT32) return _mm512_maskz_loadu_ps(real, (const float *)x + at);
    __m256i halves = _mm256_maskz_loadu_epi16(real, (const uint16_t *)x + at);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

INLINE void store_real(void *x, int64_t at, __m512 value, __mmask16 real, int type) {
    if (type == FLOAT32)
        _mm512_mask_storeu_ps((float *)x + at, real, value);
    else
        _mm256_mask_storeu_epi16((uint16_t *)x + at, real, (__m256i)_mm512_cvtneps_pbh(value));
}

/* Which of the sixteen are there. */
INLINE __mmask16 real(int64_t length, int64_t at) {
    return length - at >= LANES ? 0xFFFF : (__mmask16)((1u << (length - at)) - 1);
}

INLINE void add_to(float *sums, __m512 value) { _mm512_storeu_ps(sums, _mm512_add_ps(_mm512_loadu_ps(sums), value)); }

/* What elements at, at + 1, ... are multiplied by; those that are not real: by 0. */
INLINE __m512 kept(const Dropout *dropout, int64_t at, __mmask16 real) {
    if (!dropout->random) return _mm512_maskz_mov_ps(real, _mm512_set1_ps(1.0f));
    __m128i bytes = _mm_maskz_loadu_epi8(real, dropout->random + at);
    __mmask16 keep = _mm_mask_cmpge_epu8_mask(real, bytes, _mm_set1_epi8((char)dropout->threshold));
    return _mm512_maskz_mov_ps(keep, _mm512_set1_ps(dropout->scale));
}

static __m512 exp16(__m512 x) {
    x = _mm512_max_ps(_mm512_set1_ps(-87.3f), _mm512_min_ps(_mm512_set1_ps(88.0f), x)); /* NaN stays: it comes second */
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 0);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
    __m512 p = _mm512_set1_ps(1.9875691500e-4f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.3981999507e-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.0000001201e-1f));
    p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), _mm512_add_ps(r, _mm512_set1_ps(1.0f)));
    return _mm512_scalef_ps(p, n);
}

static __m512 sigmoid16(__m512 x) {
    __m512 e = exp16(_mm512_sub_ps(_mm512_setzero_ps(), x));
    return _mm512_div_ps(_mm512_set1_ps(1.0f), _mm512_add_ps(_mm512_set1_ps(1.0f), e));
}

/* An activation's value and slope. x Phi(x) has erf by Abramowitz and Stegun 7.1.26, 1.5e-7 off at most. */
INLINE __m512 activate(__m512 x, int activation, __m512 *slope) {
    __m512 one = _mm512_set1_ps(1.0f), zero = _mm512_setzero_ps();
    if (activation == GELU) {
        __m512 z = _mm512_mul_ps(_mm512_abs_ps(x), _mm512_set1_ps(0.70710678f));
        __m512 t = _mm512_div_ps(one, _mm512_fmadd_ps(z, _mm512_set1_ps(0.3275911f), one));
        __m512 p = _mm512_set1_ps(1.061405429f);
        p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(-1.453152027f));
        p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(1.421413741f));
        p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(-0.284496736f));
        p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0.254829592f));
        __m512 bell = exp16(_mm512_fnmadd_ps(z, z, zero));
        __m512 tail = _mm512_mul_ps(_mm512_mul_ps(_mm512_mul_ps(p, t), bell), _mm512_set1_ps(0.5f)); /* Phi(-|x|) */
        __mmask16 positive = _mm512_cmp_ps_mask(x, zero, _CMP_GE_OQ);
        __m512 below = _mm512_mask_sub_ps(tail, positive, one, tail); /* Phi(x) */
        *slope = _mm512_fmadd_ps(_mm512_mul_ps(x, bell), _mm512_set1_ps(0.39894228f), below);
        return _mm512_mul_ps(x, below);
    }
    if (activation == RELU) {
        *slope = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, zero, _CMP_GT_OQ), one);
        return _mm512_max_ps(x, zero);
    }
    if (activation == TANH) {
        __m512 s = sigmoid16(_mm512_add_ps(x, x)), value = _mm512_sub_ps(_mm512_add_ps(s, s), one);
        *slope = _mm512_fnmadd_ps(value, value, one);
        return value;
    }
    __m512 inner = x, rise = one; /* x sigmoid(inner), rise its slope: SiLU, or GELU by tanh */
    if (activation == GELU_TANH) {
        __m512 square = _mm512_mul_ps(x, x), twice = _mm512_set1_ps(1.59576912f); /* 2 sqrt(2/pi) */
        inner = _mm512_mul_ps(_mm512_mul_ps(x, twice), _mm512_fmadd_ps(square, _mm512_set1_ps(0.044715f), one));
        rise = _mm512_mul_ps(twice, _mm512_fmadd_ps(square, _mm512_set1_ps(3 * 0.044715f), one));
    }
    __m512 s = sigmoid16(inner);
    *slope = _mm512_fmadd_ps(_mm512_mul_ps(x, rise), _mm512_fnmadd_ps(s, s, s), s);
    return _mm512_mul_ps(x, s);
}

/* ---- activation ---- */

INLINE void activate_rows(int64_t rows, int64_t width, const void *x, const float *bias, void *y, int type, int kind) {
    __m512 slope;
    for (int64_t at = 0; at < rows * width; at += width)
        for (int64_t d = 0; d < width; d += LANES)
            store(y, at + d, activate(_mm512_add_ps(load(x, at + d, type), _mm512_loadu_ps(bias + d)), kind, &slope), type);
}

INLINE void activate_rows_back(int64_t rows, int64_t width, const void *dy, const void *x, const float *bias, void *dx,
                               float *dbias, int type, int kind) {
    __m512 slope;
    for (int64_t at = 0; at < rows * width; at += width) {
        for (int64_t d = 0; d < width; d += LANES) {
            activate(_mm512_add_ps(load(x, at + d, type), _mm512_loadu_ps(bias + d)), kind, &slope);
            __m512 gradient = _mm512_mul_ps(load(dy, at + d, type), slope);
            store(dx, at + d, gradient, type);
            add_to(dbias + d, gradient);
        }
    }
}

#define BY_KIND(CALL)                           \
    switch (kind) {                             \
        case GELU: CALL(GELU); break;           \
        case GELU_TANH: CALL(GELU_TANH); break; \
        case RELU: CALL(RELU); break;           \
        case SILU: CALL(SILU); break;           \
        default: CALL(TANH);                    \
    }
#define BY_TYPE(CALL) \
    if (type == FLOAT32) { CALL(FLOAT32); } else { CALL(BFLOAT16); }

/* y = activation(x + bias). */
int activation(int64_t type, int64_t kind, int64_t rows, int64_t width, const void *x, const float *bias, void *y) {
#define FLOATS(KIND) activate_rows(rows, width, x, bias, y, FLOAT32, KIND)
#define HALVES(KIND) activate_rows(rows, width, x, bias, y, BFLOAT16, KIND)
    if (type == FLOAT32) BY_KIND(FLOATS) else BY_KIND(HALVES)
#undef FLOATS
#undef HALVES
    return 0;
}

int activation_back(int64_t type, int64_t kind, int64_t rows, int64_t width, const void *dy, const void *x,
                     const float *bias, void *dx, float *dbias) {
#define FLOATS(KIND) activate_rows_back(rows, width, dy, x, bias, dx, dbias, FLOAT32, KIND)
#define HALVES(KIND) activate_rows_back(rows, width, dy, x, bias, dx, dbias, BFLOAT16, KIND)
    if (type == FLOAT32) BY_KIND(FLOATS) else BY_KIND(HALVES)
#undef FLOATS
#undef HALVES
    return 0;
}

/* ---- dropout, residual sum, LayerNorm ---- */

INLINE void norm_rows(int64_t rows, int64_t width, const void *x, const void *y, const float *bias,
                      const Dropout *dropout, const float *weight, const float *shift, float eps, void *out,
                      void *normal, float *inverse, int type) {
    float row[width];
    for (int64_t r = 0, at = 0; r < rows; r++, at += width) {
        __m512 sum = _mm512_setzero_ps(), squares = sum;
        for (int64_t d = 0; d < width; d += LANES) {
            __m512 value = _mm512_add_ps(load(y, at + d, type), _mm512_loadu_ps(bias + d));
            value = _mm512_fmadd_ps(value, kept(dropout, at + d, 0xFFFF), load(x, at + d, type));
            _mm512_storeu_ps(row + d, value);
            sum = _mm512_add_ps(sum, value);
        }
        __m512 mean = _mm512_set1_ps(_mm512_reduce_add_ps(sum) / width);
        for (int64_t d = 0; d < width; d += LANES) {
            __m512 off = _mm512_sub_ps(_mm512_loadu_ps(row + d), mean);
            squares = _mm512_fmadd_ps(off, off, squares);
        }
        __m512 deviation = _mm512_sqrt_ps(_mm512_set1_ps(_mm512_reduce_add_ps(squares) / width + eps));
        __m512 factor = _mm512_div_ps(_mm512_set1_ps(1.0f), deviation);
        inverse[r] = _mm512_cvtss_f32(factor);
        for (int64_t d = 0; d < width; d += LANES) {
            __m512 value = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(row + d), mean), factor);
            store(normal, at + d, value, type);
            value = _mm512_fmadd_ps(value, _mm512_loadu_ps(weight + d), _mm512_loadu_ps(shift + d));
            store(out, at + d, value, type);
        }
    }
}

INLINE void norm_rows_back(int64_t rows, int64_t width, const void *dout, const void *normal, const float *inverse,
                           const Dropout *dropout, const float *weight, void *dx, void *dy, float *dweight,
                           float *dshift, float *dbias, int type) {
    for (int64_t r = 0, at = 0; r < rows; r++, at += width) {
        __m512 sum = _mm512_setzero_ps(), along = sum, factor = _mm512_set1_ps(inverse[r]);
        for (int64_t d = 0; d < width; d += LANES) {
            __m512 g = _mm512_mul_ps(load(dout, at + d, type), _mm512_loadu_ps(weight + d));
            sum = _mm512_add_ps(sum, g);
            along = _mm512_fmadd_ps(g, load(normal, at + d, type), along);
        }
        __m512 mean = _mm512_set1_ps(_mm512_reduce_add_ps(sum) / width);
        along = _mm512_set1_ps(_mm512_reduce_add_ps(along) / width);
        for (int64_t d = 0; d < width; d += LANES) {
            __m512 upstream = load(dout, at + d, type), h = load(normal, at + d, type);
            __m512 g = _mm512_fmsub_ps(upstream, _mm512_loadu_ps(weight + d), mean);
            g = _mm512_mul_ps(_mm512_fnmadd_ps(h, along, g), factor);
            __m512 into = _mm512_mul_ps(g, kept(dropout, at + d, 0xFFFF));
            store(dx, at + d, g, type);
            store(dy, at + d, into, type);
            add_to(dweight + d, _mm512_mul_ps(upstream, h));
            add_to(dshift + d, upstream);
            add_to(dbias + d, into);
        }
    }
}

/* out = LayerNorm(x + dropout(y + bias)); also its input normalized, and the inverse deviation of each row. */
int residual_norm(int64_t type, int64_t rows, int64_t width, const void *x, const void *y, const float *bias,
                   const Dropout *dropout, const float *weight, const float *shift, float eps, void *out, void *normal,
                   float *inverse) {
#define CALL(TYPE) norm_rows(rows, width, x, y, bias, dropout, weight, shift, eps, out, normal, inverse, TYPE)
    BY_TYPE(CALL)
#undef CALL
    return 0;
}

int residual_norm_back(int64_t type, int64_t rows, int64_t width, const void *dout, const void *normal,
                        const float *inverse, const Dropout *dropout, const float *weight, void *dx, void *dy,
                        float *dweight, float *dshift, float *dbias) {
#define CALL(TYPE) \
    norm_rows_back(rows, width, dout, normal, inverse, dropout, weight, dx, dy, dweight, dshift, dbias, TYPE)
    BY_TYPE(CALL)
#undef CALL
    return 0;
}

/* ---- attention ---- */

/* Sums over k of a[r][k] b[k][c], for ROWS rows and VECTORS times sixteen columns; a's rows and steps are apart by any
   distance. The last row stands in for those beyond. */
#define TILE(NAME, VECTORS)                                                                                          \
    static void NAME(const float *a, int64_t apart, int64_t step, int64_t rows, const float *b, int64_t ldb,         \
                     int64_t inner, float *c, int64_t ldc, int add) {                                                \
        __m512 sums[ROWS][VECTORS];                                                                                  \
        const float *from[ROWS];                                                                                     \
        _Pragma("GCC unroll 6") for (int r = 0; r < ROWS; r++) {                                                     \
            from[r] = a + (r < rows ? r : rows - 1) * apart;                                                         \
            _Pragma("GCC unroll 4") for (int v = 0; v < VECTORS; v++) sums[r][v] = _mm512_setzero_ps();              \
        }                                                                                                            \
        for (int64_t k = 0, at = 0; k < inner; k++, at += step, b += ldb) {                                          \
            __m512 line[VECTORS];                                                                                    \
            _Pragma("GCC unroll 4") for (int v = 0; v < VECTORS; v++) line[v] = _mm512_loadu_ps(b + v * LANES);      \
            _Pragma("GCC unroll 6") for (int r = 0; r < ROWS; r++) {                                                 \
                __m512 x = _mm512_set1_ps(from[r][at]);                                                              \
                _Pragma("GCC unroll 4") for (int v = 0; v < VECTORS; v++)                                            \
                    sums[r][v] = _mm512_fmadd_ps(x, line[v], sums[r][v]);                                            \
            }                                                                                                        \
        }                                                                                                            \
        _Pragma("GCC unroll 6") for (int r = 0; r < ROWS; r++) {                                                     \
            if (r >= rows) break;                                                                                    \
            _Pragma("GCC unroll 4") for (int v = 0; v < VECTORS; v++) {                                              \
                float *to = c + r * ldc + v * LANES;                                                                 \
                _mm512_storeu_ps(to, add ? _mm512_add_ps(_mm512_loadu_ps(to), sums[r][v]) : sums[r][v]);             \
            }                                                                                                        \
        }                                                                                                            \
    }
TILE(one, 1)
TILE(two, 2)
TILE(three, 3)
TILE(four, 4)

/* c = a b, or c += a b; a is (rows, inner) with any strides, columns a multiple of LANES. */
static void product(const float *a, int64_t apart, int64_t step, int64_t rows, const float *b, int64_t ldb,
                    int64_t inner, int64_t columns, float *c, int64_t ldc, int add) {
    for (int64_t j = 0; j < columns; j += 4 * LANES) {
        int64_t vectors = columns - j < 4 * LANES ? (columns - j) / LANES : 4;
        for (int64_t i = 0; i < rows; i += ROWS)
            (vectors == 4   ? four
             : vectors == 3 ? three
             : vectors == 2 ? two
                            : one)(a + i * apart, apart, step, rows - i, b + j, ldb, inner, c + i * ldc + j, ldc, add);
    }
}

/* to[d][i] = from[i][d], for multiples of LANES. */
static void transpose(const float *from, int64_t rows, int64_t width, float *to) {
    for (int64_t i = 0; i < rows; i += LANES) {
        for (int64_t d = 0; d < width; d += LANES) {
            __m512 a[LANES], b[LANES];
            for (int r = 0; r < LANES; r++) a[r] = _mm512_loadu_ps(from + (i + r) * width + d);
            for (int r = 0; r < LANES; r += 4) { /* 4 x 4 in each quarter */
                __m512 t0 = _mm512_unpacklo_ps(a[r], a[r + 1]), t1 = _mm512_unpackhi_ps(a[r], a[r + 1]);
                __m512 t2 = _mm512_unpacklo_ps(a[r + 2], a[r + 3]), t3 = _mm512_unpackhi_ps(a[r + 2], a[r + 3]);
                b[r] = _mm512_shuffle_ps(t0, t2, 0x44), b[r + 1] = _mm512_shuffle_ps(t0, t2, 0xEE);
                b[r + 2] = _mm512_shuffle_ps(t1, t3, 0x44), b[r + 3] = _mm512_shuffle_ps(t1, t3, 0xEE);
            }
            for (int r = 0; r < 4; r++) { /* quarters */
                __m512 t0 = _mm512_shuffle_f32x4(b[r], b[r + 4], 0x88), t1 = _mm512_shuffle_f32x4(b[r], b[r + 4], 0xDD);
                __m512 t2 = _mm512_shuffle_f32x4(b[r + 8], b[r + 12], 0x88);
                __m512 t3 = _mm512_shuffle_f32x4(b[r + 8], b[r + 12], 0xDD);
                _mm512_storeu_ps(to + (d + r) * rows + i, _mm512_shuffle_f32x4(t0, t2, 0x88));
                _mm512_storeu_ps(to + (d + r + 4) * rows + i, _mm512_shuffle_f32x4(t1, t3, 0x88));
                _mm512_storeu_ps(to + (d + r + 8) * rows + i, _mm512_shuffle_f32x4(t0, t2, 0xDD));
                _mm512_storeu_ps(to + (d + r + 12) * rows + i, _mm512_shuffle_f32x4(t1, t3, 0xDD));
            }
        }
    }
}

typedef struct {
    int64_t width, heads;
    const int64_t *starts, *bytes; /* of each sentence: its first token, its first random byte (heads, queries, keys) */
    Dropout dropout;
} Sentences;

/* Memory for one head of the longest sentence. */
typedef struct {
    float *q, *k, *v, *up, *keys, *values, *scores, *slopes, *dq, *dk, *dv;
} Room;

static float *room_for(const Sentences *all, int64_t first, int64_t last, Room *room) {
    int64_t head = all->width / all->heads, longest = LANES, total = 0;
    for (int64_t s = first; s < last; s++)
        if (all->starts[s + 1] - all->starts[s] > longest) longest = all->starts[s + 1] - all->starts[s];
    int64_t rows = up(longest, LANES), block = rows < QUERIES ? rows : QUERIES;
    int64_t sizes[] = {block * head, rows * head, rows * head, block * head, rows * head, rows * head,
                       block * rows, block * rows, block * head, rows * head, rows * head};
    float **parts[] = {&room->q, &room->k, &room->v, &room->up, &room->keys, &room->values,
                       &room->scores, &room->slopes, &room->dq, &room->dk, &room->dv};
    for (int i = 0; i < 11; i++) total += sizes[i];
    float *memory = aligned_alloc(64, total * sizeof(float));
    if (!memory) return NULL;
    for (int64_t i = 0, at = 0; i < 11; at += sizes[i], i++) *parts[i] = memory + at;
    return memory;
}

/* Some columns of some rows as floats, (x + bias) factor; zeros in the rows up to a multiple of LANES. */
INLINE void fetch(const void *x, int64_t ld, int64_t rows, int64_t head, const float *bias, float factor, float *to,
                  int type) {
    __m512 times = _mm512_set1_ps(factor);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t d = 0; d < head; d += LANES) {
            __m512 value = load(x, i * ld + d, type);
            if (bias) value = _mm512_add_ps(value, _mm512_loadu_ps(bias + d));
            _mm512_storeu_ps(to + i * head + d, _mm512_mul_ps(value, times));
        }
    }
    memset(to + rows * head, 0, (up(rows, LANES) - rows) * head * sizeof(float));
}

/* And back, with their sums. */
INLINE void deliver(const float *from, int64_t rows, int64_t head, float factor, void *x, int64_t ld, float *sums,
                    int type) {
    __m512 times = _mm512_set1_ps(factor);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t d = 0; d < head; d += LANES) {
            __m512 value = _mm512_mul_ps(_mm512_loadu_ps(from + i * head + d), times);
            store(x, i * ld + d, value, type);
            if (sums) add_to(sums + d, value);
        }
    }
}

/* Softmax of a row of scores, then dropout; stats are its largest score and the inverse of its sum. */
static void softmax(float *scores, int64_t length, const Dropout *dropout, int64_t byte, float *stats) {
    __m512 largest = _mm512_set1_ps(-3.0e38f), sum = _mm512_setzero_ps();
    for (int64_t j = 0; j < length; j += LANES)
        largest = _mm512_mask_max_ps(largest, real(length, j), largest, _mm512_loadu_ps(scores + j));
    __m512 top = _mm512_set1_ps(stats[0] = _mm512_reduce_max_ps(largest));
    for (int64_t j = 0; j < length; j += LANES) {
        __m512 e = exp16(_mm512_sub_ps(_mm512_loadu_ps(scores + j), top));
        _mm512_storeu_ps(scores + j, e);
        sum = _mm512_mask_add_ps(sum, real(length, j), sum, e);
    }
    __m512 inverse = _mm512_set1_ps(stats[1] = 1.0f / _mm512_reduce_add_ps(sum));
    for (int64_t j = 0; j < length; j += LANES) {
        __m512 factor = _mm512_mul_ps(inverse, kept(dropout, byte + j, real(length, j)));
        _mm512_storeu_ps(scores + j, _mm512_mul_ps(_mm512_loadu_ps(scores + j), factor));
    }
}

/* From scores to weights after dropout, and from the slopes of those to the slopes of the scores. */
static void softmax_back(float *scores, float *slopes, int64_t length, const Dropout *dropout, int64_t byte,
                         const float *stats) {
    __m512 top = _mm512_set1_ps(stats[0]), inverse = _mm512_set1_ps(stats[1]), along = _mm512_setzero_ps();
    for (int64_t j = 0; j < length; j += LANES) {
        __m512 p = _mm512_mul_ps(exp16(_mm512_sub_ps(_mm512_loadu_ps(scores + j), top)), inverse);
        p = _mm512_maskz_mov_ps(real(length, j), p);
        _mm512_storeu_ps(scores + j, p);
        __m512 slope = _mm512_mul_ps(_mm512_loadu_ps(slopes + j), kept(dropout, byte + j, real(length, j)));
        _mm512_storeu_ps(slopes + j, slope);
        along = _mm512_fmadd_ps(p, slope, along);
    }
    __m512 mean = _mm512_set1_ps(_mm512_reduce_add_ps(along));
    for (int64_t j = 0; j < length; j += LANES) {
        __m512 p = _mm512_loadu_ps(scores + j);
        _mm512_storeu_ps(slopes + j, _mm512_mul_ps(p, _mm512_sub_ps(_mm512_loadu_ps(slopes + j), mean)));
        _mm512_storeu_ps(scores + j, _mm512_mul_ps(p, kept(dropout, byte + j, real(length, j))));
    }
}

INLINE float scale_of(int64_t head) {
    return _mm_cvtss_f32(_mm_div_ss(_mm_set_ss(1.0f), _mm_sqrt_ss(_mm_set_ss((float)head))));
}

INLINE void attend(const Sentences *all, int64_t s, int64_t h, const Room *room, const void *qkv, const float *bias,
                   void *context, float *stats, int type) {
    int64_t width = all->width, head = width / all->heads, ld = 3 * width, start = all->starts[s];
    int64_t length = all->starts[s + 1] - start, padded = up(length, LANES), at = start * ld + h * head;
    const char *from = (const char *)qkv, *to = (const char *)context;
    int64_t size = type == FLOAT32 ? 4 : 2;
    fetch(from + (at + width) * size, ld, length, head, bias + width + h * head, 1.0f, room->k, type);
    fetch(from + (at + 2 * width) * size, ld, length, head, bias + 2 * width + h * head, 1.0f, room->v, type);
    transpose(room->k, padded, head, room->keys);
    for (int64_t i = 0; i < length; i += QUERIES) {
        int64_t n = length - i < QUERIES ? length - i : QUERIES;
        fetch(from + (at + i * ld) * size, ld, n, head, bias + h * head, scale_of(head), room->q, type);
        product(room->q, head, 1, n, room->keys, padded, head, padded, room->scores, padded, 0);
        for (int64_t r = 0; r < n; r++)
            softmax(room->scores + r * padded, length, &all->dropout,
                    all->dropout.random ? all->bytes[s] + (h * length + i + r) * length : 0,
                    stats + 2 * ((start + i + r) * all->heads + h));
        product(room->scores, padded, 1, n, room->v, head, length, head, room->up, head, 0);
        deliver(room->up, n, head, 1.0f, (char *)to + ((start + i) * width + h * head) * size, width, NULL, type);
    }
}

INLINE void attend_back(const Sentences *all, int64_t s, int64_t h, const Room *room, const void *upstream,
                        const void *qkv, const float *bias, const float *stats, void *dqkv, float *dbias, int type) {
    int64_t width = all->width, head = width / all->heads, ld = 3 * width, start = all->starts[s];
    int64_t length = all->starts[s + 1] - start, padded = up(length, LANES), at = start * ld + h * head;
    int64_t size = type == FLOAT32 ? 4 : 2;
    const char *from = (const char *)qkv, *above = (const char *)upstream;
    char *to = (char *)dqkv;
    fetch(from + (at + width) * size, ld, length, head, bias + width + h * head, 1.0f, room->k, type);
    fetch(from + (at + 2 * width) * size, ld, length, head, bias + 2 * width + h * head, 1.0f, room->v, type);
    transpose(room->k, padded, head, room->keys);
    transpose(room->v, padded, head, room->values);
    for (int64_t i = 0; i < length; i += QUERIES) {
        int64_t n = length - i < QUERIES ? length - i : QUERIES;
        fetch(from + (at + i * ld) * size, ld, n, head, bias + h * head, scale_of(head), room->q, type);
        fetch(above + ((start + i) * width + h * head) * size, width, n, head, NULL, 1.0f, room->up, type);
        product(room->q, head, 1, n, room->keys, padded, head, padded, room->scores, padded, 0);
        product(room->up, head, 1, n, room->values, padded, head, padded, room->slopes, padded, 0);
        for (int64_t r = 0; r < n; r++)
            softmax_back(room->scores + r * padded, room->slopes + r * padded, length, &all->dropout,
                         all->dropout.random ? all->bytes[s] + (h * length + i + r) * length : 0,
                         stats + 2 * ((start + i + r) * all->heads + h));
        product(room->slopes, padded, 1, n, room->k, head, length, head, room->dq, head, 0);
        product(room->slopes, 1, padded, length, room->q, head, n, head, room->dk, head, i > 0);
        product(room->scores, 1, padded, length, room->up, head, n, head, room->dv, head, i > 0);
        deliver(room->dq, n, head, scale_of(head), to + (at + i * ld) * size, ld, dbias + h * head, type);
    }
    deliver(room->dk, length, head, 1.0f, to + (at + width) * size, ld, dbias + width + h * head, type);
    deliver(room->dv, length, head, 1.0f, to + (at + 2 * width) * size, ld, dbias + 2 * width + h * head, type);
}

/* Softmax(q k' / sqrt(head width)) v of sentences first to last over themselves; qkv without its bias, (tokens, 3,
   heads, head width). Stats are kept for the way back, (tokens, heads, 2). */
int attention(int64_t type, const Sentences *all, int64_t first, int64_t last, const void *qkv, const float *bias,
              void *context, float *stats) {
    Room room;
    float *memory = room_for(all, first, last, &room);
    if (!memory) return 1;
#define CALL(TYPE)                                        \
    for (int64_t s = first; s < last; s++)                \
        for (int64_t h = 0; h < all->heads; h++) attend(all, s, h, &room, qkv, bias, context, stats, TYPE)
    BY_TYPE(CALL)
#undef CALL
    free(memory);
    return 0;
}

int attention_back(int64_t type, const Sentences *all, int64_t first, int64_t last, const void *upstream,
                   const void *qkv, const float *bias, const float *stats, void *dqkv, float *dbias) {
    Room room;
    float *memory = room_for(all, first, last, &room);
    if (!memory) return 1;
#define CALL(TYPE)                         \
    for (int64_t s = first; s < last; s++) \
        for (int64_t h = 0; h < all->heads; h++) \
            attend_back(all, s, h, &room, upstream, qkv, bias, stats, dqkv, dbias, TYPE)
    BY_TYPE(CALL)
#undef CALL
    free(memory);
    return 0;
}

/* ---- softmax over a vocabulary, some words at a time ---- */

INLINE __m512 logits(const void *products, const float *bias, int64_t at, int64_t w, __mmask16 there, int type) {
    return _mm512_add_ps(load_real(products, at + w, there, type), _mm512_maskz_loadu_ps(there, bias + w));
}

INLINE void observe_rows(int64_t rows, int64_t words, const void *products, const float *bias, const int64_t *targets,
                         float *top, float *sum, float *expected, int type) {
    for (int64_t r = 0, at = 0; r < rows; r++, at += words) {
        __m512 largest = _mm512_set1_ps(top[r]), total = _mm512_setzero_ps();
        for (int64_t w = 0; w < words; w += LANES) {
            __mmask16 there = real(words, w);
            largest = _mm512_mask_max_ps(largest, there, largest, logits(products, bias, at, w, there, type));
        }
        float most = _mm512_reduce_max_ps(largest);
        largest = _mm512_set1_ps(most);
        for (int64_t w = 0; w < words; w += LANES) {
            __mmask16 there = real(words, w);
            __m512 e = exp16(_mm512_sub_ps(logits(products, bias, at, w, there, type), largest));
            total = _mm512_mask_add_ps(total, there, total, e);
        }
        float shrink = _mm512_cvtss_f32(exp16(_mm512_set1_ps(top[r] - most)));
        sum[r] = sum[r] * shrink + _mm512_reduce_add_ps(total);
        top[r] = most;
        if (targets[r] >= 0 && targets[r] < words)
            expected[r] = _mm512_cvtss_f32(logits(products, bias, at, targets[r], 1, type));
    }
}

INLINE void slope_rows(int64_t rows, int64_t words, const void *products, const float *bias, const int64_t *targets,
                       const float *normalizer, const float *upstream, void *slopes, float *dbias, int type) {
    for (int64_t r = 0, at = 0; r < rows; r++, at += words) {
        __m512 log_sum = _mm512_set1_ps(normalizer[r]), factor = _mm512_set1_ps(upstream[r]);
        for (int64_t w = 0; w < words; w += LANES) {
            __mmask16 there = real(words, w);
            __m512 slope = exp16(_mm512_sub_ps(logits(products, bias, at, w, there, type), log_sum));
            if (targets[r] >= w && targets[r] < w + LANES)
                slope = _mm512_mask_sub_ps(slope, (__mmask16)(1u << (targets[r] - w)), slope, _mm512_set1_ps(1.0f));
            slope = _mm512_mul_ps(slope, factor);
            store_real(slopes, at + w, slope, there, type);
            _mm512_mask_storeu_ps(dbias + w, there, _mm512_add_ps(_mm512_maskz_loadu_ps(there, dbias + w), slope));
        }
    }
}

/* Takes the logits products + bias of some words into each row's largest logit and its sum of e^(logit - largest), and
   notes the target's logit if it is among them; targets count from the first of these words. */
int observe(int64_t type, int64_t rows, int64_t words, const void *products, const float *bias, const int64_t *targets,
            float *top, float *sum, float *expected) {
#define CALL(TYPE) observe_rows(rows, words, products, bias, targets, top, sum, expected, TYPE)
    BY_TYPE(CALL)
#undef CALL
    return 0;
}

/* Slopes of upstream (log sum e^logits - the target's logit) along the logits of these words, and their sums. */
int slopes_of(int64_t type, int64_t rows, int64_t words, const void *products, const float *bias,
              const int64_t *targets, const float *normalizer, const float *upstream, void *slopes, float *dbias) {
#define CALL(TYPE) slope_rows(rows, words, products, bias, targets, normalizer, upstream, slopes, dbias, TYPE)
    BY_TYPE(CALL)
#undef CALL
    return 0;
}
