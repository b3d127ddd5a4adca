/* Matrix products by tiles.

   Weights are in the panels of products.h: 16 units of 16 outputs are a tile of weights. A block is 32 rows by a panel
   of 32 outputs, which takes all eight tiles: four of sums, two of rows, two of weights. While a block is multiplied,
   vector instructions finish the one before it (bias, activation, type): both kinds of instructions run side by side.

   PAIRS: float32 numbers as sums of two bfloats, high and low: x w' = xh wh' + xl wh' + xh wl'. What is left out is less
   than 2^-16 of the whole. Each row and each panel has its high bfloats first, then its low ones. */
#define BLOCK 32

enum { PAIRS = 5 };
enum { ADDED = 2 }; /* where a product goes: float32, added to what is there. FLOAT32, BFLOAT16 and PAIRS overwrite. */

/* Sums of a block, and what is made of them. */
typedef struct Block Block;
struct Block {
    float sums[BLOCK * PANEL] __attribute__((aligned(64)));
    void (*finish)(const Block *, int64_t from, int64_t end);
    const float *bias, *scales, *row_scales;
    const int32_t *starts;
    char *y;
    int64_t rows, stride, done;
    int64_t low; /* bytes from the high bfloats of y to the low ones */
};

ALWAYS void store_bfloats32(char *y, Floats a, Floats b) { _mm512_storeu_si512(y, (Ints)_mm512_cvtne2ps_pbh(b, a)); }

/* Stores 32 numbers as high bfloats and, `low` bytes further, as low ones. */
ALWAYS void store_pairs32(char *y, int64_t low, Floats a, Floats b) {
    store_bfloats32(y, a, b);
    store_bfloats32(y + low, sub16(a, load(y, BFLOAT16)), sub16(b, load(y + 32, BFLOAT16)));
}

/* Converts rows of a block from sums to results. */
ALWAYS void finish_rows(int type, int to, Floats (*function)(Floats), const Block *block, int64_t from, int64_t end) {
    Floats bias_a = read16(block->bias), bias_b = read16(block->bias + LANES), scale_a = bias_a, scale_b = bias_b;
    if (type == BYTES) scale_a = read16(block->scales), scale_b = read16(block->scales + LANES);
    for (int64_t r = from; r < end; r++) {
        const float *sums = block->sums + r * PANEL;
        char *y = block->y + r * block->stride;
        Floats a = read16(sums), b = read16(sums + LANES);
        if (type == BYTES) {
            Ints start = set_ints16(block->starts[r]);
            Floats factor = set16(block->row_scales[r]);
            a = mul16(to_floats16(add_ints16(as_ints16(a), start)), factor);
            b = mul16(to_floats16(add_ints16(as_ints16(b), start)), factor);
            a = fmadd16(a, scale_a, bias_a), b = fmadd16(b, scale_b, bias_b);
        } else {
            a = add16(a, bias_a), b = add16(b, bias_b);
        }
        if (function) a = function(a), b = function(b);
        if (to == ADDED) a = add16(a, read16((float *)y)), b = add16(b, read16((float *)y + LANES));
        if (to == BFLOAT16) store_bfloats32(y, a, b);
        else if (to == PAIRS) store_pairs32(y, block->low, a, b);
        else write16((float *)y, a), write16((float *)y + LANES, b);
    }
}

/* A function for each type of sums (PAIRS are BFLOAT16 here), type of results and activation. */
typedef void (*Finish)(const Block *, int64_t, int64_t);
#define FINISH(TYPE, TO, NAME, FUNCTION)                                                       \
    static void finish_##TYPE##_##TO##_##NAME(const Block *block, int64_t from, int64_t end) { \
        finish_rows(TYPE, TO, FUNCTION, block, from, end);                                     \
    }
#define FINISHES(TYPE, TO, GELU_FUNCTION)                                   \
    FINISH(TYPE, TO, none, NULL) FINISH(TYPE, TO, gelu, GELU_FUNCTION)      \
    FINISH(TYPE, TO, gelu_tanh, gelu_tanh16) FINISH(TYPE, TO, relu, relu16) \
    FINISH(TYPE, TO, silu, silu16) FINISH(TYPE, TO, tanh, tanh16)
#define BY_ACTIVATION(TYPE, TO)                                                                  \
    {finish_##TYPE##_##TO##_none, finish_##TYPE##_##TO##_gelu, finish_##TYPE##_##TO##_gelu_tanh, \
     finish_##TYPE##_##TO##_relu, finish_##TYPE##_##TO##_silu, finish_##TYPE##_##TO##_tanh}
FINISHES(BFLOAT16, BFLOAT16, rough_gelu16)
FINISHES(BYTES, BFLOAT16, rough_gelu16)
FINISHES(BFLOAT16, PAIRS, gelu16)
FINISH(BFLOAT16, ADDED, none, NULL)
FINISH(BYTES, ADDED, none, NULL)
static const Finish to_bfloats[2][6] = {BY_ACTIVATION(BFLOAT16, BFLOAT16), BY_ACTIVATION(BYTES, BFLOAT16)};
static const Finish to_pairs[6] = BY_ACTIVATION(BFLOAT16, PAIRS);

static Finish finish_for(int64_t type, int64_t to, int64_t activation) {
    if (to == ADDED) return type == BYTES ? finish_BYTES_ADDED_none : finish_BFLOAT16_ADDED_none;
    return to == PAIRS ? to_pairs[activation] : to_bfloats[type == BYTES][activation];
}

static void finish_rest(Block *block) {
    if (block->done < block->rows) block->finish(block, block->done, block->rows);
    block->done = block->rows;
}

/* Sums of up to 16 or 32 rows with a panel, `steps` times 64 bytes deep. Each step also finishes some rows of the last
   block and fetches `lines` of 64 bytes of the weights at `next`. */
ALWAYS void block_sums(int type, int halves, const char *x, int64_t stride, int64_t steps, const char *panel,
                       float *sums, Block *last, const char *next, int64_t lines) {
    const int64_t share = (BLOCK + steps - 1) / steps;
    ALL_STORED
    CLEAR_SUMS
    for (int64_t s = 0; s < steps; s++, x += 64, panel += 64 * PANEL) {
        LOAD_ROWS(x, stride)
        LOAD_COLUMNS(panel, panel + 64, 4 * PANEL)
        if (type == BYTES) { MULTIPLY(dpbsud) }
        else { MULTIPLY(dpbf16ps) }
        if (type == PAIRS) {
            LOAD_ROWS(x + 64 * steps, stride)
            MULTIPLY(dpbf16ps)
            LOAD_ROWS(x, stride)
            LOAD_COLUMNS(panel + 64 * PANEL * steps, panel + 64 * PANEL * steps + 64, 4 * PANEL)
            MULTIPLY(dpbf16ps)
        }
        if (next)
            for (int64_t line = 0; line < lines; line++, next += 64) _mm_prefetch(next, _MM_HINT_T1);
        if (last->done < last->rows) {
            int64_t end = least(last->rows, last->done + share);
            last->finish(last, last->done, end);
            last->done = end;
        }
    }
    STORE_SUMS(sums, 4 * PANEL)
}

static void block_sums_of(int64_t type, int64_t rows, const char *x, int64_t stride, int64_t steps, const char *panel,
                          float *sums, Block *last, const char *next, int64_t lines) {
#define SUMS(TYPE, HALVES) block_sums(TYPE, HALVES, x, stride, steps, panel, sums, last, next, lines)
    if (rows > TILE_ROWS) {
        if (type == BYTES) SUMS(BYTES, 2);
        else if (type == PAIRS) SUMS(PAIRS, 2);
        else SUMS(BFLOAT16, 2);
    } else {
        if (type == BYTES) SUMS(BYTES, 1);
        else if (type == PAIRS) SUMS(PAIRS, 1);
        else SUMS(BFLOAT16, 1);
    }
#undef SUMS
}

/* activation(x W' + b) of some rows, of the panels from output `first` to `end`. Rows are read up to a multiple of 16;
   `after` are the weights needed next. */
static void multiply_by_tiles(const Linear *linear, Rows x, int64_t rows, int64_t first, int64_t end, int64_t activation,
                              int64_t to, char *y, const char *after) {
    int64_t type = linear->type, depth = linear->inputs * (type == BYTES ? 1 : 2), steps = depth / 64;
    int64_t ld = up(linear->outputs, PANEL), stride = ld * (to == BFLOAT16 ? 2 : 4), size = to == ADDED ? 4 : 2;
    int64_t panel_bytes = PANEL * depth * (type == PAIRS ? 2 : 1), blocks = (rows + BLOCK - 1) / BLOCK;
    int64_t lines = (panel_bytes / 64 + blocks * steps - 1) / (blocks * steps);
    Block pair[2], *block = pair, *last = pair + 1; /* in turns */
    last->rows = last->done = 0;
    Finish finish = finish_for(type, to, activation);
    for (int64_t j = first; j < end; j += PANEL) {
        const char *panel = (const char *)linear->weights + j / PANEL * panel_bytes;
        const char *next = j + PANEL < end ? panel + panel_bytes : after;
        for (int64_t i = 0; i < rows; i += BLOCK) {
            const char *ahead = next ? next + i / BLOCK * 64 * lines * steps : NULL;
            int64_t count = least(BLOCK, rows - i);
            block_sums_of(type, count, x.data + i * x.stride, x.stride, steps, panel, block->sums, last, ahead, lines);
            finish_rest(last);
            block->finish = finish;
            block->bias = linear->bias + j, block->scales = linear->scales + j;
            block->row_scales = x.scales + i, block->starts = x.starts + i;
            block->y = y + i * stride + j * size, block->stride = stride, block->low = 2 * ld;
            block->rows = count, block->done = 0;
            Block *done = last;
            last = block, block = done;
        }
    }
    finish_rest(last);
}
