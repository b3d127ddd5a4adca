#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#define LANES 16
#define OFFSET 128
#define LARGEST_BYTE 127.0f
#define IN_PAIRS 0
typedef struct { float at[16]; } Floats;
typedef struct { int32_t at[16]; } Ints;
#define EACH for (int i = 0; i < 16; i++)
static Floats set16(float x) { Floats v; EACH v.at[i] = x; return v; }
static Ints set_ints16(int32_t x) { Ints v; EACH v.at[i] = x; return v; }
static Floats read16(const float *x) { Floats v; memcpy(v.at, x, 64); return v; }
static Floats mul16(Floats a, Floats b) { EACH a.at[i] *= b.at[i]; return a; }
static Floats fmadd16(Floats a, Floats b, Floats c) { EACH a.at[i] = a.at[i] * b.at[i] + c.at[i]; return a; }
static float sum16(Floats x) { float sum = 0; EACH sum += x.at[i]; return sum; }
static Ints to_ints16(Floats x) {
    Ints v;
    EACH v.at[i] = x.at[i] >= -2147483648.0f && x.at[i] < 2147483648.0f ? (int32_t)lrintf(x.at[i]) : INT32_MIN;
    return v;
}
static Ints add_ints16(Ints a, Ints b) {
    EACH a.at[i] = (int32_t)((uint32_t)a.at[i] + (uint32_t)b.at[i]);
    return a;
}
static void write_bytes16(char *to, Ints x) {
    EACH to[i] = (int8_t)(x.at[i] > 127 ? 127 : x.at[i] < -128 ? -128 : x.at[i]);
}
static void write_ints16(void *to, Ints x) { memcpy(to, x.at, 64); }
/* without the rotation */
static float rotate(const char *x, int64_t type, int64_t inputs, float *to, int pairs) {
    float most = 0;
    memcpy(to, x, sizeof(float) * inputs);
    for (int64_t d = 0; d < inputs; d++) most = isnan(to[d]) ? to[d] : fmaxf(most, fabsf(to[d]));
    return most;
}
/* HERE STANDS to_bytes OF whole_rows.h */
int main(void) {
    float x[32], turned[32], scale;
    char to[32];
    int32_t start;
    for (int i = 0; i < 32; i++) x[i] = (float)(i - 10);
    to_bytes((const char *)x, 0, 32, turned, to, &scale, &start);
    int32_t sum = 0;
    for (int i = 0; i < 32; i++) sum += to[i];
    printf("%d\n", start + 128 * sum);
    for (int bad = 0; bad < 2; bad++) {
        x[3] = bad ? INFINITY : NAN;
        x[4] = 3e38f;
        to_bytes((const char *)x, 0, 32, turned, to, &scale, &start);
    }
    for (int i = 0; i < 32; i++) {  /* in one more place each time: each alone, and all together, leave the range */
        x[i] = NAN;
        to_bytes((const char *)x, 0, 32, turned, to, &scale, &start);
    }
    memset(x, 0, sizeof(x));
    to_bytes((const char *)x, 0, 32, turned, to, &scale, &start);
    return 0;
}
