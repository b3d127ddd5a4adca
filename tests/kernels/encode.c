/* Prints the states of random models with weights in bytes and int16, and of one in float32, to the last bit. */
#include "random_model.h"

static int print_states(int64_t weights, int64_t width, int64_t heads, int64_t inner, int64_t activation) {
    float *states = states_of(weights, FLOAT32, width, heads, inner, activation);
    for (int64_t i = 0; i < TOKENS * width; i++) {
        uint32_t bits;
        memcpy(&bits, states + i, 4);
        if (!isfinite(states[i])) return 2;
        printf("%08x\n", bits);
    }
    return 0;
}

int main(void) {
    if (!supported()) return 77;
#if INT16S
    if (print_states(INT16, 64, 2, 128, GELU) || print_states(INT16, 80, 5, 208, RELU)) return 2;
#endif
    if (print_states(BYTES, 64, 2, 128, GELU) || print_states(BYTES, 80, 5, 208, RELU) ||
        print_states(BYTES, 16, 1, 16, TANH) || print_states(FLOAT32, 64, 2, 80, SILU))
        return 2;
    has_other_layers = 1;
    return print_states(FLOAT32, 64, 2, 96, GELU);
}
