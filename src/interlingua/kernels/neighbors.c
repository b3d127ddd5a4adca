/* Exact k nearest neighbors, both ways from one pass over two blocks of vectors.

   The similarity of x_i and y_j is bounded from above by a product of bytes, and only pairs that may belong among the k
   best of their row or column are computed exactly, in float64. Where the first coordinates say much, a stage of them is
   enough to tell that most pairs don't: what the rest may add is the product of its lengths. The few others are looked at
   one by one, by all bytes. search/topk/kernel_scanner.py makes the bytes; with its scales and corrections the bound after stage s
   is

       scale_x[i] * scale_y[j] * (product - 128 * sum_x[i][s]) + tail_x[i][s] * tail_y[s][j] + term_x[i] + term_y[j]
           + error_x[i][s] * (largest length_y of the panel) + length_x[i] * (largest error_y[s] of the panel)

   Rows of x are signed bytes, n of them and room for ROWS - 1 more behind. Those of y are bytes + 128 in panels of
   GROUP columns, [panel][width / 4][GROUP][4], aligned to 64 bytes, and once more column by column. Lists hold the k
   best, best first, equal similarities by index; a pair that is met twice stands there once. */
#include <immintrin.h>
#include <stdint.h>

#define ROWS 6
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

/* Of this file, so that a library of an older one is noticed; given at compilation. */
uint32_t digest(void) { return DIGEST; }

int supported(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni");
}

/* Eight numbers in float64, or as many as a mask says. */
static inline __m512d eight(const float *x, __mmask8 mask) {
    return _mm512_cvtps_pd(_mm512_castps512_ps256(_mm512_maskz_loadu_ps(mask, x)));
}

/* LANES sums, halves of them added until one is left; search/topk/bounds.py adds in the same order. */
static float exact(const float *x, const float *y, int64_t width) {
    __m512d sums = _mm512_setzero_pd(), more = sums;
    int64_t d = 0;
    for (; d + LANES <= width; d += LANES) {
        sums = _mm512_fmadd_pd(_mm512_cvtps_pd(_mm256_loadu_ps(x + d)), _mm512_cvtps_pd(_mm256_loadu_ps(y + d)), sums);
        more = _mm512_fmadd_pd(_mm512_cvtps_pd(_mm256_loadu_ps(x + d + 8)), _mm512_cvtps_pd(_mm256_loadu_ps(y + d + 8)),
                               more);
    }
    if (d < width) {
        uint32_t mask = (1u << (width - d)) - 1;
        sums = _mm512_fmadd_pd(eight(x + d, mask & 255), eight(y + d, mask & 255), sums);
        more = _mm512_fmadd_pd(eight(x + d + 8, mask >> 8), eight(y + d + 8, mask >> 8), more);
    }
    return (float)_mm512_reduce_add_pd(_mm512_add_pd(sums, more));
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
static inline __attribute__((always_inline)) __m512 bounds(__m512i sums, const Row *row, const Panel *panel, int c) {
    __m512 rest = _mm512_fmadd_ps(_mm512_set1_ps(row->tail), _mm512_loadu_ps(panel->tail + c * LANES),
                                  _mm512_loadu_ps(panel->term + c * LANES));
    __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_set1_ps(row->scale));
    return _mm512_fmadd_ps(product, _mm512_loadu_ps(panel->scale + c * LANES), rest);
}

/* Which of them reach a bar: the row's or their own; what is no number, of vectors too long for float32, does. */
static inline __attribute__((always_inline)) __mmask16 reach(__m512i sums, const Row *row, const Panel *panel, int c) {
    __m512 bars = _mm512_min_ps(_mm512_set1_ps(row->bar), _mm512_loadu_ps(panel->bars + c * LANES));
    bars = _mm512_sub_ps(bars, _mm512_set1_ps(row->above));
    return _mm512_cmp_ps_mask(bounds(sums, row, panel, c), bars, _CMP_NLT_UQ);
}

/* Which columns of a panel reach a bar with each of ROWS rows, by their first bytes; the sums stay in registers. */
static __attribute__((noinline)) void reach_by_stage(const int8_t *x, int64_t bytes, int64_t end, const Row *rows,
                                                     const Panel *panel, uint64_t *near) {
    __m512i sums[ROWS][4];
    const uint8_t *y = panel->bytes;
#pragma GCC unroll 6
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) sums[r][c] = _mm512_set1_epi32(-rows[r].shift);
    for (int64_t d = 0; d < end; d += 4, y += 4 * GROUP) {
        __m512i y0 = _mm512_load_si512(y), y1 = _mm512_load_si512(y + 64);
        __m512i y2 = _mm512_load_si512(y + 128), y3 = _mm512_load_si512(y + 192);
#pragma GCC unroll 6
        for (int r = 0; r < ROWS; r++) {
            __m512i four = _mm512_set1_epi32(*(const int32_t *)(x + r * bytes + d));
            sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], y0, four);
            sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], y1, four);
            sums[r][2] = _mm512_dpbusd_epi32(sums[r][2], y2, four);
            sums[r][3] = _mm512_dpbusd_epi32(sums[r][3], y3, four);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < ROWS; r++) {
        near[r] = 0;
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) {
            __asm__("" : "+v"(sums[r][c])); /* in this very register, or GCC copies and spills the sums in the loop */
            near[r] |= (uint64_t)reach(sums[r][c], rows + r, panel, c) << (c * LANES);
        }
    }
}

/* The bound of one pair by all bytes; c is the column's place in its panel. */
static inline float bound_by_all(const int8_t *x, const uint8_t *y, int64_t bytes, const Row *row, const Panel *panel,
                                 int64_t c) {
    __m512i sums = _mm512_setzero_si512(), more = sums;
    int64_t d = 0;
    for (; d + 128 <= bytes; d += 128) {
        sums = _mm512_dpbusd_epi32(sums, _mm512_loadu_si512(y + d), _mm512_loadu_si512(x + d));
        more = _mm512_dpbusd_epi32(more, _mm512_loadu_si512(y + d + 64), _mm512_loadu_si512(x + d + 64));
    }
    for (; d < bytes; d += 64) {
        __mmask16 mask = bytes - d < 64 ? (1u << (bytes - d) / 4) - 1 : 0xffff;
        sums = _mm512_dpbusd_epi32(sums, _mm512_maskz_loadu_epi32(mask, y + d), _mm512_maskz_loadu_epi32(mask, x + d));
    }
    float product = (float)(_mm512_reduce_add_epi32(_mm512_add_epi32(sums, more)) - row->shift);
    return product * row->scale * panel->scale[c] + panel->term[c] + row->above;
}

static inline Row row_of(const Rows *x, int64_t row, int64_t stages, int64_t stage, const Panel *panel, float bar) {
    int64_t at = row * stages + stage;
    float above = x->term[row] + x->error[at] * panel->length + x->length[row] * panel->error;
    return (Row){x->scale[row], x->tail[at], above, bar, 128 * x->sum[at]};
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
        for (int64_t i = 0; i < n; i += ROWS) {
            Row of[ROWS];
            uint64_t near[ROWS];
            for (int64_t r = 0; r < ROWS; r++) {
                int64_t row = i + r < n ? i + r : i;
                of[r] = row_of(x, row, stages, *stage, &first, row_bars[row * row_k]);
            }
            reach_by_stage(x->bytes + i * bytes, bytes, ends[*stage], of, &first, near);
            for (int64_t row = i; row < i + ROWS && row < n; row++) {
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
