/* Exact k nearest neighbors, both ways from one pass over two blocks of vectors.

   The similarity of x_i and y_j is bounded from above by a product of bytes, and only pairs that may belong among the k
   best of their row or column are computed exactly, in float64. If the first coordinates contain most of the
   information, a stage, which uses only these, is enough to exclude most pairs: the other coordinates add at most the
   product of their lengths. The few remaining pairs are checked one by one, by all bytes.
   search/topk/kernel_scanner.py makes the bytes; with its scales and corrections the bound after stage s is

       scale_x[i] * scale_y[j] * (product - OFFSET * sum_x[i][s]) + tail_x[i][s] * tail_y[s][j] + term_x[i] + term_y[j]
           + error_x[i][s] * (largest length_y of the panel) + length_x[i] * (largest error_y[s] of the panel)

   The n rows of x are signed bytes, with free memory for ROOM more rows after them. The columns of y are bytes + 128 in
   panels of GROUP columns, [panel][width / together][GROUP][together] where `together` is bytes_together(), aligned to
   64 bytes, and a second time column by column. Lists contain the k best, the best first, and equal similarities by
   index; a pair that is found twice is listed once. */
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include "avx512.h"
#elif defined(__AVX2__)
#include "avx2.h"
#else
#include "neon.h"
#endif

#define ROOM 31 /* tiles take 32 rows at once */
#define LANES 16
#define GROUP (4 * LANES)
#define MOST_WASTED 2  /* useless checks per row and panel, above which one stage more is cheaper */
#define LEAST_WASTED 3 /* with less than one useless check in this number of rows, try one stage less */

typedef struct {
    float *values;
    int64_t *indices;
    int64_t k;
} Lists;

/* The rows: n values of each kind, or n for each stage. */
typedef struct {
    const float *vectors;
    const int8_t *bytes;
    const float *scale, *term, *length, *tail, *error;
    const int32_t *sum;
} Rows;

/* The columns: of each kind one value per column (up to whole panels) or per panel, for all stages or for each. */
typedef struct {
    const float *vectors;
    const uint8_t *bytes, *each; /* in panels, and column by column */
    const float *scale, *term, *tail, *length, *error;
} Columns;

/* The parts of a row's bound and of its bar, the similarity that pairs must reach. */
typedef struct {
    float scale, tail, above, bar;
    int32_t shift;
} Row;

/* The same for the columns of a panel. */
typedef struct {
    const uint8_t *bytes;
    const float *scale, *tail, *term, *bars;
    float length, error;
} Panel;

/* Checksum of this file and its headers, set at compilation, to detect a library of older files. */
uint32_t digest(void) { return DIGEST; }

int supported(void) { return has_instructions(); }

/* Inner product: LANES sums, halves of them added until one is left; search/topk/bounds.py adds in the same order. */
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

/* Inserts a pair into a list if it is good enough. Returns the value that the next pair must reach. */
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

/* Bounds of a row's similarities with 16 columns of a panel, without the terms that all columns share. */
ALWAYS Floats bounds(Ints sums, const Row *row, const Panel *panel, int64_t at) {
    Floats rest = fmadd16(set16(row->tail), read16(panel->tail + at), read16(panel->term + at));
    return fmadd16(mul16(to_floats16(sums), set16(row->scale)), read16(panel->scale + at), rest);
}

/* Which of 16 columns reach a bar, the row's or their own. NaN, from vectors too long for float32, reaches it too. */
ALWAYS uint64_t reach(Ints sums, const Row *row, const Panel *panel, int64_t at) {
    Floats bars = sub16(min16(set16(row->bar), read16(panel->bars + at)), set16(row->above));
    return not_less16(bounds(sums, row, panel, at), bars);
}

/* The product of one pair by all bytes. */
static inline int32_t product_of(const int8_t *x, const uint8_t *y, int64_t bytes) {
    Ints sums = set_ints16(0), more = sums;
    int64_t d = 0;
    for (; d + 128 <= bytes; d += 128) {
        sums = dot_bytes16(sums, read_ints16(y + d), read_ints16(x + d));
        more = dot_bytes16(more, read_ints16(y + d + 64), read_ints16(x + d + 64));
    }
    for (; d < bytes; d += 64) { /* if fewer than 64 are left, zeros follow in x */
        int64_t left = bytes - d < 64 ? bytes - d : 64;
        int8_t last_x[64] = {0};
        uint8_t last_y[64] = {0};
        memcpy(last_x, x + d, left);
        memcpy(last_y, y + d, left);
        sums = dot_bytes16(sums, read_ints16(last_y), read_ints16(last_x));
    }
    return sum_ints16(add_ints16(sums, more));
}

/* The bound of one pair; c is the column's place in its panel. */
static inline float bound_of(int32_t product, const Row *row, const Panel *panel, int64_t c) {
    return (float)(product - row->shift) * row->scale * panel->scale[c] + panel->term[c] + row->above;
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

/* The data and the counts of a scan. */
typedef struct {
    int64_t n, m, width, bytes, stages;
    const Rows *x;
    const Columns *y;
    Lists rows, columns;
    int64_t first_row, first_column;
    const float *row_bars; /* row_k apart */
    float *column_bars;
    int64_t computed, wasted;
} Scan;

static inline float row_bar(const Scan *scan, int64_t row) { return scan->row_bars[row * scan->rows.k]; }

/* Checks, one by one, the pairs of a row with the columns of a panel that are near it. `whole` is the panel in the last
   stage; `sums` are the products of the row with this panel by all bytes, or null if they are not known. */
static inline void look_at(Scan *scan, int64_t row, uint64_t near, int64_t j, const Panel *whole, const int32_t *sums) {
    const int8_t *x_bytes = scan->x->bytes + row * scan->bytes;
    Row all = row_of(scan->x, row, scan->stages, scan->stages - 1, whole, 0);
    for (; near; near &= near - 1) {
        int64_t at = __builtin_ctzll(near), column = j + at;
        if (column >= scan->m) break;
        int32_t product = sums ? sums[at] : product_of(x_bytes, scan->y->each + column * scan->bytes, scan->bytes);
        float bound = bound_of(product, &all, whole, at), *column_bar = scan->column_bars + column;
        scan->wasted++;
        if (bound < row_bar(scan, row) && bound < *column_bar) continue;
        const float *of_x = scan->x->vectors + row * scan->width, *of_y = scan->y->vectors + column * scan->width;
        float value = exact(of_x, of_y, scan->width);
        scan->computed++;
        if (value < row_bar(scan, row) && value < *column_bar) continue;
        insert(scan->rows, row, value, scan->first_column + column);
        if (scan->columns.values) {
            float bar = insert(scan->columns, column, value, scan->first_row + row);
            if (bar > *column_bar) *column_bar = bar; /* another thread may have a higher one */
        }
        scan->wasted--;
    }
}

#if TILES
#include "tiles.h"
#include "tile_neighbors.h"
#else
#include "register_neighbors.h"
#endif

/* Number of bytes of which the width and the ends of stages must be multiples. */
int32_t bytes_at_once(void) { return TILES ? 64 : BYTES_TOGETHER; }

/* Number of bytes of a column that are adjacent in a panel. */
int32_t bytes_together(void) { return BYTES_TOGETHER; }

/* Updates the lists of n rows and m columns with all their pairs; column_bars holds the similarity that the next
   neighbor of each column must reach; threads may share it, as any k-th best of some pairs is at most the final one.
   Without lists of columns (column_values null), only the rows are updated. `ends`
   are the bytes of each stage; the last stage has all bytes. `stage` is the first stage to use and, at the end, the one
   in use: it changes so that few checks of pairs are useless. Returns the number of exactly computed pairs. */
int64_t scan(int64_t n, int64_t m, int64_t width, int64_t bytes, int64_t row_k, int64_t column_k, int64_t stages,
             const int64_t *ends, int64_t *stage, const Rows *x, const Columns *y, int64_t first_row,
             int64_t first_column, float *row_values, int64_t *row_indices, float *column_values,
             int64_t *column_indices, float *column_bars) {
    Lists rows = {row_values, row_indices, row_k}, columns = {column_values, column_indices, column_k};
    Scan scan = {n, m, width, bytes, stages, x, y, rows, columns, first_row, first_column, row_values + row_k - 1,
                 column_bars, 0, 0};
    int64_t last = stages - 1;
#if TILES
    begin_tiles();
#endif
    for (int64_t j = 0; j < m; j += GROUP) {
        Panel panel = panel_of(y, m, j, bytes, *stage, column_bars);
        Panel whole = panel_of(y, m, j, bytes, last, column_bars);
        scan.wasted = 0;
        scan_panel(&scan, j, *stage, ends[*stage], &panel, &whole);
        if (scan.wasted > n * MOST_WASTED && *stage < last) ++*stage;
        else if (scan.wasted * LEAST_WASTED < n && *stage) --*stage;
    }
#if TILES
    end_tiles();
#endif
    return scan.computed;
}
