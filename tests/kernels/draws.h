/* Random numbers for programs that run a kernel, the same on every processor. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define DIGEST 0
static uint32_t state = 1;
static uint32_t draw(void) { return (state = state * 1664525u + 1013904223u) >> 8; }
static float number(void) { return (float)(int32_t)(draw() % 2001) / 1000.0f - 1.0f; }
static float *numbers(int64_t count, float size) {
    float *list = aligned_alloc(64, (4 * count + 63) / 64 * 64);
    for (int64_t i = 0; i < count; i++) list[i] = size * number();
    return list;
}
