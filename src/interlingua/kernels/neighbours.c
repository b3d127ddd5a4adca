/* Exact k nearest neighbours, both ways from one pass over two blocks of vectors.

   The similarity of x_i and y_j is bounded from above by a product of bytes, and only pairs that may belong among the k
   best of their row or column are computed exactly, in float64. mining/compiled.py makes the bytes; with its scales and
   corrections the bound is

       scale_x[i] * scale_y[j] * (product - 128 * sum_x[i]) + above_x[i] + above_y[j]

   Rows of x are signed bytes, n of them and room for ROWS - 1 more behind. Those of y are bytes + 128 in panels of
   GROUP columns, [panel][width / 4][GROUP][4], aligned to 64 bytes. Lists hold the k best, best first, equal
   similarities by index; a pair that is met twice stands there once. */
#include <immintrin.h>
#include <stdint.h>

#define ROWS 6
#define LANES 16
#define GROUP (4 * LANES)

typedef struct {
    float *values;
    int64_t *indices;
    int64_t k;
} Lists;

/* Of this file, so that a library of an older one is noticed; given at compilation. */
uint32_t digest(void) { return DIGEST; }

int supported(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni");
}

static float exact(const float *x, const float *y, int64_t width) {
    __m512d sums = _mm512_setzero_pd(), more = sums;
    double rest = 0;
    int64_t d = 0;
    for (; d + 16 <= width; d += 16) {
        sums = _mm512_fmadd_pd(_mm512_cvtps_pd(_mm256_loadu_ps(x + d)), _mm512_cvtps_pd(_mm256_loadu_ps(y + d)), sums);
        more = _mm512_fmadd_pd(_mm512_cvtps_pd(_mm256_loadu_ps(x + d + 8)), _mm512_cvtps_pd(_mm256_loadu_ps(y + d + 8)),
                               more);
    }
    for (; d < width; d++) rest += (double)x[d] * y[d];
    return (float)(rest + _mm512_reduce_add_pd(_mm512_add_pd(sums, more)));
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

/* Products of ROWS rows with a panel; the sums stay in registers. */
static __attribute__((noinline)) void products(const int8_t *x, const uint8_t *panel, int64_t width, int32_t *tile) {
    __m512i sums[ROWS][4];
#pragma GCC unroll 6
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) sums[r][c] = _mm512_setzero_si512();
    for (int64_t d = 0; d < width; d += 4, panel += 4 * GROUP) {
        __m512i y0 = _mm512_load_si512(panel), y1 = _mm512_load_si512(panel + 64);
        __m512i y2 = _mm512_load_si512(panel + 128), y3 = _mm512_load_si512(panel + 192);
#pragma GCC unroll 6
        for (int r = 0; r < ROWS; r++) {
            __m512i four = _mm512_set1_epi32(*(const int32_t *)(x + r * width + d));
            sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], y0, four);
            sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], y1, four);
            sums[r][2] = _mm512_dpbusd_epi32(sums[r][2], y2, four);
            sums[r][3] = _mm512_dpbusd_epi32(sums[r][3], y3, four);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) _mm512_store_si512(tile + r * GROUP + c * LANES, sums[r][c]);
}

/* Brings the lists of n rows and m columns up to date with all their pairs; column_bars holds what each column's next
   neighbour has to reach. Without lists of columns (column_values null), rows alone. Returns the number of pairs that
   were computed exactly. */
int64_t scan(int64_t n, int64_t m, int64_t width, int64_t bytes, int64_t row_k, int64_t column_k, const float *x,
             const float *y, const int8_t *x_bytes, const uint8_t *y_bytes, const float *scale_x, const int32_t *sum_x,
             const float *above_x, const float *scale_y, const float *above_y, int64_t first_row, int64_t first_column,
             float *row_values, int64_t *row_indices, float *column_values, int64_t *column_indices,
             float *column_bars) {
    Lists rows = {row_values, row_indices, row_k}, columns = {column_values, column_indices, column_k};
    int32_t tile[ROWS * GROUP] __attribute__((aligned(64)));
    int64_t computed = 0;
    for (int64_t j = 0; j < m; j += GROUP) {
        for (int64_t i = 0; i < n; i += ROWS) {
            products(x_bytes + i * bytes, y_bytes + j * bytes, bytes, tile);
            for (int64_t row = i; row < i + ROWS && row < n; row++) {
                __m512i shift = _mm512_set1_epi32(128 * sum_x[row]);
                __m512 scale = _mm512_set1_ps(scale_x[row]), above = _mm512_set1_ps(above_x[row]);
                for (int64_t column = j; column < j + GROUP; column += LANES) {
                    __m512i product = _mm512_load_si512(tile + (row - i) * GROUP + (column - j));
                    __m512 bound = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(product, shift)), scale);
                    bound = _mm512_fmadd_ps(bound, _mm512_loadu_ps(scale_y + column), _mm512_loadu_ps(above_y + column));
                    bound = _mm512_add_ps(bound, above);
                    __m512 bar = _mm512_set1_ps(row_values[row * row_k + row_k - 1]);
                    unsigned near = _mm512_cmp_ps_mask(bound, bar, _CMP_GE_OQ);
                    if (column_values)
                        near |= _mm512_cmp_ps_mask(bound, _mm512_loadu_ps(column_bars + column), _CMP_GE_OQ);
                    for (; near; near &= near - 1) {
                        int64_t at = column + __builtin_ctz(near);
                        if (at >= m) break;
                        float value = exact(x + row * width, y + at * width, width);
                        insert(rows, row, value, first_column + at);
                        if (column_values) column_bars[at] = insert(columns, at, value, first_row + row);
                        computed++;
                    }
                }
            }
        }
    }
    return computed;
}
