/* A BERT-shaped transformer over packed sentences: no padding, each sentence attends to itself.

   Sentences go through all layers in groups that stay in the cache. Products are made in float32 or bfloat16; what lies
   between them (residual sums, LayerNorm, softmax, activations) is float32 throughout. Weights stand in panels of GROUP
   outputs, [panel][inputs / step][GROUP][step], step = 4 bytes' worth of inputs, aligned to 64 bytes. */
#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 6
#define LANES 16
#define GROUP (4 * LANES)
#define BLOCK_ROWS 96     /* their activations stay in the second-level cache */
#define GROUP_TOKENS 512  /* tokens that go through all layers together, or one sentence */
#define QUERIES 4

enum { FLOAT32, BFLOAT16 };
enum { NONE, GELU, GELU_TANH, RELU, SILU, TANH };

typedef struct {
    const void *weights;
    const float *bias; /* up(outputs, GROUP) of them */
    int64_t inputs, outputs;
} Linear;

typedef struct {
    const float *weight, *bias;
} Norm;

typedef struct {
    Linear qkv, attention_output, intermediate, output;
    Norm attention_norm, output_norm;
} Layer;

typedef struct {
    int64_t width, heads, inner, layers, type, activation, first_position;
    float eps;
    const float *words, *positions;
    Norm norm;
    const Layer *layer;
} Model;

/* Of this file, so that a library of an older one is noticed; given at compilation. */
uint32_t digest(void) { return DIGEST; }

int supported(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16");
}

static int64_t up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

/* Bytes of a row of activations. */
static int64_t row_bytes(int64_t type, int64_t inputs) { return inputs * (type == FLOAT32 ? 4 : 2); }

/* ---- functions of one number, sixteen at a time ---- */

static __m512 exp16(__m512 x) {
    x = _mm512_max_ps(_mm512_min_ps(x, _mm512_set1_ps(88.0f)), _mm512_set1_ps(-87.3f));
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

/* x Phi(x), with erf by Abramowitz and Stegun 7.1.26: 1.5e-7 off at most. */
static __m512 gelu16(__m512 x) {
    __m512 z = _mm512_mul_ps(_mm512_abs_ps(x), _mm512_set1_ps(0.70710678f)), one = _mm512_set1_ps(1.0f);
    __m512 t = _mm512_div_ps(one, _mm512_fmadd_ps(z, _mm512_set1_ps(0.3275911f), one));
    __m512 p = _mm512_set1_ps(1.061405429f);
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(-1.453152027f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(1.421413741f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(-0.284496736f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0.254829592f));
    __m512 tail = _mm512_mul_ps(_mm512_mul_ps(p, t), exp16(_mm512_fnmadd_ps(z, z, _mm512_setzero_ps())));
    __m512 half = _mm512_mul_ps(x, _mm512_set1_ps(0.5f)); /* x/2 (1 + erf z) = max(x, 0) - |x|/2 tail */
    return _mm512_fnmadd_ps(_mm512_abs_ps(half), tail, _mm512_max_ps(x, _mm512_setzero_ps()));
}

static __m512 gelu_tanh16(__m512 x) { /* x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)) */
    __m512 cube = _mm512_mul_ps(_mm512_mul_ps(x, x), x);
    __m512 inner = _mm512_fmadd_ps(cube, _mm512_set1_ps(0.044715f), x);
    return _mm512_mul_ps(x, sigmoid16(_mm512_mul_ps(inner, _mm512_set1_ps(1.59576912f))));
}

static __m512 tanh16(__m512 x) {
    __m512 s = sigmoid16(_mm512_add_ps(x, x));
    return _mm512_sub_ps(_mm512_add_ps(s, s), _mm512_set1_ps(1.0f));
}

static __m512 activate16(__m512 x, int64_t activation) {
    switch (activation) {
        case GELU: return gelu16(x);
        case GELU_TANH: return gelu_tanh16(x);
        case RELU: return _mm512_max_ps(x, _mm512_setzero_ps());
        case SILU: return _mm512_mul_ps(x, sigmoid16(x));
        case TANH: return tanh16(x);
    }
    return x;
}

/* ---- products ---- */

/* ROWS rows by a panel of GROUP outputs; the sums stay in registers. */
#define PRODUCTS(NAME, MULTIPLY)                                                                                      \
    static __attribute__((noinline)) void NAME(const char *rows, int64_t stride, const char *panel, float *tile) {    \
        __m512 sums[ROWS][4];                                                                                         \
        _Pragma("GCC unroll 6") for (int r = 0; r < ROWS; r++)                                                        \
            _Pragma("GCC unroll 4") for (int c = 0; c < 4; c++) sums[r][c] = _mm512_setzero_ps();                     \
        for (int64_t d = 0; d < stride; d += 4, panel += 4 * GROUP) {                                                 \
            __m512 w0 = _mm512_load_ps(panel), w1 = _mm512_load_ps(panel + 64);                                       \
            __m512 w2 = _mm512_load_ps(panel + 128), w3 = _mm512_load_ps(panel + 192);                                \
            _Pragma("GCC unroll 6") for (int r = 0; r < ROWS; r++) {                                                  \
                __m512 x = _mm512_set1_ps(*(const float *)(rows + r * stride + d)); /* of whatever type */            \
                sums[r][0] = MULTIPLY(sums[r][0], w0, x);                                                             \
                sums[r][1] = MULTIPLY(sums[r][1], w1, x);                                                             \
                sums[r][2] = MULTIPLY(sums[r][2], w2, x);                                                             \
                sums[r][3] = MULTIPLY(sums[r][3], w3, x);                                                             \
            }                                                                                                         \
        }                                                                                                             \
        _Pragma("GCC unroll 6") for (int r = 0; r < ROWS; r++)                                                        \
            _Pragma("GCC unroll 4") for (int c = 0; c < 4; c++)                                                       \
                _mm512_store_ps(tile + r * GROUP + c * LANES, sums[r][c]);                                            \
    }

#define TIMES_FLOAT(sum, w, x) _mm512_fmadd_ps(w, x, sum)
#define TIMES_BFLOAT(sum, w, x) _mm512_dpbf16_ps(sum, (__m512bh)(w), (__m512bh)(x))
PRODUCTS(of_floats, TIMES_FLOAT)
PRODUCTS(of_bfloats, TIMES_BFLOAT)

/* Rows in the type of the products. */
static void convert(const float *x, int64_t rows, int64_t from, int64_t inputs, int64_t type, char *to) {
    for (int64_t r = 0; r < rows; r++, x += from, to += row_bytes(type, inputs)) {
        if (type == FLOAT32) {
            memcpy(to, x, inputs * sizeof(float));
        } else {
            for (int64_t d = 0; d < inputs; d += LANES)
                _mm256_storeu_si256((__m256i *)(to + 2 * d), (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x + d)));
        }
    }
}

/* activation(x W' + b) of some rows, to rows of up(outputs, GROUP) floats. There is room for ROWS - 1 more of x. */
static void multiply(const Linear *linear, int64_t type, const char *x, int64_t rows, int64_t activation, float *y) {
    int64_t stride = row_bytes(type, linear->inputs), ld = up(linear->outputs, GROUP);
    float tile[ROWS * GROUP] __attribute__((aligned(64)));
    for (int64_t j = 0; j < ld; j += GROUP) {
        const char *panel = (const char *)linear->weights + j * stride;
        for (int64_t i = 0; i < rows; i += ROWS) {
            (type == FLOAT32 ? of_floats : of_bfloats)(x + i * stride, stride, panel, tile);
            for (int64_t r = 0; r < ROWS && i + r < rows; r++) {
                for (int64_t c = 0; c < GROUP; c += LANES) {
                    __m512 value = _mm512_load_ps(tile + r * GROUP + c);
                    value = _mm512_add_ps(value, _mm512_loadu_ps(linear->bias + j + c));
                    _mm512_storeu_ps(y + (i + r) * ld + j + c, activate16(value, activation));
                }
            }
        }
    }
}

/* ---- between the products ---- */

/* x = LayerNorm(x + y), or of x alone without y. */
static void normalize(float *x, const float *y, int64_t width, const Norm *norm, float eps) {
    __m512 sum = _mm512_setzero_ps(), squares = sum;
    for (int64_t d = 0; d < width; d += LANES) {
        __m512 value = _mm512_loadu_ps(x + d);
        if (y) value = _mm512_add_ps(value, _mm512_loadu_ps(y + d));
        _mm512_storeu_ps(x + d, value);
        sum = _mm512_add_ps(sum, value);
    }
    __m512 mean = _mm512_set1_ps(_mm512_reduce_add_ps(sum) / width);
    for (int64_t d = 0; d < width; d += LANES) {
        __m512 off = _mm512_sub_ps(_mm512_loadu_ps(x + d), mean);
        squares = _mm512_fmadd_ps(off, off, squares);
    }
    __m512 deviation = _mm512_sqrt_ps(_mm512_set1_ps(_mm512_reduce_add_ps(squares) / width + eps));
    __m512 inverse = _mm512_div_ps(_mm512_set1_ps(1.0f), deviation);
    for (int64_t d = 0; d < width; d += LANES) {
        __m512 value = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(x + d), mean), inverse);
        value = _mm512_fmadd_ps(value, _mm512_loadu_ps(norm->weight + d), _mm512_loadu_ps(norm->bias + d));
        _mm512_storeu_ps(x + d, value);
    }
}

/* Scores of QUERIES queries with all keys, 64 keys at a time: keys are transposed, (head width, padded). */
static void scores_of(const float *q, const int64_t *rows, const float *keys, int64_t head, int64_t padded,
                      float *scores) {
    for (int64_t j = 0; j < padded; j += GROUP) {
        int vectors = padded - j >= GROUP ? 4 : (int)((padded - j) / LANES);
        __m512 sums[QUERIES][4];
        for (int r = 0; r < QUERIES; r++)
            for (int c = 0; c < 4; c++) sums[r][c] = _mm512_setzero_ps();
        for (int64_t d = 0; d < head; d++) {
            for (int c = 0; c < vectors; c++) {
                __m512 key = _mm512_loadu_ps(keys + d * padded + j + c * LANES);
                for (int r = 0; r < QUERIES; r++)
                    sums[r][c] = _mm512_fmadd_ps(_mm512_set1_ps(q[rows[r] + d]), key, sums[r][c]);
            }
        }
        for (int r = 0; r < QUERIES; r++)
            for (int c = 0; c < vectors; c++) _mm512_storeu_ps(scores + r * padded + j + c * LANES, sums[r][c]);
    }
}

static void softmax(float *scores, int64_t length, int64_t padded, float scale) {
    __m512 largest = _mm512_set1_ps(-3.0e38f), sum = _mm512_setzero_ps(), factor = _mm512_set1_ps(scale);
    for (int64_t j = 0; j < padded; j += LANES) {
        __mmask16 real = length - j >= LANES ? 0xFFFF : (__mmask16)((1u << (length - j)) - 1);
        largest = _mm512_mask_max_ps(largest, real, largest, _mm512_loadu_ps(scores + j));
    }
    __m512 top = _mm512_set1_ps(_mm512_reduce_max_ps(largest));
    for (int64_t j = 0; j < padded; j += LANES) {
        __mmask16 real = length - j >= LANES ? 0xFFFF : (__mmask16)((1u << (length - j)) - 1);
        __m512 e = exp16(_mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(scores + j), top), factor));
        e = _mm512_maskz_mov_ps(real, e);
        sum = _mm512_add_ps(sum, e);
        _mm512_storeu_ps(scores + j, e);
    }
    __m512 inverse = _mm512_set1_ps(1.0f / _mm512_reduce_add_ps(sum));
    for (int64_t j = 0; j < padded; j += LANES)
        _mm512_storeu_ps(scores + j, _mm512_mul_ps(_mm512_loadu_ps(scores + j), inverse));
}

/* Every head of one sentence; qkv has rows of ld floats, context of width. */
static void attend(const float *qkv, int64_t ld, int64_t length, int64_t width, int64_t heads, float *context,
                   float *keys, float *scores) {
    int64_t head = width / heads, padded = up(length, LANES);
    float scale = 1.0f;
    _mm_store_ss(&scale, _mm_div_ss(_mm_set_ss(1.0f), _mm_sqrt_ss(_mm_set_ss((float)head))));
    for (int64_t h = 0; h < heads; h++) {
        const float *q = qkv + h * head, *k = q + width, *v = k + width;
        for (int64_t d = 0; d < head; d++)
            for (int64_t j = 0; j < padded; j++) keys[d * padded + j] = j < length ? k[j * ld + d] : 0.0f;
        for (int64_t i = 0; i < length; i += QUERIES) {
            int64_t rows[QUERIES];
            for (int r = 0; r < QUERIES; r++) rows[r] = (i + r < length ? i + r : length - 1) * ld;
            scores_of(q, rows, keys, head, padded, scores);
            for (int r = 0; r < QUERIES; r++) softmax(scores + r * padded, length, padded, scale);
            for (int64_t d = 0; d < head; d += 2 * LANES) {
                int vectors = head - d >= 2 * LANES ? 2 : 1;
                __m512 sums[QUERIES][2];
                for (int r = 0; r < QUERIES; r++) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
                for (int64_t j = 0; j < length; j++) {
                    for (int c = 0; c < vectors; c++) {
                        __m512 value = _mm512_loadu_ps(v + j * ld + d + c * LANES);
                        for (int r = 0; r < QUERIES; r++)
                            sums[r][c] = _mm512_fmadd_ps(_mm512_set1_ps(scores[r * padded + j]), value, sums[r][c]);
                    }
                }
                for (int r = 0; r < QUERIES && i + r < length; r++)
                    for (int c = 0; c < vectors; c++)
                        _mm512_storeu_ps(context + (i + r) * width + h * head + d + c * LANES, sums[r][c]);
            }
        }
    }
}

/* ---- the whole ---- */

/* Memory of a group of sentences. */
typedef struct {
    float *qkv, *context, *inner, *sum, *keys, *scores;
    char *rows;
} Room;

static void block(const Model *model, const Layer *layer, float *x, const float *context, int64_t rows, Room *room) {
    int64_t width = model->width, type = model->type, ld = up(width, GROUP), inner = up(model->inner, GROUP);
    convert(context, rows, width, width, type, room->rows);
    multiply(&layer->attention_output, type, room->rows, rows, NONE, room->sum);
    for (int64_t r = 0; r < rows; r++)
        normalize(x + r * width, room->sum + r * ld, width, &layer->attention_norm, model->eps);
    convert(x, rows, width, width, type, room->rows);
    multiply(&layer->intermediate, type, room->rows, rows, model->activation, room->inner);
    convert(room->inner, rows, inner, model->inner, type, room->rows);
    multiply(&layer->output, type, room->rows, rows, NONE, room->sum);
    for (int64_t r = 0; r < rows; r++)
        normalize(x + r * width, room->sum + r * ld, width, &layer->output_norm, model->eps);
}

static void group(const Model *model, const int64_t *ids, const int64_t *starts, int64_t sentences, float *x,
                  Room *room) {
    int64_t width = model->width, first = starts[0], tokens = starts[sentences] - first, ld = up(3 * width, GROUP);
    for (int64_t s = 0; s < sentences; s++) {
        for (int64_t t = starts[s]; t < starts[s + 1]; t++) {
            float *row = x + (t - first) * width;
            memcpy(row, model->words + ids[t] * width, width * sizeof(float));
            normalize(row, model->positions + (t - starts[s] + model->first_position) * width, width, &model->norm,
                      model->eps);
        }
    }
    for (const Layer *layer = model->layer; layer < model->layer + model->layers; layer++) {
        for (int64_t i = 0; i < tokens; i += BLOCK_ROWS) {
            int64_t rows = tokens - i < BLOCK_ROWS ? tokens - i : BLOCK_ROWS;
            convert(x + i * width, rows, width, width, model->type, room->rows);
            multiply(&layer->qkv, model->type, room->rows, rows, NONE, room->qkv + i * ld);
        }
        for (int64_t s = 0; s < sentences; s++)
            attend(room->qkv + (starts[s] - first) * ld, ld, starts[s + 1] - starts[s], width, model->heads,
                   room->context + (starts[s] - first) * width, room->keys, room->scores);
        for (int64_t i = 0; i < tokens; i += BLOCK_ROWS) {
            int64_t rows = tokens - i < BLOCK_ROWS ? tokens - i : BLOCK_ROWS;
            block(model, layer, x + i * width, room->context + i * width, rows, room);
        }
    }
}

/* Hidden states of the last layer, (tokens, width). Returns 0, or 1 where there is no memory. */
int encode(const Model *model, const int64_t *ids, const int64_t *starts, int64_t sentences, float *states) {
    int64_t width = model->width, inner = up(model->inner, GROUP), longest = 1;
    for (int64_t s = 0; s < sentences; s++)
        if (starts[s + 1] - starts[s] > longest) longest = starts[s + 1] - starts[s];
    int64_t tokens = longest > GROUP_TOKENS ? longest : GROUP_TOKENS, padded = up(longest, LANES);
    int64_t head = width / model->heads;
    int64_t wide = width > model->inner ? width : model->inner, rows = BLOCK_ROWS + ROWS;
    int64_t floats[] = {tokens * up(3 * width, GROUP), tokens * width, rows * inner, rows * up(width, GROUP),
                        head * padded, QUERIES * padded, rows * up(wide, GROUP)};
    float *parts[7];
    int64_t total = 0;
    for (int i = 0; i < 7; i++) total += up(floats[i], 16);
    float *memory = aligned_alloc(64, total * sizeof(float));
    if (!memory) return 1;
    memset(memory, 0, total * sizeof(float));
    for (int64_t i = 0, at = 0; i < 7; at += up(floats[i], 16), i++) parts[i] = memory + at;
    Room room = {parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], (char *)parts[6]};
    for (int64_t s = 0; s < sentences;) {
        int64_t end = s + 1;
        while (end < sentences && starts[end + 1] - starts[s] <= GROUP_TOKENS) end++;
        group(model, ids, starts + s, end - s, states + starts[s] * width, &room);
        s = end;
    }
    free(memory);
    return 0;
}
