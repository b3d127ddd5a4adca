/* Compares the states of random models whose weights are bfloats, widened in registers, with those in float32. */
#include "random_model.h"

static int differ(int64_t width, int64_t heads, int64_t inner, int64_t activation) {
    uint32_t begin = state;
    float *exact = states_of(FLOAT32, FLOAT32, width, heads, inner, activation);
    state = begin; /* the same model once more */
    float *widened = states_of(WIDENED, FLOAT32, width, heads, inner, activation);
    return memcmp(exact, widened, TOKENS * width * sizeof(float)) != 0;
}

int main(void) {
    if (!supported()) return 77;
    return differ(64, 2, 128, GELU) || differ(80, 5, 208, RELU) || differ(64, 1, 80, GELU_TANH) || differ(16, 1, 16, SILU);
}
