/* A transformer over packed sentences: no padding, each sentence attends to itself. Layers are like those of BERT, or
   differ from them as encoder/layer_weights.py describes.

   Sentences go through all layers in groups that stay in the cache. Products are made in float32, in bfloat16, in int16
   or in bytes; residual sums, LayerNorm and softmax are float32 throughout, and what one product hands to the next
   (queries, keys, values, context, inner activations) is of the model's type, float32 or bfloat16.

   A group is processed by one thread, or by several together (team.h). */
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
#include "team.h"
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
    Norm second_attention_norm, query_norm, key_norm; /* without a weight, the norm does not exist */
    const float *rotary; /* of each position, a head's cosines and then its sines, or NULL */
    int64_t window;      /* neighbors on either side that a token sees; negative: all */
} Layer;

typedef struct {
    int64_t width, heads, inner, layers, type, activation, first_position;
    int64_t position_width; /* numbers between the vectors of two positions: width, or 0 if all have one vector */
    int64_t norm_first, gated;
    int64_t by_tiles; /* widths fit, and the weights are laid out for them */
    float eps;
    const float *words, *positions, *slopes; /* slopes: by head, loss of a score per distance, or NULL */
    Norm norm, final_norm;
    const Layer *layer;
} Model;

/* Memory of a group of sentences, as a thread sees it. turned, normed and the memory of attention belong to
   this thread only. */
typedef struct {
    char *qkv, *context, *inner, *rows;
    float *sum, *turned, *normed, *scales;
    int32_t *starts;
    Attention attention;
#if TILES
    TileAttention tile_attention;
#endif
    Member member;
} Room;

/* Checksum of this file and its headers, set at compilation, to detect a library of older files. */
uint32_t digest(void) { return DIGEST; }

int supported(void) { return has_instructions(); }

/* Number of columns of the panels in which weights must be laid out. */
int64_t panel_columns(void) { return PANEL; }

/* Number of inputs of an output that are adjacent in a panel, if weights are bytes. */
int64_t bytes_together(void) { return BYTES_TOGETHER; }

/* Whether there are products of bfloats. Without them, activations must be float32, and weights float32 or WIDENED. */
int has_bfloats(void) { return BFLOATS; }

/* Whether products of bytes give bfloats. If not, activations must be float32 if weights are bytes. */
int has_bytes_to_bfloats(void) { return BYTES_TO_BFLOATS; }

/* Whether there are products of int16. For them activations must be float32. */
int has_int16s(void) { return INT16S; }

/* Whether there are products by tiles. For them float32 weights must be pairs of bfloats. */
int has_tiles(void) { return TILES; }

/* Converts a row of activations to the type that a product takes. */
static void convert_row(const Linear *linear, const char *row, int64_t from, int64_t r, const Room *room) {
    int64_t inputs = linear->inputs, type = type_of_rows(linear->type), size = bytes_of(from);
    char *to = room->rows + r * inputs * bytes_of(type);
    if (type == BYTES)
        to_bytes(row, from, inputs, room->turned, to, room->scales + r, room->starts + r);
#if INT16S
    else if (type == INT16) to_int16s(row, from, inputs, room->turned, to, room->scales + r);
#endif
    else
        for (int64_t d = 0; d < inputs; d += LANES) store(to + d * bytes_of(type), type, load(row + d * size, from));
}

/* Converts some rows, which are ld numbers apart. */
static void convert(const Linear *linear, const char *x, int64_t from, int64_t ld, int64_t first, int64_t end,
                    const Room *room) {
    for (int64_t r = first; r < end; r++) convert_row(linear, x + r * ld * bytes_of(from), from, r, room);
}

/* The converted rows, with free memory after them. */
static Rows converted(const Linear *linear, const Room *room) {
    int64_t stride = linear->inputs * bytes_of(type_of_rows(linear->type));
    return (Rows){room->rows, stride, room->scales, room->starts};
}

/* Whether a product can read rows of a type, with free memory after them, without a conversion. */
static int takes(const Linear *linear, int64_t type) { return type == type_of_rows(linear->type); }

static Rows in_place(const Linear *linear, const char *x, int64_t from, int64_t ld, int64_t rows, const Room *room) {
    if (takes(linear, from)) return (Rows){x, ld * bytes_of(from), NULL, NULL};
    convert(linear, x, from, ld, 0, rows, room);
    return converted(linear, room);
}

/* LayerNorm(x + y), or of x where y is NULL. */
ALWAYS void norm_row(const float *x, const float *y, int64_t width, const Norm *norm, float eps, float *to) {
    Floats sum = set16(0.0f), squares = sum;
    for (int64_t d = 0; d < width; d += LANES) {
        Floats value = read16(x + d);
        if (y) value = add16(value, read16(y + d));
        write16(to + d, value);
        sum = add16(sum, value);
    }
    Floats mean = set16(sum16(sum) / width);
    for (int64_t d = 0; d < width; d += LANES) {
        Floats off = sub16(read16(to + d), mean);
        squares = fmadd16(off, off, squares);
    }
    Floats deviation = sqrt16(set16(sum16(squares) / width + eps));
    Floats inverse = div16(set16(1.0f), deviation);
    for (int64_t d = 0; d < width; d += LANES) {
        Floats value = mul16(sub16(read16(to + d), mean), inverse);
        value = fmadd16(value, read16(norm->weight + d), read16(norm->bias + d));
        write16(to + d, value);
    }
}

static void normalize_sum(const float *x, const float *y, const Model *model, const Norm *norm, float *to) {
    norm_row(x, y, model->width, norm, model->eps, to);
}

static void normalize(const float *x, const Model *model, const Norm *norm, float *to) {
    norm_row(x, NULL, model->width, norm, model->eps, to);
}

/* A residual sum after a product, with the norms that come after it; the second one may be NULL. */
static void add_sum(const Model *model, const Norm *norm, const Norm *second, float *x, float *sum) {
    if (model->norm_first) {
        for (int64_t d = 0; d < model->width; d += LANES) write16(x + d, add16(read16(x + d), read16(sum + d)));
    } else if (second && second->weight) {
        normalize_sum(x, sum, model, norm, sum);
        normalize_sum(x, sum, model, second, x);
    } else {
        normalize_sum(x, sum, model, norm, x);
    }
}

/* Converts a row of the states to the type that a product takes, after the norm if norms come first. */
static void feed(const Model *model, const Norm *norm, const Linear *linear, const float *row, int64_t r, Room *room) {
    if (model->norm_first && norm->weight) {
        normalize(row, model, norm, room->normed);
        row = room->normed;
    }
    convert_row(linear, (const char *)row, FLOAT32, r, room);
}

/* The first product of the feed-forward block, of the panels from output `first` to `end`. With a gate, the
   activation is only for the first half. */
static void multiply_inner(const Model *model, const Linear *linear, Rows x, int64_t rows, int64_t first, int64_t end,
                           char *y) {
    int64_t activated = model->gated ? model->inner : up(linear->outputs, PANEL);
    multiply_panels(linear, x, rows, first, least(end, activated), model->activation, model->type, y);
    multiply_panels(linear, x, rows, first > activated ? first : activated, end, NONE, model->type, y);
}

/* Distance, in numbers, between two rows of inner activations. */
static int64_t inner_ld(const Model *model) { return up(model->gated ? 2 * model->inner : model->inner, PANEL); }

/* Multiplies the first half of inner activations by the second half. */
static void gate(const Model *model, char *inner, int64_t rows) {
    int64_t type = model->type, size = bytes_of(type);
    for (int64_t r = 0; r < rows; r++, inner += inner_ld(model) * size)
        for (char *at = inner; at < inner + model->inner * size; at += LANES * size)
            store(at, type, mul16(load(at, type), load(at + model->inner * size, type)));
}

/* The part of a layer that comes after attention. */
static void block(const Model *model, const Layer *layer, float *x, const char *context, int64_t rows, Room *room) {
    int64_t width = model->width, ld = up(width, PANEL);
    Rows from = in_place(&layer->attention_output, context, model->type, width, rows, room);
    multiply(&layer->attention_output, from, rows, NONE, FLOAT32, (char *)room->sum);
    for (int64_t r = 0; r < rows; r++) {
        add_sum(model, &layer->attention_norm, &layer->second_attention_norm, x + r * width, room->sum + r * ld);
        feed(model, &layer->output_norm, &layer->intermediate, x + r * width, r, room);
    }
    from = converted(&layer->intermediate, room);
    multiply_inner(model, &layer->intermediate, from, rows, 0, inner_ld(model), room->inner);
    if (model->gated) gate(model, room->inner, rows);
    from = in_place(&layer->output, room->inner, model->type, inner_ld(model), rows, room);
    multiply(&layer->output, from, rows, NONE, FLOAT32, (char *)room->sum);
    for (int64_t r = 0; r < rows; r++) add_sum(model, &layer->output_norm, NULL, x + r * width, room->sum + r * ld);
}

/* Embeddings of some tokens, by their words and their places in the sentences that begin at `starts`. */
static void embed(const Model *model, const int64_t *ids, const int64_t *starts, int64_t first, int64_t end, float *x) {
    const int64_t *sentence = starts;
    for (int64_t t = first; t < end; t++) {
        while (sentence[1] <= t) sentence++;
        const float *position = model->positions + (t - *sentence + model->first_position) * model->position_width;
        normalize_sum(model->words + ids[t] * model->width, position, model, &model->norm,
                      x + (t - starts[0]) * model->width);
    }
}

/* Rotates a token's queries or keys: in all heads, each pair of numbers by its angle. */
static void turn(const Model *model, const float *cosines, char *row) {
    int64_t type = model->type, size = bytes_of(type), head = model->width / model->heads, half = head / 2;
    for (char *end = row + model->width * size; row < end; row += head * size)
        for (int64_t d = 0; d < half; d += LANES) {
            char *first = row + d * size, *second = first + half * size;
            Floats a = load(first, type), b = load(second, type), c = read16(cosines + d), s = read16(cosines + half + d);
            store(first, type, fnmadd16(b, s, mul16(a, c)));
            store(second, type, fmadd16(a, s, mul16(b, c)));
        }
}

static void normalize_in_type(const Model *model, const Norm *norm, char *row, float *normed) {
    int64_t size = bytes_of(model->type);
    for (int64_t d = 0; d < model->width; d += LANES) write16(normed + d, load(row + d * size, model->type));
    normalize(normed, model, norm, normed);
    for (int64_t d = 0; d < model->width; d += LANES) store(row + d * size, model->type, read16(normed + d));
}

static int changes_queries(const Layer *layer) { return layer->rotary || layer->query_norm.weight; }

/* Normalizes, then rotates the queries and keys of some tokens, if the layer does so. */
static void change_queries(const Model *model, const Layer *layer, const int64_t *starts, int64_t first, int64_t end,
                           Room *room) {
    int64_t width = model->width, size = bytes_of(model->type), ld = up(3 * width, PANEL), head = width / model->heads;
    const int64_t *sentence = starts;
    for (int64_t t = first; t < end; t++) {
        while (sentence[1] <= t) sentence++;
        char *queries = room->qkv + (t - starts[0]) * ld * size, *keys = queries + width * size;
        if (layer->query_norm.weight) {
            normalize_in_type(model, &layer->query_norm, queries, room->normed);
            normalize_in_type(model, &layer->key_norm, keys, room->normed);
        }
        if (layer->rotary) {
            turn(model, layer->rotary + (t - *sentence) * head, queries);
            turn(model, layer->rotary + (t - *sentence) * head, keys);
        }
    }
}

static void group(const Model *model, const int64_t *ids, const int64_t *starts, int64_t sentences, float *x,
                  Room *room) {
    int64_t width = model->width, first = starts[0], tokens = starts[sentences] - first, ld = up(3 * width, PANEL);
    int64_t size = bytes_of(model->type);
    embed(model, ids, starts, first, starts[sentences], x);
    for (const Layer *layer = model->layer; layer < model->layer + model->layers; layer++) {
        for (int64_t i = 0; i < tokens; i += BLOCK_ROWS) {
            int64_t rows = least(BLOCK_ROWS, tokens - i);
            for (int64_t r = 0; r < rows; r++)
                feed(model, &layer->attention_norm, &layer->qkv, x + (i + r) * width, r, room);
            multiply(&layer->qkv, converted(&layer->qkv, room), rows, NONE, model->type, room->qkv + i * ld * size);
        }
        if (changes_queries(layer)) change_queries(model, layer, starts, first, starts[sentences], room);
        for (int64_t s = 0; s < sentences; s++)
            attend(&room->attention, (Sight){layer->window, model->slopes}, room->qkv + (starts[s] - first) * ld * size,
                   ld, starts[s + 1] - starts[s], 0, model->heads, room->context + (starts[s] - first) * width * size);
        for (int64_t i = 0; i < tokens; i += BLOCK_ROWS)
            block(model, layer, x + i * width, room->context + i * width * size, least(BLOCK_ROWS, tokens - i), room);
    }
    if (model->final_norm.weight)
        for (int64_t t = 0; t < tokens; t++) normalize(x + t * width, model, &model->final_norm, x + t * width);
}

static void *take(char **memory, int64_t bytes) {
    char *part = *memory;
    *memory += up(bytes, 64);
    return part;
}

#include "shared_layers.h"
#if TILES
#include "tile_layers.h"
#endif

/* Divides memory into rooms, one for each thread; returns the number of bytes that they take. */
static int64_t divide(char *memory, const Model *model, int64_t tokens, int64_t longest, int64_t threads, Room *rooms) {
    int64_t width = model->width, size = bytes_of(model->type), inner = inner_ld(model);
    int64_t wide = width > inner ? width : inner, rows = (threads > 1 ? tokens : least(tokens, BLOCK_ROWS)) + ROWS;
    int64_t head = width / model->heads, keys = up(longest, PANEL);
    char *left = memory;
    Room room = {.qkv = take(&left, (tokens + ROWS) * up(3 * width, PANEL) * size)};
    room.context = take(&left, (tokens + ROWS) * width * size);
    room.inner = take(&left, rows * inner * size);
    room.rows = take(&left, rows * wide * 4);
    room.sum = take(&left, rows * up(width, PANEL) * 4);
    room.scales = take(&left, rows * 4);
    room.starts = take(&left, rows * 4);
    room.attention = (Attention){.width = width, .heads = model->heads, .type = model->type};
    for (int64_t t = 0; t < threads; t++) {
        room.turned = take(&left, wide * 4);
        room.normed = take(&left, width * 4);
        room.attention.keys = take(&left, keys * head * size);
        room.attention.values = take(&left, keys * head * size);
        room.attention.scores = take(&left, ROWS * keys * 4);
        rooms[t] = room;
    }
    return left - memory;
}

static int64_t longest_of(const int64_t *starts, int64_t sentences) {
    int64_t longest = 1;
    for (int64_t s = 0; s < sentences; s++)
        if (starts[s + 1] - starts[s] > longest) longest = starts[s + 1] - starts[s];
    return longest;
}

/* How sentences go through the layers. */
typedef struct {
    int64_t (*divide)(char *, const Model *, int64_t tokens, int64_t longest, int64_t threads, Room *);
    void (*group)(const Model *, const int64_t *ids, const int64_t *starts, int64_t sentences, float *x, Room *);
    int64_t tokens; /* of a group, or one sentence */
} Way;

/* The work of a thread: all of it, or a share. */
typedef struct {
    const Model *model;
    const int64_t *ids, *starts;
    int64_t sentences;
    float *states;
    Way way;
    Room room;
} Task;

static void work(void *tasks, int64_t thread) {
    Task *task = (Task *)tasks + thread;
    const int64_t *starts = task->starts;
#if TILES
    if (task->model->by_tiles) begin_tiles();
#endif
    for (int64_t s = 0; s < task->sentences;) {
        int64_t end = s + 1;
        while (end < task->sentences && starts[end + 1] - starts[s] <= task->way.tokens) end++;
        float *x = task->states + (starts[s] - starts[0]) * task->model->width;
        if (starts[end] > starts[s]) task->way.group(task->model, task->ids, starts + s, end - s, x, &task->room);
        s = end;
    }
#if TILES
    if (task->model->by_tiles) end_tiles();
#endif
}

/* Computes the hidden states of the last layer, (tokens, width), in up to `threads` threads. Their number does not
   change the result. Returns 0, or 1 if there is not enough memory. */
int encode(const Model *model, const int64_t *ids, const int64_t *starts, int64_t sentences, float *states,
           int64_t threads) {
    threads = threads < 1 ? 1 : least(threads, MOST_THREADS);
    Way way = {divide, threads > 1 ? shared_group : group, GROUP_TOKENS};
#if TILES
    if (model->by_tiles) way = (Way){divide_for_tiles, tile_group, TILE_TOKENS};
#endif
    int64_t longest = longest_of(starts, sentences), most = longest > way.tokens ? longest : way.tokens;
    int64_t tokens = least(starts[sentences] - starts[0], most);
    Room rooms[MOST_THREADS];
    int64_t bytes = way.divide(NULL, model, tokens, longest, threads, rooms);
    char *memory = aligned_alloc(64, bytes);
    Team *team = memory ? new_team(threads) : NULL;
    if (!team) {
        free(memory);
        return 1;
    }
    memset(memory, 0, bytes);
    way.divide(memory, model, tokens, longest, threads, rooms);
    Task tasks[MOST_THREADS];
    for (int64_t t = 0; t < threads; t++) {
        rooms[t].member = (Member){team, 0};
        tasks[t] = (Task){model, ids, starts, sentences, states, way, rooms[t]};
    }
    work_together(team, work, tasks);
    free(memory);
    return 0;
}
