/* Finds which pairs to check, by tiles: 32 rows by a panel of 64 columns at once. While a block is multiplied, vector
   instructions compare the one before it with its bars: both kinds of instructions run side by side. */
#define TALL 32 /* rows at once */
#define ROW_BYTES (4 * GROUP)

/* The products of some rows with a panel; which columns reach a bar is known of `done` rows. */
typedef struct {
    int32_t sums[TALL * GROUP] __attribute__((aligned(64)));
    Row rows[TALL];
    uint64_t near[TALL];
    int64_t first, count, done;
} Block;

/* Compares some more rows. */
ALWAYS void compare(Block *block, const Panel *panel, int64_t some) {
    int64_t end = block->done + some < block->count ? block->done + some : block->count;
    for (; block->done < end; block->done++) {
        const Row *row = block->rows + block->done;
        const int32_t *sums = block->sums + block->done * GROUP;
        Ints shift = set_ints16(-row->shift);
        uint64_t near = 0;
        for (int64_t at = 0; at < GROUP; at += LANES)
            near |= reach(add_ints16(read_ints16(sums + at), shift), row, panel, at) << at;
        block->near[block->done] = near;
    }
}

/* Products of rows with a panel by `end` bytes, 32 columns at a time. */
static void multiply(Block *block, const int8_t *x, int64_t bytes, int64_t end, const Panel *panel, Block *last) {
    const int halves = 2;
    int64_t share = (TALL + end / 32 - 1) / (end / 32);
    ALL_STORED
    for (int64_t half = 0; half < 2; half++) {
        const uint8_t *columns = panel->bytes + half * 128;
        CLEAR_SUMS
        for (int64_t d = 0; d < end; d += 64, columns += 16 * ROW_BYTES) {
            LOAD_ROWS(x + d, bytes)
            LOAD_COLUMNS(columns, columns + 64, ROW_BYTES)
            MULTIPLY(dpbsud)
            compare(last, panel, share);
        }
        STORE_SUMS(block->sums + half * 32, ROW_BYTES)
    }
    ALL_STORED
}

/* Checks the pairs that the comparison of a block has found. */
static void look_at_block(Scan *scan, const Block *block, int64_t j, const Panel *whole, int by_all) {
    for (int64_t r = 0; r < block->count; r++)
        if (block->near[r])
            look_at(scan, block->first + r, block->near[r], j, whole, by_all ? block->sums + r * GROUP : NULL);
}

/* All rows with the panel that begins at column j; `end` is how many bytes the stage has. */
static void scan_panel(Scan *scan, int64_t j, int64_t stage, int64_t end, const Panel *panel, const Panel *whole) {
    int by_all = stage == scan->stages - 1;
    Block blocks[2], *block = blocks, *last = blocks + 1; /* in turns */
    last->count = last->done = 0;
    for (int64_t i = 0; i < scan->n; i += TALL) {
        block->first = i, block->count = scan->n - i < TALL ? scan->n - i : TALL, block->done = 0;
        multiply(block, scan->x->bytes + i * scan->bytes, scan->bytes, end, panel, last);
        look_at_block(scan, last, j, whole, by_all);
        for (int64_t r = 0; r < block->count; r++)
            block->rows[r] = row_of(scan->x, i + r, scan->stages, stage, panel, row_bar(scan, i + r));
        Block *done = last;
        last = block, block = done;
    }
    compare(last, panel, TALL);
    look_at_block(scan, last, j, whole, by_all);
}
