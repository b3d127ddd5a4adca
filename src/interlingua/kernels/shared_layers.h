/* All layers of a group of sentences by several threads. They divide the outputs of a product, not its rows. So each
   reads only a part of the weights; for few rows, reading weights is most of the work. */

/* A product, or with `inner` the first one of the feed-forward block. */
static void share_product(const Model *model, const Linear *linear, Rows x, int64_t rows, int inner, int64_t to, char *y,
                          Room *room) {
    int64_t ld = up(linear->outputs, PANEL), panels = ld / PANEL, blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    int64_t size = part_size(room->member.team, panels, blocks), parts = (panels + size - 1) / size;
    EACH_PART(part, &room->member, parts * blocks) {
        int64_t i = part % blocks * BLOCK_ROWS, first = part / blocks * size;
        int64_t begin = first * PANEL, end = least(first + size, panels) * PANEL, count = least(BLOCK_ROWS, rows - i);
        Rows some = {x.data + i * x.stride, x.stride, x.scales + i, x.starts + i};
        char *at = y + i * ld * bytes_of(to);
        if (inner) multiply_inner(model, linear, some, count, begin, end, at);
        else multiply_panels(linear, some, count, begin, end, NONE, to, at);
    }
}

static void share_attention(const Model *model, const Layer *layer, const int64_t *starts, int64_t sentences, Room *room) {
    int64_t width = model->width, ld = up(3 * width, PANEL), bytes = bytes_of(model->type);
    Sight sight = {layer->window, model->slopes};
    int64_t tokens = starts[sentences] - starts[0], step = part_size(room->member.team, tokens, 1);
    if (changes_queries(layer))
        EACH_PART(part, &room->member, (tokens + step - 1) / step)
            change_queries(model, layer, starts, starts[0] + part * step, starts[0] + least(part * step + step, tokens), room);
    int64_t size = part_size(room->member.team, model->heads, sentences), parts = (model->heads + size - 1) / size;
    EACH_PART(part, &room->member, parts * sentences) {
        int64_t s = part / parts, first = part % parts * size, row = starts[s] - starts[0];
        attend(&room->attention, sight, room->qkv + row * ld * bytes, ld, starts[s + 1] - starts[s], first,
               least(first + size, model->heads), room->context + row * width * bytes);
    }
}

/* Computes a residual sum with its norms, and converts the states to rows of the next product if there is one. */
static void share_sum(const Model *model, const Norm *norm, const Norm *second, const Norm *before, const Linear *next,
                      float *x, int64_t rows, Room *room) {
    int64_t width = model->width, ld = up(width, PANEL), size = part_size(room->member.team, rows, 1);
    EACH_PART(part, &room->member, (rows + size - 1) / size)
        for (int64_t r = part * size; r < least(part * size + size, rows); r++) {
            add_sum(model, norm, second, x + r * width, room->sum + r * ld);
            if (next) feed(model, before, next, x + r * width, r, room);
            else if (model->final_norm.weight) normalize(x + r * width, model, &model->final_norm, x + r * width);
        }
}

/* Rows of the model's type as a product takes them. */
static Rows share_rows(const Model *model, const Linear *linear, const char *x, int64_t ld, int64_t rows, Room *room) {
    if (takes(linear, model->type)) return (Rows){x, ld * bytes_of(model->type), NULL, NULL};
    int64_t size = part_size(room->member.team, rows, 1);
    EACH_PART(part, &room->member, (rows + size - 1) / size)
        convert(linear, x, model->type, ld, part * size, least(part * size + size, rows), room);
    return converted(linear, room);
}

static void share_gate(const Model *model, int64_t rows, Room *room) {
    int64_t size = part_size(room->member.team, rows, 1), bytes = inner_ld(model) * bytes_of(model->type);
    EACH_PART(part, &room->member, (rows + size - 1) / size)
        gate(model, room->inner + part * size * bytes, least(size, rows - part * size));
}

static void shared_group(const Model *model, const int64_t *ids, const int64_t *starts, int64_t sentences, float *x,
                         Room *room) {
    int64_t width = model->width, tokens = starts[sentences] - starts[0], size = part_size(room->member.team, tokens, 1);
    const Layer *layer = model->layer, *last = layer + model->layers - 1;
    EACH_PART(part, &room->member, (tokens + size - 1) / size) {
        int64_t first = part * size, end = least(first + size, tokens);
        embed(model, ids, starts, starts[0] + first, starts[0] + end, x);
        for (int64_t r = first; r < end; r++) feed(model, &layer->attention_norm, &layer->qkv, x + r * width, r, room);
    }
    for (; layer <= last; layer++) {
        const Layer *next = layer < last ? layer + 1 : NULL;
        share_product(model, &layer->qkv, converted(&layer->qkv, room), tokens, 0, model->type, room->qkv, room);
        share_attention(model, layer, starts, sentences, room);
        Rows from = share_rows(model, &layer->attention_output, room->context, width, tokens, room);
        share_product(model, &layer->attention_output, from, tokens, 0, FLOAT32, (char *)room->sum, room);
        share_sum(model, &layer->attention_norm, &layer->second_attention_norm, &layer->output_norm,
                  &layer->intermediate, x, tokens, room);
        from = converted(&layer->intermediate, room);
        share_product(model, &layer->intermediate, from, tokens, 1, model->type, room->inner, room);
        if (model->gated) share_gate(model, tokens, room);
        from = share_rows(model, &layer->output, room->inner, inner_ld(model), tokens, room);
        share_product(model, &layer->output, from, tokens, 0, FLOAT32, (char *)room->sum, room);
        share_sum(model, &layer->output_norm, NULL, next ? &next->attention_norm : NULL, next ? &next->qkv : NULL, x,
                  tokens, room);
    }
}
