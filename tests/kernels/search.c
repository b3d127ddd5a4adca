/* Prints the nearest neighbors of random vectors, and fails where one is not the nearest of all. */
#include "draws.h"
#include "neighbors.c"
/* Vectors of whole numbers, so that a product of bytes is the similarity itself. */
static int search(int64_t n, int64_t m, int64_t width, int64_t k) {
    int64_t step = bytes_at_once(), together = bytes_together(), bytes = (width + step - 1) / step * step;
    int64_t room = (m + GROUP - 1) / GROUP * GROUP, first_stage = 16, ends[] = {first_stage, bytes}, stage = 0;
    float *x = numbers((n + ROOM) * width, 0.0f), *y = numbers(room * width, 0.0f), *zeros = numbers(2 * room, 0.0f);
    int8_t *x_bytes = calloc(n + ROOM, bytes);
    uint8_t *panels = aligned_alloc(64, room * bytes), *each = malloc(m * bytes);
    memset(panels, 128, room * bytes);
    memset(each, 128, m * bytes);
    int32_t *sums = calloc(2 * n, 4);
    for (int64_t i = 0; i < n * width; i++) {
        int value = (int)(draw() % 255) - 127;
        int64_t row = i / width, d = i % width;
        x[i] = value;
        x_bytes[row * bytes + d] = value;
        if (d < first_stage) sums[2 * row] += value;
        sums[2 * row + 1] += value;
    }
    for (int64_t i = 0; i < m * width; i++) {
        int value = (int)(draw() % 255) - 127;
        int64_t column = i / width, d = i % width;
        y[i] = value;
        each[column * bytes + d] = value + 128;
        int64_t unit = column / GROUP * bytes / together + d / together;
        panels[(unit * GROUP + column % GROUP) * together + d % together] = value + 128;
    }
    float *ones = numbers(room, 0.0f), *terms = numbers(room, 0.0f), *tails = numbers(2 * room, 0.0f);
    float *x_tails = numbers(2 * n, 0.0f);
    for (int64_t c = 0; c < room; c++) ones[c] = 1.0f, terms[c] = c < m ? 0.0f : -INFINITY;
    for (int64_t c = 0; c < room; c++) tails[c] = 500.0f; /* 500 squared: what later bytes may add, mostly */
    for (int64_t i = 0; i < n; i++) x_tails[2 * i] = 500.0f;
    float *x_ones = numbers(n, 0.0f);
    for (int64_t i = 0; i < n; i++) x_ones[i] = 1.0f;
    Rows rows = {x, x_bytes, x_ones, numbers(n, 0.0f), numbers(n, 0.0f), x_tails, numbers(2 * n, 0.0f), sums};
    Columns columns = {y, panels, each, ones, terms, tails, zeros, zeros};
    float *row_values = numbers(n * k, 0.0f), *column_values = numbers(m * k, 0.0f), *bars = numbers(room, 0.0f);
    int64_t *row_indices = calloc(n * k, 8), *column_indices = calloc(m * k, 8);
    for (int64_t i = 0; i < n * k; i++) row_values[i] = -INFINITY;
    for (int64_t i = 0; i < m * k; i++) column_values[i] = -INFINITY;
    for (int64_t c = 0; c < room; c++) bars[c] = -INFINITY;
    int64_t computed = scan(n, m, width, bytes, k, k, 2, ends, &stage, &rows, &columns, 0, 0, row_values, row_indices,
                            column_values, column_indices, bars);
    printf("%d computed, stage %d\n", (int)computed, (int)stage);
    for (int64_t i = 0; i < n * k; i++) printf("row %d %.0f\n", (int)row_indices[i], row_values[i]);
    for (int64_t i = 0; i < m * k; i++) printf("column %d %.0f\n", (int)column_indices[i], column_values[i]);
    for (int64_t row = 0; row < n; row++) { /* the best of all */
        float best = -INFINITY;
        for (int64_t c = 0; c < m; c++) {
            float value = 0;
            for (int64_t d = 0; d < width; d++) value += x[row * width + d] * y[c * width + d];
            if (value > best) best = value;
        }
        if (row_values[row * k] != best) return printf("row %d: best %.0f\n", (int)row, best), 1;
    }
    return 0;
}
int main(void) {
    if (!supported()) return 77;
    return search(37, 150, 42, 3) || search(1, 3, 21, 1) || search(130, 64, 64, 4);
}
