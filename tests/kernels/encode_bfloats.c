/* Prints the lowest cosine of a token's states in bfloat16 with those in float32, for random models of some shapes. */
#include "random_model.h"

static double lowest_cosine(int64_t width, int64_t heads, int64_t inner, int64_t activation) {
    uint32_t begin = state;
    float *exact = states_of(FLOAT32, FLOAT32, width, heads, inner, activation);
    state = begin; /* the same model once more */
    float *rough = states_of(BFLOAT16, BFLOAT16, width, heads, inner, activation);
    double lowest = 1;
    for (int64_t t = 0; t < TOKENS; t++) {
        double product = 0, a = 0, b = 0;
        for (int64_t d = t * width; d < (t + 1) * width; d++) {
            product += (double)exact[d] * rough[d];
            a += (double)exact[d] * exact[d];
            b += (double)rough[d] * rough[d];
        }
        double cosine = product / sqrt(a * b);
        if (!(cosine >= lowest)) lowest = cosine;
    }
    return lowest;
}

int main(void) {
    if (!supported() || !has_bfloats()) return 77;
    printf("%.8f\n", lowest_cosine(64, 2, 128, GELU));
    printf("%.8f\n", lowest_cosine(80, 5, 208, RELU));
    printf("%.8f\n", lowest_cosine(64, 1, 80, GELU_TANH));
    printf("%.8f\n", lowest_cosine(16, 1, 16, SILU));
    return 0;
}
