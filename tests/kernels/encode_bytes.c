/* Prints the states of random models with weights in bytes, to the last bit. */
#include "draws.h"
#include "layers.c"
/* Random bytes of each output and input, which stand where the variant takes them. */
static Linear linear(int64_t inputs, int64_t outputs) {
    int64_t filled = up(outputs, PANEL), together = bytes_together();
    uint8_t *panels = aligned_alloc(64, filled * inputs);
    memset(panels, 128, filled * inputs);
    for (int64_t o = 0; o < outputs; o++)
        for (int64_t i = 0; i < inputs; i++) {
            int64_t unit = o / PANEL * inputs / together + i / together;
            panels[(unit * PANEL + o % PANEL) * together + i % together] = 1 + draw() % 255;
        }
    float *scales = numbers(filled, 0.0f);
    for (int64_t o = 0; o < outputs; o++) scales[o] = 1e-4f + 1e-7f * (draw() % 1000);
    return (Linear){panels, numbers(filled, 0.1f), scales, inputs, outputs, BYTES};
}
static Norm norm(int64_t width) {
    float *weight = numbers(width, 0.1f);
    for (int64_t d = 0; d < width; d++) weight[d] += 1.0f;
    return (Norm){weight, numbers(width, 0.1f)};
}
static int encode_shape(int64_t width, int64_t heads, int64_t inner, int64_t activation) {
    Layer layers[2];
    for (int l = 0; l < 2; l++)
        layers[l] = (Layer){linear(width, 3 * width), linear(width, width), linear(width, inner), linear(inner, width),
                            norm(width), norm(width)};
    int64_t ids[240], starts[] = {0, 7, 40, 41, 57, 147, 240};
    for (int t = 0; t < 240; t++) ids[t] = draw() % 50;
    Model model = {width, heads, inner, 2, FLOAT32, activation, 0, 0, 1e-5f, numbers(50 * width, 1.0f),
                   numbers(100 * width, 1.0f), norm(width), layers};
    float *states = numbers(240 * width, 0.0f);
    if (encode(&model, ids, starts, 6, states)) return 1;
    for (int64_t i = 0; i < 240 * width; i++) {
        uint32_t bits;
        memcpy(&bits, states + i, 4);
        if (!isfinite(states[i])) return 2;
        printf("%08x\n", bits);
    }
    return 0;
}
int main(void) {
    if (!supported()) return 77;
    return encode_shape(64, 2, 128, GELU) || encode_shape(80, 5, 208, RELU) || encode_shape(16, 1, 16, TANH);
}
