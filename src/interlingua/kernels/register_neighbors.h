/* Finds which pairs to check, by sums in registers: BLOCK rows by COLUMNS vectors of columns at once. */
#define BLOCK 6

#if BYTES_TOGETHER == 8
/* Which of 16 columns from `at` on reach a bar with each of BLOCK rows, by their first bytes; two rows at once. */
ALWAYS void reach_by_columns(const int8_t *x, int64_t bytes, int64_t end, const Row *rows, const Panel *panel,
                             int64_t at, uint64_t *near) {
    TwoRows sums[BLOCK / 2];
    const uint8_t *y = panel->bytes + 8 * at;
#pragma GCC unroll 3
    for (int p = 0; p < BLOCK / 2; p++) sums[p] = set_two_rows(-rows[2 * p].shift, -rows[2 * p + 1].shift);
    for (int64_t d = 0; d < end; d += 8, y += 8 * GROUP) multiply_two_rows(BLOCK / 2, sums, y, x + d, bytes);
#pragma GCC unroll 6
    for (int r = 0; r < BLOCK; r++) {
        Ints sum = row_of_two(sums + r / 2, r % 2);
        settle16(&sum);
        near[r] |= reach(sum, rows + r, panel, at) << at;
    }
}
#else
/* Which of COLUMNS vectors of columns from `at` on reach a bar with each of BLOCK rows, by their first bytes. */
ALWAYS void reach_by_columns(const int8_t *x, int64_t bytes, int64_t end, const Row *rows, const Panel *panel,
                             int64_t at, uint64_t *near) {
    Ints sums[BLOCK][COLUMNS];
    const uint8_t *y = panel->bytes + 4 * at;
#pragma GCC unroll 6
    for (int r = 0; r < BLOCK; r++)
#pragma GCC unroll 4
        for (int c = 0; c < COLUMNS; c++) sums[r][c] = set_ints16(-rows[r].shift);
    for (int64_t d = 0; d < end; d += 4, y += 4 * GROUP) {
        Ints four[COLUMNS];
#pragma GCC unroll 4
        for (int c = 0; c < COLUMNS; c++) four[c] = read_ints16(y + 64 * c);
#pragma GCC unroll 6
        for (int r = 0; r < BLOCK; r++) {
            Ints value = set_ints16(*(const int32_t *)(x + r * bytes + d));
#pragma GCC unroll 4
            for (int c = 0; c < COLUMNS; c++) sums[r][c] = dot_bytes16(sums[r][c], four[c], value);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < BLOCK; r++)
#pragma GCC unroll 4
        for (int c = 0; c < COLUMNS; c++) {
            settle16(&sums[r][c]);
            near[r] |= reach(sums[r][c], rows + r, panel, at + c * LANES) << (at + c * LANES);
        }
}
#endif

/* Which columns of a panel reach a bar with each of BLOCK rows. */
static __attribute__((noinline)) void reach_by_stage(const int8_t *x, int64_t bytes, int64_t end, const Row *rows,
                                                     const Panel *panel, uint64_t *near) {
    memset(near, 0, BLOCK * sizeof(*near));
    for (int64_t at = 0; at < GROUP; at += COLUMNS * LANES) reach_by_columns(x, bytes, end, rows, panel, at, near);
}

/* All rows with the panel that begins at column j; `end` is how many bytes the stage has. */
static void scan_panel(Scan *scan, int64_t j, int64_t stage, int64_t end, const Panel *panel, const Panel *whole) {
    for (int64_t i = 0; i < scan->n; i += BLOCK) {
        Row rows[BLOCK];
        uint64_t near[BLOCK];
        for (int64_t r = 0; r < BLOCK; r++) {
            int64_t row = i + r < scan->n ? i + r : i;
            rows[r] = row_of(scan->x, row, scan->stages, stage, panel, row_bar(scan, row));
        }
        reach_by_stage(scan->x->bytes + i * scan->bytes, scan->bytes, end, rows, panel, near);
        for (int64_t row = i; row < i + BLOCK && row < scan->n; row++)
            if (near[row - i]) look_at(scan, row, near[row - i], j, whole, NULL);
    }
}
