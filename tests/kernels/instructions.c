#include <stdint.h>
#if defined(__AVX512F__)
#include "avx512.h"
#elif defined(__AVX2__)
#include "avx2.h"
#else
#include "neon.h"
#endif
#include <math.h>
#include <stdio.h>
#include <string.h>
#define EACH for (int i = 0; i < 16; i++)
#define CHECK(condition) if (!(condition)) return printf("line %d, place %d\n", __LINE__, i), 1
static uint32_t bits(float x) { uint32_t b; memcpy(&b, &x, 4); return b; }
static float number(uint32_t b) { float x; memcpy(&x, &b, 4); return x; }
static uint16_t nearest_bfloat(float x) {
    if (isnan(x)) return (uint16_t)(bits(x) >> 16 | 0x40);
    return (uint16_t)((bits(x) + 0x7FFF + (bits(x) >> 16 & 1)) >> 16);
}
static int floats(const float *x, const float *y) {
    float found[16] __attribute__((aligned(64)));
#define TEST(expression, expected) \
    write16(found, expression); \
    EACH CHECK(bits(found[i]) == bits(expected))
    Floats a = read16(x), b = read16(y);
    TEST(add16(a, b), x[i] + y[i]);
    TEST(sub16(a, b), x[i] - y[i]);
    TEST(mul16(a, b), x[i] * y[i]);
    TEST(div16(a, b), x[i] / y[i]);
    TEST(min16(a, b), x[i] < y[i] ? x[i] : y[i]);
    TEST(max16(a, b), x[i] > y[i] ? x[i] : y[i]);
    TEST(abs16(a), fabsf(x[i]));
    TEST(sqrt16(abs16(a)), sqrtf(fabsf(x[i])));
    TEST(fmadd16(a, b, set16(3.5f)), fmaf(x[i], y[i], 3.5f));
    TEST(fmsub16(a, b, set16(3.5f)), fmaf(x[i], y[i], -3.5f));
    TEST(fnmadd16(a, b, set16(3.5f)), fmaf(-x[i], y[i], 3.5f));
    TEST(round16(a), rintf(x[i]));
    TEST(if_positive16(a, b, set16(7.0f)), x[i] > 0 ? y[i] : 7.0f);
    for (int apart = 1; apart <= 8; apart *= 2) {
        TEST(swap16(a, apart), x[i ^ apart]);
        TEST(signs16(apart), i & apart ? -1.0f : 1.0f);
    }
    for (int count = 0; count <= 16; count++) { TEST(first16(count, a, b), i < count ? x[i] : y[i]); }
    for (int whole = -126; whole <= 127; whole++) {
        TEST(scale16(set16(1.25f), limit16(set16(whole))), ldexpf(1.25f, whole));
    }
    double sum = 0, most = -INFINITY;
    EACH sum += x[i], most = x[i] > most ? x[i] : most;
    int i = -1;
    CHECK(fabs(sum16(a) - sum) < 1e-3);
    CHECK(largest16(a) == most);
    CHECK(first_lane16(a) == x[0]);
    for (i = 0; i < 16; i++) CHECK((not_less16(a, b) >> i & 1) == !(x[i] < y[i]));
    CHECK(not_less16(a, b) >> 16 == 0);
    CHECK(not_less16(set16(NAN), b) == 0xFFFF);
    double eight = 0, given = sum8(fmadd8(read8(x), read8(y), zero8()), fmadd8(read8(x + 8), read8(y + 8), zero8()));
    for (i = 0; i < 16; i++) eight += (double)x[i] * y[i];
    CHECK(fabs(eight - given) < 1e-9);
    return 0;
}
static int bfloats(const float *x) {
    uint16_t halves[16];
    float found[16];
    store((char *)halves, BFLOAT16, read16(x));
    EACH CHECK(halves[i] == nearest_bfloat(x[i]));
    write16(found, load((const char *)halves, BFLOAT16));
    EACH CHECK(bits(found[i]) == (uint32_t)halves[i] << 16);
    store((char *)found, FLOAT32, load((const char *)x, FLOAT32));
    EACH CHECK(bits(found[i]) == bits(x[i]));
    return 0;
}
static int whole_numbers(const float *x) {
    int32_t a[16], found[16];
    signed char bytes[16];
    float back[16];
    EACH a[i] = (int32_t)rintf(x[i]);
    write_ints16(found, to_ints16(read16(x)));
    EACH CHECK(found[i] == a[i]);
    write_ints16(found, add_ints16(read_ints16(a), set_ints16(-3)));
    EACH CHECK(found[i] == a[i] - 3);
    write16(back, to_floats16(read_ints16(a)));
    EACH CHECK(back[i] == (float)a[i]);
    write_bytes16((char *)bytes, read_ints16(a));
    EACH CHECK(bytes[i] == (a[i] > 127 ? 127 : a[i] < -128 ? -128 : a[i]));
    int64_t sum = 0;
    EACH sum += a[i];
    int i = -1;
    CHECK(sum_ints16(read_ints16(a)) == sum);
    write_ints16(found, as_ints16(as_floats16(read_ints16(a))));
    for (i = 0; i < 16; i++) CHECK(found[i] == a[i]);
    return 0;
}
static int dots(void) {
    for (int first = 0; first < 256; first++)
        for (int value = -127; value <= 127; value++) {
            int weights[4] = {first, 255 - first, 255, 0}, values[4] = {value, -value, 127, -127};
#ifdef BYTES_IN_PAIRS /* together at most 128 */
            values[1] = abs(value) - 128, values[2] = first % 2 ? 64 : -64, values[3] = values[2];
            if (first < 128) weights[3] = 255; /* the most that two products can be */
            if (first < 64) values[2] = -128, values[3] = 0;
#endif
            uint8_t y[64];
            int8_t x[64];
            int32_t found[16], expected = 5;
            if (OFFSET == 0 && !weights[3]) weights[3] = 1; /* stored bytes are at least 1: -127 + 128 */
            if (OFFSET == 0 && !weights[0]) weights[0] = 1;
            if (OFFSET == 0 && !weights[1]) weights[1] = 1;
            for (int i = 0; i < 64; i++) y[i] = weights[i % 4], x[i] = values[i % 4];
            for (int i = 0; i < 4; i++) expected += (weights[i] - 128 + OFFSET) * values[i];
            Ints sums = dot_bytes16(set_ints16(5), read_ints16(y), read_ints16(x));
            settle16(&sums);
            write_ints16(found, sums);
            EACH CHECK(found[i] == expected);
        }
    return 0;
}
#if INT16S
static int dots_of_int16s(void) {
    uint32_t state = 7;
    for (int round = 0; round < 1000; round++) {
        int32_t wide[2][16], found[16];
        int16_t narrow[2][16], y[32], x[32];
        EACH {
            wide[0][i] = (int32_t)(state = state * 1664525u + 1013904223u) >> (round % 16); /* most do not fit */
            wide[1][i] = (int32_t)(state = state * 1664525u + 1013904223u) >> 16;
        }
        for (int half = 0; half < 2; half++) {
            write_int16s16((char *)narrow[half], read_ints16(wide[half]));
            EACH CHECK(narrow[half][i] == (wide[half][i] > 32767 ? 32767 : wide[half][i] < -32768 ? -32768 : wide[half][i]));
        }
        for (int i = 0; i < 32; i++) y[i] = narrow[0][i / 2] / 2, x[i] = narrow[1][15 - i / 2] / (1 + i % 2);
        Ints sums = dot_int16s16(set_ints16(-9), read_ints16(y), read_ints16(x));
        settle16(&sums);
        write_ints16(found, sums);
        EACH CHECK(found[i] == -9 + y[2 * i] * x[2 * i] + y[2 * i + 1] * x[2 * i + 1]);
    }
    return 0;
}
#else
static int dots_of_int16s(void) { return 0; }
#endif
#if BFLOATS
static int dots_of_bfloats(void) {
    uint32_t state = 5;
    for (int round = 0; round < 1000; round++) {
        float y[32], x[32], pairs[16], by[16]; /* small whole numbers, whose products and sums are exact */
        int32_t found[16];
        for (int i = 0; i < 32; i++) {
            y[i] = (float)((state = state * 1664525u + 1013904223u) >> 24) - 128.0f;
            x[i] = (float)((state = state * 1664525u + 1013904223u) >> 24) - 128.0f;
        }
        write16(pairs, pair_bfloats16(read16(y), read16(y + 16)));
        write16(by, pair_bfloats16(read16(x), read16(x + 16)));
        EACH CHECK(bits(pairs[i]) == (bits(y[i]) >> 16 | bits(y[16 + i])));
        write_ints16(found, dot_bfloats16(as_ints16(set16(7.0f)), read_ints16(pairs), read_ints16(by)));
        EACH CHECK(number(found[i]) == 7.0f + y[i] * x[i] + y[16 + i] * x[16 + i]);
    }
    return 0;
}
#else
static int dots_of_bfloats(void) { return 0; }
#endif
#if BYTES_TOGETHER == 8
static int matrices(void) {
    uint8_t columns[16 * 8];
    int8_t rows[6 * 24];
    uint32_t state = 3;
    for (int round = 0; round < 100; round++)
        for (int pairs = 1; pairs <= 3; pairs++) {
            for (int i = 0; i < 16 * 8; i++) columns[i] = round ? (state = state * 1664525u + 1013904223u) >> 24 : 255;
            for (int i = 0; i < 6 * 24; i++) rows[i] = round ? (state = state * 1664525u + 1013904223u) >> 24 : -128;
            TwoRows sums[3];
            for (int p = 0; p < pairs; p++) sums[p] = set_two_rows(1000 * p, 1000 * p - 7);
            multiply_two_rows(pairs, sums, columns, rows, 24);
            for (int r = 0; r < 2 * pairs; r++) {
                int32_t found[16];
                write_ints16(found, row_of_two(sums + r / 2, r % 2));
                EACH {
                    int32_t expected = 1000 * (r / 2) - 7 * (r % 2);
                    for (int d = 0; d < 8; d++) expected += columns[8 * i + d] * rows[24 * r + d];
                    CHECK(found[i] == expected);
                }
            }
        }
    return 0;
}
#else
static int matrices(void) { return 0; }
#endif
static int masks_and_columns(void) {
    uint8_t random[16];
    float kept[16];
    for (int threshold = 1; threshold < 256; threshold++) {
        EACH random[i] = (uint8_t)(threshold + i * 37 - 8);
        write16(kept, keep16(random, threshold, 1.5f));
        EACH CHECK(kept[i] == (random[i] >= threshold ? 1.5f : 0.0f));
    }
    float rows[16 * 20], columns[16 * 32] __attribute__((aligned(64)));
    for (int i = 0; i < 16 * 20; i++) rows[i] = (float)i;
    for (int count = 1; count <= 16; count += 5) {
        transpose16((const char *)rows, 80, count, 16, (char *)columns, 128);
        for (int unit = 0; unit < 16; unit++)
            EACH CHECK(columns[unit * 32 + i] == (i < count ? rows[i * 20 + unit] : 0.0f));
    }
    return 0;
}
int main(void) {
    if (!has_instructions()) return 77;
    float x[16], y[16];
    uint32_t state = 1;
    for (int round = 0; round < 1000; round++) {
        EACH {
            state = state * 1664525u + 1013904223u;
            x[i] = (float)((int32_t)state >> 8) / 4096.0f;
            state = state * 1664525u + 1013904223u;
            y[i] = (float)((int32_t)state >> 8) / 65536.0f + 0.001f;
        }
        if (floats(x, y) || bfloats(x) || whole_numbers(x)) return 1;
    }
    float odd[16] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 3e38f, 1.0f, -1.0f, number(0x3F808000), number(0x3F818000),
                     number(0x7F800001), number(0x3F80FFFF), number(0xBF808001), 2.5f, 1e30f, 1e-30f};
    return bfloats(odd) || dots() || dots_of_bfloats() || dots_of_int16s() || matrices() || masks_and_columns();
}
