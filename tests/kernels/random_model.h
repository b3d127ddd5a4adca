/* Random models of two layers for programs that run the kernel "layers". */
#include "draws.h"
#include "layers.c"
#define TOKENS 240
#define SENTENCES 6

static int64_t threads = 1;  /* that compute the states */
static int has_other_layers; /* with all in which layers can differ from BERT's but for a second norm of attention */

/* Where the weight of an output and an input stands in the variant's panels; `together` inputs stand side by side. */
static int64_t place_of(int64_t output, int64_t input, int64_t inputs, int64_t together) {
    int64_t unit = output / PANEL * inputs / together + input / together;
    return (unit * PANEL + output % PANEL) * together + input % together;
}

/* Of a type, from the same random numbers for all of them. */
static Linear linear(int64_t type, int64_t inputs, int64_t outputs) {
    int64_t filled = up(outputs, PANEL), size = bytes_of(type), together = type == BYTES ? bytes_together() : 4 / size;
    char *panels = aligned_alloc(64, up(filled * inputs * size, 64));
    memset(panels, type == BYTES ? 128 : 0, filled * inputs * size);
    for (int64_t o = 0; o < outputs; o++)
        for (int64_t i = 0; i < inputs; i++) {
            int32_t value = 1 + draw() % 255;
            int64_t place = place_of(o, i, inputs, together);
            float number = (value - 128) / 1024.0f; /* which a bfloat holds */
            uint32_t bits;
            memcpy(&bits, &number, 4);
            uint16_t upper = bits >> 16;
            if (type == BYTES) ((uint8_t *)panels)[place] = value;
            int16_t whole = 8 * (value - 128); /* so small that no sum of these widths overflows */
            if (type == INT16) memcpy(panels + 2 * place, &whole, 2);
            if (type == FLOAT32) memcpy(panels + 4 * place, &bits, 4);
            if (type == BFLOAT16 || type == WIDENED) memcpy(panels + 2 * place, &upper, 2);
        }
    float *scales = numbers(filled, 0.0f);
    for (int64_t o = 0; o < outputs; o++) scales[o] = 1e-4f + 1e-7f * (draw() % 1000);
    return (Linear){panels, numbers(filled, 0.1f), scales, inputs, outputs, type};
}

static Norm norm(int64_t width) {
    float *weight = numbers(width, 0.1f);
    for (int64_t d = 0; d < width; d++) weight[d] += 1.0f;
    return (Norm){weight, numbers(width, 0.1f)};
}

/* States of some sentences by a model whose weights and activations are of these types. */
static float *states_of(int64_t weights, int64_t type, int64_t width, int64_t heads, int64_t inner, int64_t activation) {
    Layer layers[2];
    for (int l = 0; l < 2; l++) {
        Linear qkv = linear(weights, width, 3 * width), context = linear(weights, width, width);
        Linear intermediate = linear(weights, width, has_other_layers ? 2 * inner : inner);
        Linear output = linear(weights, inner, width);
        Norm first = norm(width), second = norm(width);
        layers[l] = (Layer){qkv, context, intermediate, output, first, second, .window = -1};
        if (has_other_layers) {
            layers[l].query_norm = norm(width), layers[l].key_norm = norm(width);
            layers[l].rotary = numbers(100 * width / heads, 1.0f), layers[l].window = l ? -1 : 5;
        }
    }
    int64_t ids[TOKENS], starts[SENTENCES + 1] = {0, 7, 40, 41, 57, 147, TOKENS};
    for (int t = 0; t < TOKENS; t++) ids[t] = draw() % 50;
    float *words = numbers(50 * width, 1.0f), *positions = numbers(100 * width, 1.0f);
    Model model = {.width = width, .heads = heads, .inner = inner, .layers = 2, .type = type, .activation = activation};
    model.position_width = width, model.eps = 1e-5f, model.words = words, model.positions = positions;
    model.norm = norm(width), model.layer = layers;
    if (has_other_layers) {
        model.norm_first = model.gated = 1, model.final_norm = norm(width);
        model.slopes = numbers(heads, 0.5f);
    }
    float *states = numbers(TOKENS * width, 0.0f);
    if (encode(&model, ids, starts, SENTENCES, states, threads)) exit(1);
    return states;
}
