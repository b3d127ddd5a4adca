/* Rows of whole numbers are as large as they may be, and the numbers that they were rounded from. */
#include "draws.h"
#include "layers.c"
#define MOST 1536

/* Largest size of a rounded row, of two neighbors together where that counts; -1 if a number is over half a step off. */
static int largest_of(int64_t type, const float *turned, const char *to, int64_t inputs, float scale) {
    int largest = 0;
    for (int64_t d = 0; d < inputs; d++) {
        int one[2];
        for (int i = 0; i < 2; i++) {
            int64_t at = d ^ i;
            one[i] = abs(type == BYTES ? ((const int8_t *)to)[at] : ((const int16_t *)to)[at]);
        }
        int whole = type == BYTES ? ((const int8_t *)to)[d] : ((const int16_t *)to)[d];
        if (fabsf(whole * scale - turned[d]) > 0.501f * scale) return -1;
        int size = type == BYTES && IN_PAIRS ? one[0] + one[1] : one[0];
        if (size > largest) largest = size;
    }
    return largest;
}

static int check(int64_t inputs, int kind) {
    float *x = numbers(inputs, 3.0f), turned[MOST], scale;
    char to[2 * MOST];
    int32_t start;
    if (kind == 1) for (int64_t d = 0; d < inputs; d++) x[d] = d ? 0.0f : 5.0f; /* all of one size once rotated */
    if (kind == 2) for (int64_t d = 0; d < inputs; d++) x[d] = 0.37f;
    to_bytes((char *)x, FLOAT32, inputs, turned, to, &scale, &start);
    int32_t sum = 0;
    for (int64_t d = 0; d < inputs; d++) sum += ((int8_t *)to)[d];
    int largest = largest_of(BYTES, turned, to, inputs, scale);
    if (largest < 126 || largest > 127 + IN_PAIRS || start != -OFFSET * sum) return 1;
#if INT16S
    to_int16s((char *)x, FLOAT32, inputs, turned, to, &scale);
    if (largest_of(INT16, turned, to, inputs, scale) != 2047) return 1;
#endif
    return 0;
}

int main(void) {
    if (!supported()) return 77;
    int64_t widths[] = {16, 32, 64, 80, 96, 256, 384, 768, 1024, MOST}; /* blocks of every order */
    for (int i = 0; i < 10; i++)
        for (int kind = 0; kind < 3; kind++)
            for (int round = 0; round < 20; round++)
                if (check(widths[i], kind)) return 1 + i;
    return 0;
}
