/* The operations between the matrix products of training, forward and backward, each in one pass. In a transformer
   layer these are the attention of packed sentences, dropout with residual sum and LayerNorm, and the activation; over
   a vocabulary it is the softmax. The same passes add the biases of the products.

   Activations and their gradients are float32 or bfloat16, all values in between are float32. Dropout keeps an element
   if its random byte is at least a threshold; without bytes it keeps all. Sums over rows are added to the values in
   memory. Widths, except that of a vocabulary, are multiples of LANES. Functions return 0, or 1 without memory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__)
#include "avx512.h"
#elif defined(__AVX2__)
#include "avx2.h"
#else
#include "neon.h"
#endif

#define LANES 16
#define TILE_ROWS 6 /* by COLUMNS vectors: the sums of a product stay in registers */
#define QUERIES 96  /* queries that are scored at once */

enum { NONE, GELU, GELU_TANH, RELU, SILU, TANH };

typedef struct {
    const uint8_t *random;
    int64_t threshold;
    float scale;
} Dropout;

/* Checksum of this file and its headers, set at compilation, to detect a library of older files. */
uint32_t digest(void) { return DIGEST; }

int supported(void) { return has_instructions(); }

static int64_t up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

/* ---- sixteen numbers at a time ---- */

ALWAYS int64_t size_of(int type) { return type == FLOAT32 ? 4 : 2; }

ALWAYS Floats get(const void *x, int64_t at, int type) { return load((const char *)x + at * size_of(type), type); }

ALWAYS void put(void *x, int64_t at, Floats value, int type) { store((char *)x + at * size_of(type), type, value); }

/* Number of existing elements among the sixteen from `at` on. */
ALWAYS int64_t there(int64_t length, int64_t at) { return length - at < LANES ? length - at : LANES; }

/* Reads the elements that exist; zeros for the others, which may be after the end of the memory. */
ALWAYS Floats get_some(const void *x, int64_t at, int64_t count, int type) {
    if (count >= LANES) return get(x, at, type);
    float some[LANES] = {0};
    memcpy(some, (const char *)x + at * size_of(type), count * size_of(type));
    return get(some, 0, type);
}

ALWAYS void put_some(void *x, int64_t at, Floats value, int64_t count, int type) {
    if (count >= LANES) {
        put(x, at, value, type);
        return;
    }
    float some[LANES];
    put(some, 0, value, type);
    memcpy((char *)x + at * size_of(type), some, count * size_of(type));
}

ALWAYS void add_to(float *sums, Floats value) { write16(sums, add16(read16(sums), value)); }

/* Copies `count` bytes, and zeros after them, without a call of memcpy. */
ALWAYS void get_bytes(const uint8_t *from, int64_t count, uint8_t *to) {
    uint64_t halves[2] = {0, 0};
    for (int half = 0; half < 2 && count > 0; half++, from += 8, count -= 8) {
        uint64_t byte = 0;
        if (count >= 8) memcpy(halves + half, from, 8);
        else
            for (int64_t i = 0; i < count; i++, byte += 8) halves[half] |= (uint64_t)from[i] << byte;
    }
    memcpy(to, halves, LANES);
}

/* The factors of elements at, at + 1, ...; 0 for those that do not exist. */
ALWAYS Floats kept(const Dropout *dropout, int64_t at, int64_t count) {
    Floats factors = set16(1.0f);
    if (dropout->random && count >= LANES) {
        factors = keep16(dropout->random + at, dropout->threshold, dropout->scale);
    } else if (dropout->random) {
        uint8_t some[LANES];
        get_bytes(dropout->random + at, count, some);
        factors = keep16(some, dropout->threshold, dropout->scale);
    }
    return count >= LANES ? factors : first16(count, factors, set16(0.0f));
}

static Floats exp16(Floats x) {
    x = max16(set16(-87.3f), min16(set16(88.0f), x)); /* NaN stays, because it is the second operand */
    Floats n = round16(mul16(x, set16(1.44269504f)));
    Floats r = fnmadd16(n, set16(0.693359375f), x);
    r = fnmadd16(n, set16(-2.12194440e-4f), r);
    Floats p = set16(1.9875691500e-4f);
    p = fmadd16(p, r, set16(1.3981999507e-3f));
    p = fmadd16(p, r, set16(8.3334519073e-3f));
    p = fmadd16(p, r, set16(4.1665795894e-2f));
    p = fmadd16(p, r, set16(1.6666665459e-1f));
    p = fmadd16(p, r, set16(5.0000001201e-1f));
    p = fmadd16(p, mul16(r, r), add16(r, set16(1.0f)));
    return scale16(p, n);
}

static Floats sigmoid16(Floats x) {
    Floats e = exp16(sub16(set16(0.0f), x));
    return div16(set16(1.0f), add16(set16(1.0f), e));
}

/* An activation's value and slope. x Phi(x) has erf by Abramowitz and Stegun 7.1.26, 1.5e-7 off at most. */
ALWAYS Floats activate(Floats x, int activation, Floats *slope) {
    Floats one = set16(1.0f), zero = set16(0.0f);
    if (activation == GELU) {
        Floats z = mul16(abs16(x), set16(0.70710678f));
        Floats t = div16(one, fmadd16(z, set16(0.3275911f), one));
        Floats p = set16(1.061405429f);
        p = fmadd16(p, t, set16(-1.453152027f));
        p = fmadd16(p, t, set16(1.421413741f));
        p = fmadd16(p, t, set16(-0.284496736f));
        p = fmadd16(p, t, set16(0.254829592f));
        Floats bell = exp16(fnmadd16(z, z, zero));
        Floats tail = mul16(mul16(mul16(p, t), bell), set16(0.5f)); /* Phi(-|x|) */
        Floats below = if_positive16(x, sub16(one, tail), tail); /* Phi(x) */
        *slope = fmadd16(mul16(x, bell), set16(0.39894228f), below);
        return mul16(x, below);
    }
    if (activation == RELU) {
        *slope = if_positive16(x, one, zero);
        return max16(x, zero);
    }
    if (activation == TANH) {
        Floats s = sigmoid16(add16(x, x)), value = sub16(add16(s, s), one);
        *slope = fnmadd16(value, value, one);
        return value;
    }
    Floats inner = x, rise = one; /* x sigmoid(inner), rise its slope: SiLU, or GELU by tanh */
    if (activation == GELU_TANH) {
        Floats square = mul16(x, x), twice = set16(1.59576912f); /* 2 sqrt(2/pi) */
        inner = mul16(mul16(x, twice), fmadd16(square, set16(0.044715f), one));
        rise = mul16(twice, fmadd16(square, set16(3 * 0.044715f), one));
    }
    Floats s = sigmoid16(inner);
    *slope = fmadd16(mul16(x, rise), fnmadd16(s, s, s), s);
    return mul16(x, s);
}

/* ---- activation ---- */

ALWAYS void activate_rows(int64_t rows, int64_t width, const void *x, const float *bias, void *y, int type, int kind) {
    Floats slope;
    for (int64_t at = 0; at < rows * width; at += width)
        for (int64_t d = 0; d < width; d += LANES)
            put(y, at + d, activate(add16(get(x, at + d, type), read16(bias + d)), kind, &slope), type);
}

ALWAYS void activate_rows_back(int64_t rows, int64_t width, const void *dy, const void *x, const float *bias, void *dx,
                               float *dbias, int type, int kind) {
    Floats slope;
    for (int64_t at = 0; at < rows * width; at += width) {
        for (int64_t d = 0; d < width; d += LANES) {
            activate(add16(get(x, at + d, type), read16(bias + d)), kind, &slope);
            Floats gradient = mul16(get(dy, at + d, type), slope);
            put(dx, at + d, gradient, type);
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
static int activation(int64_t type, int64_t kind, int64_t rows, int64_t width, const void *x, const float *bias, void *y) {
#define FLOATS(KIND) activate_rows(rows, width, x, bias, y, FLOAT32, KIND)
#define HALVES(KIND) activate_rows(rows, width, x, bias, y, BFLOAT16, KIND)
    if (type == FLOAT32) BY_KIND(FLOATS) else BY_KIND(HALVES)
#undef FLOATS
#undef HALVES
    return 0;
}

static int activation_back(int64_t type, int64_t kind, int64_t rows, int64_t width, const void *dy, const void *x,
                     const float *bias, void *dx, float *dbias) {
#define FLOATS(KIND) activate_rows_back(rows, width, dy, x, bias, dx, dbias, FLOAT32, KIND)
#define HALVES(KIND) activate_rows_back(rows, width, dy, x, bias, dx, dbias, BFLOAT16, KIND)
    if (type == FLOAT32) BY_KIND(FLOATS) else BY_KIND(HALVES)
#undef FLOATS
#undef HALVES
    return 0;
}

/* ---- dropout, residual sum, LayerNorm ---- */

ALWAYS void norm_rows(int64_t rows, int64_t width, const void *x, const void *y, const float *bias,
                      const Dropout *dropout, const float *weight, const float *shift, float eps, void *out,
                      void *normal, float *inverse, int type) {
    float row[width];
    for (int64_t r = 0, at = 0; r < rows; r++, at += width) {
        Floats sum = set16(0.0f), squares = sum;
        for (int64_t d = 0; d < width; d += LANES) {
            Floats value = add16(get(y, at + d, type), read16(bias + d));
            value = fmadd16(value, kept(dropout, at + d, LANES), get(x, at + d, type));
            write16(row + d, value);
            sum = add16(sum, value);
        }
        Floats mean = set16(sum16(sum) / width);
        for (int64_t d = 0; d < width; d += LANES) {
            Floats off = sub16(read16(row + d), mean);
            squares = fmadd16(off, off, squares);
        }
        Floats deviation = sqrt16(set16(sum16(squares) / width + eps));
        Floats factor = div16(set16(1.0f), deviation);
        inverse[r] = first_lane16(factor);
        for (int64_t d = 0; d < width; d += LANES) {
            Floats value = mul16(sub16(read16(row + d), mean), factor);
            put(normal, at + d, value, type);
            value = fmadd16(value, read16(weight + d), read16(shift + d));
            put(out, at + d, value, type);
        }
    }
}

ALWAYS void norm_rows_back(int64_t rows, int64_t width, const void *dout, const void *normal, const float *inverse,
                           const Dropout *dropout, const float *weight, void *dx, void *dy, float *dweight,
                           float *dshift, float *dbias, int type) {
    for (int64_t r = 0, at = 0; r < rows; r++, at += width) {
        Floats sum = set16(0.0f), along = sum, factor = set16(inverse[r]);
        for (int64_t d = 0; d < width; d += LANES) {
            Floats g = mul16(get(dout, at + d, type), read16(weight + d));
            sum = add16(sum, g);
            along = fmadd16(g, get(normal, at + d, type), along);
        }
        Floats mean = set16(sum16(sum) / width);
        along = set16(sum16(along) / width);
        for (int64_t d = 0; d < width; d += LANES) {
            Floats upstream = get(dout, at + d, type), h = get(normal, at + d, type);
            Floats g = fmsub16(upstream, read16(weight + d), mean);
            g = mul16(fnmadd16(h, along, g), factor);
            Floats into = mul16(g, kept(dropout, at + d, LANES));
            put(dx, at + d, g, type);
            put(dy, at + d, into, type);
            add_to(dweight + d, mul16(upstream, h));
            add_to(dshift + d, upstream);
            add_to(dbias + d, into);
        }
    }
}

/* out = LayerNorm(x + dropout(y + bias)); also its input normalized, and the inverse deviation of each row. */
static int residual_norm(int64_t type, int64_t rows, int64_t width, const void *x, const void *y, const float *bias,
                   const Dropout *dropout, const float *weight, const float *shift, float eps, void *out, void *normal,
                   float *inverse) {
#define CALL(TYPE) norm_rows(rows, width, x, y, bias, dropout, weight, shift, eps, out, normal, inverse, TYPE)
    BY_TYPE(CALL)
#undef CALL
    return 0;
}

static int residual_norm_back(int64_t type, int64_t rows, int64_t width, const void *dout, const void *normal,
                        const float *inverse, const Dropout *dropout, const float *weight, void *dx, void *dy,
                        float *dweight, float *dshift, float *dbias) {
#define CALL(TYPE) \
    norm_rows_back(rows, width, dout, normal, inverse, dropout, weight, dx, dy, dweight, dshift, dbias, TYPE)
    BY_TYPE(CALL)
#undef CALL
    return 0;
}

/* ---- attention ---- */

/* Sums over k of a[r][k] b[k][c], for TILE_ROWS rows and some vectors of columns; rows and steps of a can have
   any distance. The last row replaces rows that do not exist. */
ALWAYS void tile(int vectors, const float *a, int64_t apart, int64_t step, int64_t rows, const float *b, int64_t ldb,
                 int64_t inner, float *c, int64_t ldc, int add) {
    Floats sums[TILE_ROWS][COLUMNS];
    const float *from[TILE_ROWS];
#pragma GCC unroll 6
    for (int r = 0; r < TILE_ROWS; r++) {
        from[r] = a + (r < rows ? r : rows - 1) * apart;
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) sums[r][v] = set16(0.0f);
    }
    for (int64_t k = 0, at = 0; k < inner; k++, at += step, b += ldb) {
        Floats line[COLUMNS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) line[v] = read16(b + v * LANES);
#pragma GCC unroll 6
        for (int r = 0; r < TILE_ROWS; r++) {
            Floats x = set16(from[r][at]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) sums[r][v] = fmadd16(x, line[v], sums[r][v]);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < TILE_ROWS; r++) {
        if (r >= rows) break;
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            float *to = c + r * ldc + v * LANES;
            write16(to, add ? add16(read16(to), sums[r][v]) : sums[r][v]);
        }
    }
}

typedef void (*Tile)(const float *a, int64_t apart, int64_t step, int64_t rows, const float *b, int64_t ldb,
                     int64_t inner, float *c, int64_t ldc, int add);
#define TILE(NAME, VECTORS_OF_COLUMNS)                                                                               \
    static void NAME(const float *a, int64_t apart, int64_t step, int64_t rows, const float *b, int64_t ldb,         \
                     int64_t inner, float *c, int64_t ldc, int add) {                                                \
        tile(VECTORS_OF_COLUMNS, a, apart, step, rows, b, ldb, inner, c, ldc, add);                                  \
    }
TILE(one, 1)
#if COLUMNS == 4
TILE(two, 2)
TILE(three, 3)
TILE(four, 4)
static const Tile tiles[COLUMNS] = {one, two, three, four};
#else
static const Tile tiles[COLUMNS] = {one};
#endif

/* c = a b, or c += a b; a is (rows, inner) with any strides, columns a multiple of LANES. */
static void product(const float *a, int64_t apart, int64_t step, int64_t rows, const float *b, int64_t ldb,
                    int64_t inner, int64_t columns, float *c, int64_t ldc, int add) {
    for (int64_t j = 0; j < columns; j += COLUMNS * LANES) {
        int64_t vectors = columns - j < COLUMNS * LANES ? (columns - j) / LANES : COLUMNS;
        for (int64_t i = 0; i < rows; i += TILE_ROWS)
            tiles[vectors - 1](a + i * apart, apart, step, rows - i, b + j, ldb, inner, c + i * ldc + j, ldc, add);
    }
}

/* to[d][i] = from[i][d], for multiples of LANES; to is aligned. */
static void transpose(const float *from, int64_t rows, int64_t width, float *to) {
    for (int64_t i = 0; i < rows; i += LANES)
        for (int64_t d = 0; d < width; d += LANES)
            transpose16((const char *)(from + i * width + d), 4 * width, LANES, LANES, (char *)(to + d * rows + i),
                        4 * rows);
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

/* Reads some columns of some rows as floats, (x + bias) factor; zeros in the rows up to a multiple of LANES. */
ALWAYS void fetch(const void *x, int64_t ld, int64_t rows, int64_t head, const float *bias, float factor, float *to,
                  int type) {
    Floats times = set16(factor);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t d = 0; d < head; d += LANES) {
            Floats value = get(x, i * ld + d, type);
            if (bias) value = add16(value, read16(bias + d));
            write16(to + i * head + d, mul16(value, times));
        }
    }
    memset(to + rows * head, 0, (up(rows, LANES) - rows) * head * sizeof(float));
}

/* Writes such rows back, times the factor, and adds them to the sums of their columns. */
ALWAYS void deliver(const float *from, int64_t rows, int64_t head, float factor, void *x, int64_t ld, float *sums,
                    int type) {
    Floats times = set16(factor);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t d = 0; d < head; d += LANES) {
            Floats value = mul16(read16(from + i * head + d), times);
            put(x, i * ld + d, value, type);
            if (sums) add_to(sums + d, value);
        }
    }
}

/* Softmax of a row of scores, then dropout; stats are its largest score and the inverse of its sum. */
static void softmax(float *scores, int64_t length, const Dropout *dropout, int64_t byte, float *stats) {
    Floats largest = set16(-3.0e38f), sum = set16(0.0f);
    for (int64_t j = 0; j < length; j += LANES)
        largest = max16(largest, first16(there(length, j), read16(scores + j), largest));
    Floats top = set16(stats[0] = largest16(largest));
    for (int64_t j = 0; j < length; j += LANES) {
        Floats e = exp16(sub16(read16(scores + j), top));
        write16(scores + j, e);
        sum = add16(sum, first16(there(length, j), e, set16(0.0f)));
    }
    Floats inverse = set16(stats[1] = 1.0f / sum16(sum));
    for (int64_t j = 0; j < length; j += LANES) {
        Floats factor = mul16(inverse, kept(dropout, byte + j, there(length, j)));
        write16(scores + j, mul16(read16(scores + j), factor));
    }
}

/* Replaces scores by weights after dropout, and the slopes of these weights by the slopes of the scores. */
static void softmax_back(float *scores, float *slopes, int64_t length, const Dropout *dropout, int64_t byte,
                         const float *stats) {
    Floats top = set16(stats[0]), inverse = set16(stats[1]), along = set16(0.0f);
    for (int64_t j = 0; j < length; j += LANES) {
        Floats p = mul16(exp16(sub16(read16(scores + j), top)), inverse);
        p = first16(there(length, j), p, set16(0.0f));
        write16(scores + j, p);
        Floats slope = mul16(read16(slopes + j), kept(dropout, byte + j, there(length, j)));
        write16(slopes + j, slope);
        along = fmadd16(p, slope, along);
    }
    Floats mean = set16(sum16(along));
    for (int64_t j = 0; j < length; j += LANES) {
        Floats p = read16(scores + j);
        write16(slopes + j, mul16(p, sub16(read16(slopes + j), mean)));
        write16(scores + j, mul16(p, kept(dropout, byte + j, there(length, j))));
    }
}

ALWAYS float scale_of(int64_t head) {
    return first_lane16(div16(set16(1.0f), sqrt16(set16((float)head))));
}

ALWAYS void attend(const Sentences *all, int64_t s, int64_t h, const Room *room, const void *qkv, const float *bias,
                   void *context, float *stats, int type) {
    int64_t width = all->width, head = width / all->heads, ld = 3 * width, start = all->starts[s];
    int64_t length = all->starts[s + 1] - start, padded = up(length, LANES), at = start * ld + h * head;
    const char *from = (const char *)qkv, *to = (const char *)context;
    int64_t size = size_of(type);
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

ALWAYS void attend_back(const Sentences *all, int64_t s, int64_t h, const Room *room, const void *upstream,
                        const void *qkv, const float *bias, const float *stats, void *dqkv, float *dbias, int type) {
    int64_t width = all->width, head = width / all->heads, ld = 3 * width, start = all->starts[s];
    int64_t length = all->starts[s + 1] - start, padded = up(length, LANES), at = start * ld + h * head;
    int64_t size = size_of(type);
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

/* Softmax(q k' / sqrt(head width)) v for sentences `first` to `last`, each over itself. qkv has no bias yet, (tokens,
   3, heads, head width). Stats, (tokens, heads, 2), are kept for the backward pass. */
static int attention(int64_t type, const Sentences *all, int64_t first, int64_t last, const void *qkv, const float *bias,
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

static int attention_back(int64_t type, const Sentences *all, int64_t first, int64_t last, const void *upstream,
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

/* Sixteen numbers: 1 in one place, 0 elsewhere. */
ALWAYS Floats one_in(int64_t place) {
    static const float ones[2 * LANES - 1] = {[LANES - 1] = 1.0f};
    return read16(ones + LANES - 1 - place);
}

ALWAYS Floats logits(const void *products, const float *bias, int64_t at, int64_t w, int64_t count, int type) {
    return add16(get_some(products, at + w, count, type), get_some(bias, w, count, FLOAT32));
}

ALWAYS void observe_rows(int64_t rows, int64_t words, const void *products, const float *bias, const int64_t *targets,
                         float *top, float *sum, float *expected, int type) {
    for (int64_t r = 0, at = 0; r < rows; r++, at += words) {
        Floats largest = set16(top[r]), total = set16(0.0f);
        for (int64_t w = 0; w < words; w += LANES) {
            int64_t count = there(words, w);
            largest = max16(largest, first16(count, logits(products, bias, at, w, count, type), largest));
        }
        float most = largest16(largest);
        largest = set16(most);
        for (int64_t w = 0; w < words; w += LANES) {
            int64_t count = there(words, w);
            Floats e = exp16(sub16(logits(products, bias, at, w, count, type), largest));
            total = add16(total, first16(count, e, set16(0.0f)));
        }
        float shrink = first_lane16(exp16(set16(top[r] - most)));
        sum[r] = sum[r] * shrink + sum16(total);
        top[r] = most;
        if (targets[r] >= 0 && targets[r] < words)
            expected[r] = first_lane16(logits(products, bias, at, targets[r], 1, type));
    }
}

ALWAYS void slope_rows(int64_t rows, int64_t words, const void *products, const float *bias, const int64_t *targets,
                       const float *normalizer, const float *upstream, void *slopes, float *dbias, int type) {
    for (int64_t r = 0, at = 0; r < rows; r++, at += words) {
        Floats log_sum = set16(normalizer[r]), factor = set16(upstream[r]);
        for (int64_t w = 0; w < words; w += LANES) {
            int64_t count = there(words, w);
            Floats slope = exp16(sub16(logits(products, bias, at, w, count, type), log_sum));
            if (targets[r] >= w && targets[r] < w + LANES)
                slope = sub16(slope, one_in(targets[r] - w));
            slope = mul16(slope, factor);
            put_some(slopes, at + w, slope, count, type);
            put_some(dbias, w, add16(get_some(dbias, w, count, FLOAT32), slope), count, FLOAT32);
        }
    }
}

/* Updates each row's largest logit and its sum of e^(logit - largest) with the logits, products + bias, of some words.
   Stores the target's logit if it is among them; target indices are relative to the first of these words. */
static int observe(int64_t type, int64_t rows, int64_t words, const void *products, const float *bias, const int64_t *targets,
            float *top, float *sum, float *expected) {
#define CALL(TYPE) observe_rows(rows, words, products, bias, targets, top, sum, expected, TYPE)
    BY_TYPE(CALL)
#undef CALL
    return 0;
}

/* Slopes of upstream (log sum e^logits - the target's logit) along the logits of these words, and their sums. */
static int slopes_of(int64_t type, int64_t rows, int64_t words, const void *products, const float *bias,
              const int64_t *targets, const float *normalizer, const float *upstream, void *slopes, float *dbias) {
#define CALL(TYPE) slope_rows(rows, words, products, bias, targets, normalizer, upstream, slopes, dbias, TYPE)
    BY_TYPE(CALL)
#undef CALL
    return 0;
}

/* ---- parts, in threads ---- */

/* A call with all its arguments in 64 bits each: numbers, addresses, the bits of a float. */
typedef int (*Pass)(const int64_t *a);
#define AT(i) ((void *)(intptr_t)a[i])

static int pass_residual_norm(const int64_t *a) {
    float eps;
    memcpy(&eps, a + 9, sizeof eps);
    return residual_norm(a[0], a[1], a[2], AT(3), AT(4), AT(5), AT(6), AT(7), AT(8), eps, AT(10), AT(11), AT(12));
}

static int pass_residual_norm_back(const int64_t *a) {
    return residual_norm_back(a[0], a[1], a[2], AT(3), AT(4), AT(5), AT(6), AT(7), AT(8), AT(9), AT(10), AT(11), AT(12));
}

static int pass_activation(const int64_t *a) { return activation(a[0], a[1], a[2], a[3], AT(4), AT(5), AT(6)); }

static int pass_activation_back(const int64_t *a) {
    return activation_back(a[0], a[1], a[2], a[3], AT(4), AT(5), AT(6), AT(7), AT(8));
}

static int pass_attention(const int64_t *a) {
    return attention(a[0], AT(1), a[2], a[3], AT(4), AT(5), AT(6), AT(7));
}

static int pass_attention_back(const int64_t *a) {
    return attention_back(a[0], AT(1), a[2], a[3], AT(4), AT(5), AT(6), AT(7), AT(8), AT(9));
}

static int pass_observe(const int64_t *a) {
    return observe(a[0], a[1], a[2], AT(3), AT(4), AT(5), AT(6), AT(7), AT(8));
}

static int pass_slopes_of(const int64_t *a) {
    return slopes_of(a[0], a[1], a[2], AT(3), AT(4), AT(5), AT(6), AT(7), AT(8), AT(9));
}

static const Pass passes[] = {pass_residual_norm, pass_residual_norm_back, pass_activation, pass_activation_back,
                              pass_attention,     pass_attention_back,     pass_observe,    pass_slopes_of};

typedef struct {
    Pass pass;
    const int64_t *arguments; /* of the parts, one after the other */
    int64_t parts, each, next;
    int failed;
} Parts;

static void take_parts(void *data) {
    Parts *all = data;
    for (;;) {
        int64_t part = __atomic_fetch_add(&all->next, 1, __ATOMIC_RELAXED);
        if (part >= all->parts) return;
        if (all->pass(all->arguments + part * all->each)) __atomic_store_n(&all->failed, 1, __ATOMIC_RELAXED);
    }
}

/* Runs a pass on parts with `each` arguments; `team` is GOMP_parallel, or NULL for this thread only. */
int run_parts(void (*team)(void (*)(void *), void *, unsigned, unsigned), int64_t threads, int64_t pass, int64_t parts,
              int64_t each, const int64_t *arguments) {
    Parts all = {passes[pass], arguments, parts, each, 0, 0};
    if (team)
        team(take_parts, &all, (unsigned)threads, 0);
    else
        take_parts(&all);
    return all.failed;
}
