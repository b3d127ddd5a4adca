/* Products of bytes by two rows at once, as neon.h has them for the variant "i8mm", in plain C. It is put behind avx2.h, so
   that what Python lays out for that variant is tested on x86-64 as well. */
#undef BYTES_TOGETHER
#define BYTES_TOGETHER 8

typedef struct {
    int32_t at[2][16];
} TwoRows;

ALWAYS TwoRows set_two_rows(int32_t first, int32_t second) {
    TwoRows sums;
    for (int c = 0; c < 16; c++) sums.at[0][c] = first, sums.at[1][c] = second;
    return sums;
}

ALWAYS void multiply_two_rows(int pairs, TwoRows *sums, const void *columns, const void *rows, int64_t stride) {
    const uint8_t *y = columns;
    const int8_t *x = rows;
    for (int r = 0; r < 2 * pairs; r++)
        for (int c = 0; c < 16; c++)
            for (int d = 0; d < 8; d++)
                sums[r / 2].at[r % 2][c] += (y[8 * c + d] - 128 + OFFSET) * x[r * stride + d];
}

ALWAYS Ints row_of_two(const TwoRows *sums, int second) { return read_ints16(sums->at[second]); }
