/* All layers of a group of sentences by tiles. Each step takes the whole group, so that weights are read once for it;
   the group is small enough for everything else to stay in the second-level cache. */
#define TILE_TOKENS 256 /* tokens that go through all layers together, or one sentence */

/* Bytes of a number between products. */
static int64_t tile_size(int64_t type) { return type == BYTES ? 1 : type == PAIRS ? 4 : 2; }

/* LayerNorm(x) in place and, in a type that has a product by tiles and no scales, as a row of that product. */
ALWAYS void normalize_to(int type, float *x, int64_t width, const Norm *norm, float eps, char *to) {
    Floats sum_a = set16(0.0f), sum_b = sum_a, squares_a = sum_a, squares_b = sum_a;
    for (int64_t d = 0; d < width; d += 2 * LANES) {
        sum_a = add16(sum_a, read16(x + d));
        sum_b = add16(sum_b, read16(x + d + LANES));
    }
    Floats mean = set16(sum16(add16(sum_a, sum_b)) / width);
    for (int64_t d = 0; d < width; d += 2 * LANES) {
        Floats a = sub16(read16(x + d), mean), b = sub16(read16(x + d + LANES), mean);
        squares_a = fmadd16(a, a, squares_a), squares_b = fmadd16(b, b, squares_b);
    }
    Floats variance = set16(sum16(add16(squares_a, squares_b)) / width + eps);
    Floats inverse = div16(set16(1.0f), sqrt16(variance));
    for (int64_t d = 0; d < width; d += 2 * LANES) {
        Floats a = mul16(sub16(read16(x + d), mean), inverse), b = mul16(sub16(read16(x + d + LANES), mean), inverse);
        a = fmadd16(a, read16(norm->weight + d), read16(norm->bias + d));
        b = fmadd16(b, read16(norm->weight + d + LANES), read16(norm->bias + d + LANES));
        write16(x + d, a);
        write16(x + d + LANES, b);
        if (type == BFLOAT16) store_bfloats32(to + 2 * d, a, b);
        if (type == PAIRS) store_pairs32(to + 2 * d, 2 * width, a, b);
    }
}

/* Rows that the product before has written: those of bytes are made now, others are of the product's type already. */
static Rows tile_rows(const Linear *linear, const char *x, int64_t rows, const Room *room) {
    int64_t inputs = linear->inputs;
    if (linear->type != BYTES) return (Rows){x, inputs * tile_size(linear->type), NULL, NULL};
    for (int64_t r = 0; r < rows; r++)
        to_bytes(x + r * inputs * 2, BFLOAT16, inputs, room->turned, room->rows + r * inputs, room->scales + r,
                 room->starts + r);
    return (Rows){room->rows, inputs, room->scales, room->starts};
}

/* LayerNorm of the rows of x, and what the next product takes; after the last layer there is none. */
static Rows tile_norm(const Model *model, const Linear *next, float *x, const Norm *norm, int64_t rows, Room *room) {
    int64_t width = model->width, type = next ? next->type : FLOAT32, size = tile_size(type);
    for (int64_t r = 0; r < rows; r++) {
        float *row = x + r * width;
        char *to = room->rows + r * width * size;
        if (type == BFLOAT16) normalize_to(BFLOAT16, row, width, norm, model->eps, to);
        else if (type == PAIRS) normalize_to(PAIRS, row, width, norm, model->eps, to);
        else normalize_to(FLOAT32, row, width, norm, model->eps, to);
        if (type == BYTES) to_bytes((char *)row, FLOAT32, width, room->turned, to, room->scales + r, room->starts + r);
    }
    return (Rows){room->rows, width * size, room->scales, room->starts};
}

/* Sums of the vectors of words and positions. */
static void tile_embed(const Model *model, const int64_t *ids, int64_t length, float *x) {
    int64_t width = model->width;
    for (int64_t t = 0; t < length; t++, x += width) {
        const float *word = model->words + ids[t] * width;
        const float *position = model->positions + (t + model->first_position) * width;
        for (int64_t d = 0; d < width; d += LANES) write16(x + d, add16(read16(word + d), read16(position + d)));
    }
}

static void tile_group(const Model *model, const int64_t *ids, const int64_t *starts, int64_t sentences, float *x,
                       Room *room) {
    int64_t width = model->width, first = starts[0], tokens = starts[sentences] - first, size = tile_size(model->type);
    for (int64_t s = 0; s < sentences; s++)
        tile_embed(model, ids + starts[s], starts[s + 1] - starts[s], x + (starts[s] - first) * width);
    const Layer *layer = model->layer, *end = layer + model->layers;
    Rows from = tile_norm(model, &layer->qkv, x, &model->norm, tokens, room);
    for (; layer < end; layer++) {
        const Layer *next = layer + 1 < end ? layer + 1 : NULL, *following = next ? next : model->layer;
        multiply_by_tiles(&layer->qkv, from, tokens, NONE, model->type, room->qkv, layer->attention_output.weights);
        for (int64_t s = 0; s < sentences; s++) {
            const char *qkv = room->qkv + (starts[s] - first) * 3 * width * size;
            char *context = room->context + (starts[s] - first) * width * size;
            attend_by_tiles(model->type, &room->tile_attention, qkv, starts[s + 1] - starts[s], context);
        }
        from = tile_rows(&layer->attention_output, room->context, tokens, room);
        multiply_by_tiles(&layer->attention_output, from, tokens, NONE, ADDED, (char *)x, layer->intermediate.weights);
        from = tile_norm(model, &layer->intermediate, x, &layer->attention_norm, tokens, room);
        multiply_by_tiles(&layer->intermediate, from, tokens, model->activation, model->type, room->inner,
                          layer->output.weights);
        from = tile_rows(&layer->output, room->inner, tokens, room);
        multiply_by_tiles(&layer->output, from, tokens, NONE, ADDED, (char *)x, following->qkv.weights);
        from = tile_norm(model, next ? &next->qkv : NULL, x, &layer->output_norm, tokens, room);
    }
}

/* As divide(). What is not needed at the same time lies in the same place: queries, keys and values where inner
   activations are later, the context where rows of products are. Rows of bytes are made of the context in that place:
   they are half as long, and each row of it is read before it is overwritten. */
static int64_t divide_for_tiles(char *memory, const Model *model, int64_t tokens, int64_t longest, Room *room) {
    int64_t width = model->width, inner = model->inner, size = tile_size(model->type), rows = tokens + BLOCK;
    int64_t wide = width > inner ? width : inner, wider = 3 * width > inner ? 3 * width : inner;
    int64_t keys = up(longest, PANEL), head = width / model->heads;
    char *left = memory;
    room->qkv = room->inner = take(&left, rows * wider * size);
    room->context = room->rows = take(&left, rows * (wide > size * width ? wide : size * width));
    room->turned = take(&left, wide * 4);
    room->scales = take(&left, rows * 4);
    room->starts = take(&left, rows * 4);
    room->tile_attention = (TileAttention){.width = width, .heads = model->heads};
    room->tile_attention.keys = take(&left, keys * head * size);
    room->tile_attention.values = take(&left, keys * head * size);
    room->tile_attention.scores = take(&left, BLOCK * keys * 4);
    room->tile_attention.low = take(&left, BLOCK * keys * 4);
    return left - memory;
}
