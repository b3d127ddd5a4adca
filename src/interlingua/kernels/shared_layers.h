/* All layers of a group of sentences by several threads. They share the outputs of a product, not the rows: so each reads
   a part of the weights, which is most of the work for few rows. */

static void share_product(const Linear *linear, Rows x, int64_t rows, int64_t activation, int64_t to, char *y, Room *room) {
    int64_t ld = up(linear->outputs, PANEL), panels = ld / PANEL, blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    int64_t size = part_size(room->member.team, panels, blocks), parts = (panels + size - 1) / size;
    EACH_PART(part, &room->member, parts * blocks) {
        int64_t i = part % blocks * BLOCK_ROWS, first = part / blocks * size;
        Rows some = {x.data + i * x.stride, x.stride, x.scales + i, x.starts + i};
        multiply_panels(linear, some, least(BLOCK_ROWS, rows - i), first * PANEL, least(first + size, panels) * PANEL,
                        activation, to, y + i * ld * bytes_of(to));
    }
}

static void share_attention(const Model *model, const int64_t *starts, int64_t sentences, Room *room) {
    int64_t width = model->width, ld = up(3 * width, PANEL), bytes = bytes_of(model->type);
    int64_t size = part_size(room->member.team, model->heads, sentences), parts = (model->heads + size - 1) / size;
    EACH_PART(part, &room->member, parts * sentences) {
        int64_t s = part / parts, first = part % parts * size, row = starts[s] - starts[0];
        attend(&room->attention, room->qkv + row * ld * bytes, ld, starts[s + 1] - starts[s], first,
               least(first + size, model->heads), room->context + row * width * bytes);
    }
}

/* x = LayerNorm(x + sum) and, as rows of the next product if there is one, x. */
static void share_norm(const Model *model, const Norm *norm, const Linear *next, float *x, int64_t rows, Room *room) {
    int64_t width = model->width, ld = up(width, PANEL), size = part_size(room->member.team, rows, 1);
    EACH_PART(part, &room->member, (rows + size - 1) / size) {
        int64_t first = part * size, end = least(first + size, rows);
        for (int64_t r = first; r < end; r++) normalize(x + r * width, room->sum + r * ld, width, norm, model->eps);
        if (next) convert(next, (char *)x, FLOAT32, width, first, end, room);
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

static void shared_group(const Model *model, const int64_t *ids, const int64_t *starts, int64_t sentences, float *x,
                         Room *room) {
    int64_t width = model->width, tokens = starts[sentences] - starts[0], size = part_size(room->member.team, tokens, 1);
    const Layer *layer = model->layer, *last = layer + model->layers - 1;
    EACH_PART(part, &room->member, (tokens + size - 1) / size) {
        int64_t first = part * size, end = least(first + size, tokens);
        embed(model, ids, starts, starts[0] + first, starts[0] + end, x);
        convert(&layer->qkv, (char *)x, FLOAT32, width, first, end, room);
    }
    for (; layer <= last; layer++) {
        const Linear *next = layer < last ? &layer[1].qkv : NULL;
        share_product(&layer->qkv, converted(&layer->qkv, room), tokens, NONE, model->type, room->qkv, room);
        share_attention(model, starts, sentences, room);
        Rows from = share_rows(model, &layer->attention_output, room->context, width, tokens, room);
        share_product(&layer->attention_output, from, tokens, NONE, FLOAT32, (char *)room->sum, room);
        share_norm(model, &layer->attention_norm, &layer->intermediate, x, tokens, room);
        from = converted(&layer->intermediate, room);
        share_product(&layer->intermediate, from, tokens, model->activation, model->type, room->inner, room);
        from = share_rows(model, &layer->output, room->inner, up(model->inner, PANEL), tokens, room);
        share_product(&layer->output, from, tokens, NONE, FLOAT32, (char *)room->sum, room);
        share_norm(model, &layer->output_norm, next, x, tokens, room);
    }
}
