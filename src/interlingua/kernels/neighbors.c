/* Exact k nearest neighbors, both ways from one pass over two blocks of vectors.

   The similarity of x_i and y_j is bounded from above by a product of bytes, and only pairs that may belong among the k
   best of their row or column are computed exactly, in float64. Where the first coordinates say much, a stage of them is
   enough to tell that most pairs don't: what the rest may add is the product of its lengths. The few others are looked at
   one by one, by all bytes. search/topk/kernel_scanner.py makes the bytes; with its scales and corrections the bound after stage s
   is

       scale_x[i] * scale_y[j] * (product - OFFSET * sum_x[i][s]) + tail_x[i][s] * tail_y[s][j] + term_x[i] + term_y[j]
           + error_x[i][s] * (largest length_y of the panel) + length_x[i] * (largest error_y[s] of the panel)

   Rows of x are signed bytes, n of them and room for BLOCK - 1 more behind. Those of y are bytes + 128 in panels of
   GROUP columns, [panel][width / 4][GROUP][4], aligned to 64 bytes, and once more column by column. Lists hold the k
   best, best first, equal similarities by index; a pair that is met twice stands there once. */
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include "avx512.h"
#elif defined(__AVX2__)
#include "avx2.h"
#else
#include "neon.h"
#endif

#define BLOCK 6 /* rows at once, by COLUMNS vectors of columns */
#define LANES 16
#define GROUP (4 * LANES)
#define MOST_WASTED 2  /* pairs of a row and a panel looked at in vain: another stage would have been cheaper */
#define LEAST_WASTED 3 /* fewer than one in so many rows: a stage less is tried */

typedef struct {
    float *values;
    int64_t *indices;
    int64_t k;
} Lists;

/* The rows: n of them, or n for each stage. */
typedef struct {
    const float *vectors;
    const int8_t *bytes;
    const float *scale, *term, *length, *tail, *error;
    const int32_t *sum;
} Rows;

/* The columns: m of them and room for whole panels, the same for each stage, or one for each panel. */
typedef struct {
    const float *vectors;
    const uint8_t *bytes, *each; /* in panels, and column by column */
    const float *scale, *term, *tail, *length, *error;
} Columns;

/* What a row's bound and its bar are made of. */
typedef struct {
    float scale, tail, above, bar;
    int32_t shift;
} Row;

/* The same of the columns of a panel. */
typedef struct {
    const uint8_t *bytes;
    const float *scale, *tail, *term, *bars;
    float length, error;
} Panel;

/* Of this file and its headers, so that a library of an older one is noticed; given at compilation. */
uint32_t digest(void) { return DIGEST; }

int supported(void) { return has_instructions(); }

/* LANES sums, halves of them added until one is left; search/topk/bounds.py adds in the same order. */
static float exact(const float *x, const float *y, int64_t width) {
    Doubles sums = zero8(), more = sums;
    int64_t d = 0;
    for (; d + LANES <= width; d += LANES) {
        sums = fmadd8(read8(x + d), read8(y + d), sums);
        more = fmadd8(read8(x + d + 8), read8(y + d + 8), more);
    }
    if (d < width) { /* the rest, and zeros */
        float last_x[LANES] = {0}, last_y[LANES] = {0};
        memcpy(last_x, x + d, (width - d) * sizeof(float));
        memcpy(last_y, y + d, (width - d) * sizeof(float));
        sums = fmadd8(read8(last_x), read8(last_y), sums);
        more = fmadd8(read8(last_x + 8), read8(last_y + 8), more);
    }
    return (float)sum8(sums, more);
}

/* Puts a pair into its list, if it belongs there. Returns what the next one has to reach. */
static float insert(Lists lists, int64_t list, float value, int64_t index) {
    float *values = lists.values + list * lists.k;
    int64_t *indices = lists.indices + list * lists.k, at = lists.k;
    while (at && (values[at - 1] < value || (values[at - 1] == value && indices[at - 1] > index))) at--;
    int there = at && values[at - 1] == value && indices[at - 1] == index;
    if (at < lists.k && !there) {
        for (int64_t i = lists.k - 1; i > at; i--) values[i] = values[i - 1], indices[i] = indices[i - 1];
        values[at] = value;
        indices[at] = index;
    }
    return values[lists.k - 1];
}

/* Bounds of a row's similarities with 16 columns of a panel, but for what is the same for all columns. */
ALWAYS Floats bounds(Ints sums, const Row *row, const Panel *panel, int64_t at) {
    Floats rest = fmadd16(set16(row->tail), read16(panel->tail + at), read16(panel->term + at));
    return fmadd16(mul16(to_floats16(sums), set16(row->scale)), read16(panel->scale + at), rest);
}

/* Which of them reach a bar: the row's or their own; what is no number, of vectors too long for float32, does. */
ALWAYS uint64_t reach(Ints sums, const Row *row, const Panel *panel, int64_t at) {
    Floats bars = sub16(min16(set16(row->bar), read16(panel->bars + at)), set16(row->above));
    return not_less16(bounds(sums, row, panel, at), bars);
}

/* The same of COLUMNS vectors of columns from `at` on with each of BLOCK rows, by their first bytes; the sums stay in
   registers. */
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

/* Which columns of a panel reach a bar with each of BLOCK rows. */
static __attribute__((noinline)) void reach_by_stage(const int8_t *x, int64_t bytes, int64_t end, const Row *rows,
                                                     const Panel *panel, uint64_t *near) {
    memset(near, 0, BLOCK * sizeof(*near));
    for (int64_t at = 0; at < GROUP; at += COLUMNS * LANES) reach_by_columns(x, bytes, end, rows, panel, at, near);
}

/* The bound of one pair by all bytes; c is the column's place in its panel. */
static inline float bound_by_all(const int8_t *x, const uint8_t *y, int64_t bytes, const Row *row, const Panel *panel,
                                 int64_t c) {
    Ints sums = set_ints16(0), more = sums;
    int64_t d = 0;
    for (; d + 128 <= bytes; d += 128) {
        sums = dot_bytes16(sums, read_ints16(y + d), read_ints16(x + d));
        more = dot_bytes16(more, read_ints16(y + d + 64), read_ints16(x + d + 64));
    }
    for (; d < bytes; d += 64) { /* where fewer than 64 are left, zeros of x behind */
        int64_t left = bytes - d < 64 ? bytes - d : 64;
        int8_t last_x[64] = {0};
        uint8_t last_y[64] = {0};
        memcpy(last_x, x + d, left);
        memcpy(last_y, y + d, left);
        sums = dot_bytes16(sums, read_ints16(last_y), read_ints16(last_x));
    }
    float product = (float)(sum_ints16(add_ints16(sums, more)) - row->shift);
    return product * row->scale * panel->scale[c] + panel->term[c] + row->above;
}

static inline Row row_of(const Rows *x, int64_t row, int64_t stages, int64_t stage, const Panel *panel, float bar) {
    int64_t at = row * stages + stage;
    float above = x->term[row] + x->error[at] * panel->length + x->length[row] * panel->error;
    return (Row){x->scale[row], x->tail[at], above, bar, OFFSET * x->sum[at]};
}

static Panel panel_of(const Columns *y, int64_t m, int64_t j, int64_t bytes, int64_t stage, const float *bars) {
    int64_t panels = (m + GROUP - 1) / GROUP, panel = j / GROUP;
    return (Panel){y->bytes + j * bytes, y->scale + j, y->tail + stage * panels * GROUP + j, y->term + j, bars + j,
                   y->length[panel], y->error[stage * panels + panel]};
}

/* Brings the lists of n rows and m columns up to date with all their pairs; column_bars holds what each column's next
   neighbor has to reach. Without lists of columns (column_values null), rows alone. `ends` are the bytes of each stage,
   the last one's all of them. `stage` is where to begin, and in the end where it stands: as many stages are taken as keep
   few pairs from being looked at in vain. Returns the number of pairs that were computed exactly. */
int64_t scan(int64_t n, int64_t m, int64_t width, int64_t bytes, int64_t row_k, int64_t column_k, int64_t stages,
             const int64_t *ends, int64_t *stage, const Rows *x, const Columns *y, int64_t first_row,
             int64_t first_column, float *row_values, int64_t *row_indices, float *column_values,
             int64_t *column_indices, float *column_bars) {
    Lists rows = {row_values, row_indices, row_k}, columns = {column_values, column_indices, column_k};
    const float *row_bars = row_values + row_k - 1;
    int64_t computed = 0, last = stages - 1;
    for (int64_t j = 0; j < m; j += GROUP) {
        Panel first = panel_of(y, m, j, bytes, *stage, column_bars);
        Panel whole = panel_of(y, m, j, bytes, last, column_bars);
        int64_t wasted = 0;
        for (int64_t i = 0; i < n; i += BLOCK) {
            Row of[BLOCK];
            uint64_t near[BLOCK];
            for (int64_t r = 0; r < BLOCK; r++) {
                int64_t row = i + r < n ? i + r : i;
                of[r] = row_of(x, row, stages, *stage, &first, row_bars[row * row_k]);
            }
            reach_by_stage(x->bytes + i * bytes, bytes, ends[*stage], of, &first, near);
            for (int64_t row = i; row < i + BLOCK && row < n; row++) {
                if (!near[row - i]) continue;
                const int8_t *x_bytes = x->bytes + row * bytes;
                Row all = row_of(x, row, stages, last, &whole, 0);
                for (uint64_t left = near[row - i]; left; left &= left - 1) {
                    int64_t column = j + __builtin_ctzll(left);
                    if (column >= m) break;
                    float bound = bound_by_all(x_bytes, y->each + column * bytes, bytes, &all, &whole, column - j);
                    wasted++;
                    if (bound < row_bars[row * row_k] && bound < column_bars[column]) continue;
                    float value = exact(x->vectors + row * width, y->vectors + column * width, width);
                    computed++;
                    if (value < row_bars[row * row_k] && value < column_bars[column]) continue;
                    insert(rows, row, value, first_column + column);
                    if (column_values) {
                        float bar = insert(columns, column, value, first_row + row);
                        if (bar > column_bars[column]) column_bars[column] = bar; /* lists of a thread begin empty */
                    }
                    wasted--;
                }
            }
        }
        if (wasted > n * MOST_WASTED && *stage < last) ++*stage;
        else if (wasted * LEAST_WASTED < n && *stage) --*stage;
    }
    return computed;
}
