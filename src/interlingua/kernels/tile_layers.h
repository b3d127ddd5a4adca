/* All layers of a group of sentences by tiles. Each step takes the whole group, so that weights are read once for it;
   the group is small enough for everything else to stay in the second-level cache. */
#define TILE_TOKENS 256 /* tokens that go through all layers together, or one sentence */

/* Bytes of a number between products. */
static int64_t tile_size(int64_t type) { return type == BYTES ? 1 : type == PAIRS ? 4 : 2; }

/* LayerNorm(x), in place and also as a row of the next product, if its type has no scales. */
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

/* Rows that the previous product has written. Rows of bytes are made now; others already have the product's type. */
static Rows tile_rows(const Linear *linear, const char *x, int64_t rows, Room *room) {
    int64_t inputs = linear->inputs, size = part_size(room->member.team, rows, 1);
    if (linear->type != BYTES) return (Rows){x, inputs * tile_size(linear->type), NULL, NULL};
    EACH_PART(part, &room->member, (rows + size - 1) / size)
        for (int64_t r = part * size; r < least(part * size + size, rows); r++)
            to_bytes(x + r * inputs * 2, BFLOAT16, inputs, room->turned, room->rows + r * inputs, room->scales + r,
                     room->starts + r);
    return (Rows){room->rows, inputs, room->scales, room->starts};
}

/* LayerNorm of a row of x, and the row for the next product; after the last layer there is no next product. */
static void tile_norm_row(const Model *model, const Linear *next, float *x, const Norm *norm, int64_t r, Room *room) {
    int64_t width = model->width, type = next ? next->type : FLOAT32;
    float *row = x + r * width;
    char *to = room->rows + r * width * tile_size(type);
    if (type == BFLOAT16) normalize_to(BFLOAT16, row, width, norm, model->eps, to);
    else if (type == PAIRS) normalize_to(PAIRS, row, width, norm, model->eps, to);
    else normalize_to(FLOAT32, row, width, norm, model->eps, to);
    if (type == BYTES) to_bytes((char *)row, FLOAT32, width, room->turned, to, room->scales + r, room->starts + r);
}

static Rows tile_norm(const Model *model, const Linear *next, float *x, const Norm *norm, int64_t rows, Room *room) {
    int64_t size = part_size(room->member.team, rows, 1), type = next ? next->type : FLOAT32;
    EACH_PART(part, &room->member, (rows + size - 1) / size)
        for (int64_t r = part * size; r < least(part * size + size, rows); r++)
            tile_norm_row(model, next, x, norm, r, room);
    return (Rows){room->rows, model->width * tile_size(type), room->scales, room->starts};
}

static void tile_product(const Linear *linear, Rows x, int64_t rows, int64_t activation, int64_t to, char *y,
                         const char *after, Room *room) {
    int64_t panels = up(linear->outputs, PANEL) / PANEL, size = part_size(room->member.team, panels, 1);
    EACH_PART(part, &room->member, (panels + size - 1) / size) {
        int64_t first = part * size, end = least(first + size, panels);
        multiply_by_tiles(linear, x, rows, first * PANEL, end * PANEL, activation, to, y, end < panels ? NULL : after);
    }
}

static void tile_attend(const Model *model, const int64_t *starts, int64_t sentences, Room *room) {
    int64_t width = model->width, bytes = tile_size(model->type), heads = model->heads;
    int64_t size = part_size(room->member.team, heads, sentences), parts = (heads + size - 1) / size;
    EACH_PART(part, &room->member, parts * sentences) {
        int64_t s = part / parts, first = part % parts * size, row = starts[s] - starts[0];
        attend_by_tiles(model->type, &room->tile_attention, room->qkv + row * 3 * width * bytes, starts[s + 1] - starts[s],
                        first, least(first + size, heads), room->context + row * width * bytes);
    }
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

/* All layers of a group, by one thread or by several, which divide the outputs of a product. */
static void tile_group(const Model *model, const int64_t *ids, const int64_t *starts, int64_t sentences, float *x,
                       Room *room) {
    int64_t width = model->width, first = starts[0], tokens = starts[sentences] - first;
    EACH_PART(s, &room->member, sentences)
        tile_embed(model, ids + starts[s], starts[s + 1] - starts[s], x + (starts[s] - first) * width);
    const Layer *layer = model->layer, *end = layer + model->layers;
    Rows from = tile_norm(model, &layer->qkv, x, &model->norm, tokens, room);
    for (; layer < end; layer++) {
        const Layer *next = layer + 1 < end ? layer + 1 : NULL, *following = next ? next : model->layer;
        tile_product(&layer->qkv, from, tokens, NONE, model->type, room->qkv, layer->attention_output.weights, room);
        tile_attend(model, starts, sentences, room);
        from = tile_rows(&layer->attention_output, room->context, tokens, room);
        tile_product(&layer->attention_output, from, tokens, NONE, ADDED, (char *)x, layer->intermediate.weights, room);
        from = tile_norm(model, &layer->intermediate, x, &layer->attention_norm, tokens, room);
        tile_product(&layer->intermediate, from, tokens, model->activation, model->type, room->inner,
                     layer->output.weights, room);
        from = tile_rows(&layer->output, room->inner, tokens, room);
        tile_product(&layer->output, from, tokens, NONE, ADDED, (char *)x, following->qkv.weights, room);
        from = tile_norm(model, next ? &next->qkv : NULL, x, &layer->output_norm, tokens, room);
    }
}

/* Like divide(). Data that are not needed at the same time use the same memory: queries, keys and values share it with
   the later inner activations and, for one thread, the context with rows of products. Rows of bytes replace the context
   in its place: they are half as long, and each row of it is read before it is overwritten. */
static int64_t divide_for_tiles(char *memory, const Model *model, int64_t tokens, int64_t longest, int64_t threads,
                                Room *rooms) {
    int64_t width = model->width, inner = model->inner, size = tile_size(model->type), rows = tokens + BLOCK;
    int64_t wide = width > inner ? width : inner, wider = 3 * width > inner ? 3 * width : inner;
    int64_t keys = up(longest, PANEL), head = width / model->heads;
    char *left = memory;
    Room room = {.tile_attention = {.width = width, .heads = model->heads}};
    room.qkv = room.inner = take(&left, rows * wider * size);
    room.context = room.rows = take(&left, rows * (wide > size * width ? wide : size * width));
    if (threads > 1) room.context = take(&left, rows * size * width);
    room.scales = take(&left, rows * 4);
    room.starts = take(&left, rows * 4);
    for (int64_t t = 0; t < threads; t++) {
        room.turned = take(&left, wide * 4);
        room.tile_attention.keys = take(&left, keys * head * size);
        room.tile_attention.values = take(&left, keys * head * size);
        room.tile_attention.scores = take(&left, BLOCK * keys * 4);
        room.tile_attention.low = take(&left, BLOCK * keys * 4);
        rooms[t] = room;
    }
    return left - memory;
}
