/* A BERT-shaped transformer over packed sentences: no padding, each sentence attends to itself.

   Sentences go through all layers in groups that stay in the cache. Products are made in float32, in bfloat16, in int16
   or in bytes; residual sums, LayerNorm and softmax are float32 throughout, and what one product hands to the next
   (queries, keys, values, context, inner activations) is of the model's type, float32 or bfloat16. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__)
#include "avx512.h"
#elif defined(__AVX2__)
#ifndef __AVXVNNI__
#define BYTES_IN_PAIRS /* see whole_rows.h */
#endif
#include "avx2.h"
#else
#include "neon.h"
#endif
#include "vectors.h"
#include "products.h"
#include "whole_rows.h"
#include "attention.h"
#if TILES
#include "tiles.h"
#include "tile_products.h"
#include "tile_attention.h"
#endif

#define BLOCK_ROWS 96    /* their activations stay in the second-level cache */
#define GROUP_TOKENS 512 /* tokens that go through all layers together, or one sentence */

typedef struct {
    const float *weight, *bias;
} Norm;

typedef struct {
    Linear qkv, attention_output, intermediate, output;
    Norm attention_norm, output_norm;
} Layer;

typedef struct {
    int64_t width, heads, inner, layers, type, activation, first_position;
    int64_t by_tiles; /* widths fit, and the weights are laid out for them */
    float eps;
    const float *words, *positions;
    Norm norm;
    const Layer *layer;
} Model;

/* Memory of a group of sentences. */
typedef struct {
    char *qkv, *context, *inner, *rows;
    float *sum, *turned, *scales;
    int32_t *starts;
    Attention attention;
#if TILES
    TileAttention tile_attention;
#endif
} Room;

/* Of this file and its headers, so that a library of older ones is noticed; given at compilation. */
uint32_t digest(void) { return DIGEST; }

int supported(void) { return has_instructions(); }

/* Columns of a panel, in which weights are to be laid out. */
int64_t panel_columns(void) { return PANEL; }

/* Bytes of an output's inputs that stand side by side in a panel, where weights are bytes. */
int64_t bytes_together(void) { return BYTES_TOGETHER; }

/* Whether there are products of bfloats; without, activations are to be float32, and weights that or WIDENED. */
int has_bfloats(void) { return BFLOATS; }

/* Whether products of bytes give bfloats; without, activations are to be float32 where weights are bytes. */
int has_bytes_to_bfloats(void) { return BYTES_TO_BFLOATS; }

/* Whether there are products of int16; activations are to be float32 then. */
int has_int16s(void) { return INT16S; }

/* Whether there are products by tiles, where float32 weights are to be pairs of bfloats. */
int has_tiles(void) { return TILES; }

/* Rows of activations, ld numbers apart, in the type that a product takes, and with room behind. */
static Rows convert(const Linear *linear, const char *x, int64_t from, int64_t ld, int64_t rows, const Room *room) {
    int64_t inputs = linear->inputs, type = type_of_rows(linear->type);
    int64_t stride = inputs * bytes_of(type), size = bytes_of(from);
    for (int64_t r = 0; r < rows; r++, x += ld * size) {
        char *to = room->rows + r * stride;
        if (type == BYTES)
            to_bytes(x, from, inputs, room->turned, to, room->scales + r, room->starts + r);
#if INT16S
        else if (type == INT16) to_int16s(x, from, inputs, room->turned, to, room->scales + r);
#endif
        else
            for (int64_t d = 0; d < inputs; d += LANES) store(to + d * bytes_of(type), type, load(x + d * size, from));
    }
    return (Rows){room->rows, stride, room->scales, room->starts};
}

/* The same of rows that have room behind, so that they can stay where they are. */
static Rows in_place(const Linear *linear, const char *x, int64_t from, int64_t ld, int64_t rows, const Room *room) {
    if (from == type_of_rows(linear->type)) return (Rows){x, ld * bytes_of(from), NULL, NULL};
    return convert(linear, x, from, ld, rows, room);
}

/* x = LayerNorm(x + y). */
static void normalize(float *x, const float *y, int64_t width, const Norm *norm, float eps) {
    Floats sum = set16(0.0f), squares = sum;
    for (int64_t d = 0; d < width; d += LANES) {
        Floats value = add16(read16(x + d), read16(y + d));
        write16(x + d, value);
        sum = add16(sum, value);
    }
    Floats mean = set16(sum16(sum) / width);
    for (int64_t d = 0; d < width; d += LANES) {
        Floats off = sub16(read16(x + d), mean);
        squares = fmadd16(off, off, squares);
    }
    Floats deviation = sqrt16(set16(sum16(squares) / width + eps));
    Floats inverse = div16(set16(1.0f), deviation);
    for (int64_t d = 0; d < width; d += LANES) {
        Floats value = mul16(sub16(read16(x + d), mean), inverse);
        value = fmadd16(value, read16(norm->weight + d), read16(norm->bias + d));
        write16(x + d, value);
    }
}

/* All of a layer that comes after attention. */
static void block(const Model *model, const Layer *layer, float *x, const char *context, int64_t rows, Room *room) {
    int64_t width = model->width, ld = up(width, PANEL), inner = up(model->inner, PANEL);
    Rows from = in_place(&layer->attention_output, context, model->type, width, rows, room);
    multiply(&layer->attention_output, from, rows, NONE, FLOAT32, (char *)room->sum);
    for (int64_t r = 0; r < rows; r++)
        normalize(x + r * width, room->sum + r * ld, width, &layer->attention_norm, model->eps);
    from = convert(&layer->intermediate, (char *)x, FLOAT32, width, rows, room);
    multiply(&layer->intermediate, from, rows, model->activation, model->type, room->inner);
    from = in_place(&layer->output, room->inner, model->type, inner, rows, room);
    multiply(&layer->output, from, rows, NONE, FLOAT32, (char *)room->sum);
    for (int64_t r = 0; r < rows; r++)
        normalize(x + r * width, room->sum + r * ld, width, &layer->output_norm, model->eps);
}

static void group(const Model *model, const int64_t *ids, const int64_t *starts, int64_t sentences, float *x,
                  Room *room) {
    int64_t width = model->width, first = starts[0], tokens = starts[sentences] - first, ld = up(3 * width, PANEL);
    int64_t size = bytes_of(model->type);
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
            int64_t rows = least(BLOCK_ROWS, tokens - i);
            Rows from = convert(&layer->qkv, (char *)(x + i * width), FLOAT32, width, rows, room);
            multiply(&layer->qkv, from, rows, NONE, model->type, room->qkv + i * ld * size);
        }
        for (int64_t s = 0; s < sentences; s++)
            attend(&room->attention, room->qkv + (starts[s] - first) * ld * size, ld, starts[s + 1] - starts[s],
                   room->context + (starts[s] - first) * width * size);
        for (int64_t i = 0; i < tokens; i += BLOCK_ROWS)
            block(model, layer, x + i * width, room->context + i * width * size, least(BLOCK_ROWS, tokens - i), room);
    }
}

static void *take(char **memory, int64_t bytes) {
    char *part = *memory;
    *memory += up(bytes, 64);
    return part;
}

#if TILES
#include "tile_layers.h"
#endif

/* Makes rooms of a memory; returns how many bytes they take. */
static int64_t divide(char *memory, const Model *model, int64_t tokens, int64_t longest, Room *room) {
    int64_t width = model->width, size = bytes_of(model->type), inner = up(model->inner, PANEL);
    int64_t wide = width > inner ? width : inner, rows = least(tokens, BLOCK_ROWS) + ROWS;
    int64_t head = width / model->heads, keys = up(longest, PANEL);
    char *left = memory;
    room->qkv = take(&left, (tokens + ROWS) * up(3 * width, PANEL) * size);
    room->context = take(&left, (tokens + ROWS) * width * size);
    room->inner = take(&left, rows * inner * size);
    room->rows = take(&left, rows * wide * 4);
    room->sum = take(&left, rows * up(width, PANEL) * 4);
    room->turned = take(&left, wide * 4);
    room->scales = take(&left, rows * 4);
    room->starts = take(&left, rows * 4);
    room->attention = (Attention){.width = width, .heads = model->heads, .type = model->type};
    room->attention.keys = take(&left, keys * head * size);
    room->attention.values = take(&left, keys * head * size);
    room->attention.scores = take(&left, ROWS * keys * 4);
    return left - memory;
}

static int64_t longest_of(const int64_t *starts, int64_t sentences) {
    int64_t longest = 1;
    for (int64_t s = 0; s < sentences; s++)
        if (starts[s + 1] - starts[s] > longest) longest = starts[s + 1] - starts[s];
    return longest;
}

typedef int64_t (*Divide)(char *, const Model *, int64_t tokens, int64_t longest, Room *);
typedef void (*Group)(const Model *, const int64_t *ids, const int64_t *starts, int64_t sentences, float *x, Room *);

static int encode_by(Divide divide, Group group, int64_t group_tokens, const Model *model, const int64_t *ids,
                     const int64_t *starts, int64_t sentences, float *states) {
    int64_t longest = longest_of(starts, sentences), most = longest > group_tokens ? longest : group_tokens;
    int64_t tokens = least(starts[sentences] - starts[0], most);
    Room room;
    int64_t bytes = divide(NULL, model, tokens, longest, &room);
    char *memory = aligned_alloc(64, bytes);
    if (!memory) return 1;
    memset(memory, 0, bytes);
    divide(memory, model, tokens, longest, &room);
    for (int64_t s = 0; s < sentences;) {
        int64_t end = s + 1;
        while (end < sentences && starts[end + 1] - starts[s] <= group_tokens) end++;
        group(model, ids, starts + s, end - s, states + (starts[s] - starts[0]) * model->width, &room);
        s = end;
    }
    free(memory);
    return 0;
}

/* Hidden states of the last layer, (tokens, width). Returns 0, or 1 where there is no memory. */
int encode(const Model *model, const int64_t *ids, const int64_t *starts, int64_t sentences, float *states) {
#if TILES
    if (model->by_tiles) {
        begin_tiles();
        int problem = encode_by(divide_for_tiles, tile_group, TILE_TOKENS, model, ids, starts, sentences, states);
        end_tiles();
        return problem;
    }
#endif
    return encode_by(divide, group, GROUP_TOKENS, model, ids, starts, sentences, states);
}
