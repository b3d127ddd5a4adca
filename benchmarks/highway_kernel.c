/* The encoding kernel's own product, as it is written by hand, for highway.py. */
#define DIGEST 0
#include "layers.c"

int64_t columns_of_a_panel(void) { return PANEL; }

/* y = x W' + b of some rows, so many times; y has the columns of whole panels. */
void multiply_rows(int64_t times, int64_t type, const void *weights, const float *bias, const float *scales,
                   int64_t inputs, int64_t outputs, const char *x, const float *x_scales, const int32_t *starts,
                   int64_t rows, float *y) {
    Linear linear = {weights, bias, scales, inputs, outputs, type};
    Rows all = {x, inputs * bytes_of(type), x_scales, starts};
    for (int64_t time = 0; time < times; time++) multiply(&linear, all, rows, NONE, FLOAT32, (char *)y);
}
