/* Eight tiles in memory, one for each thread, and what the instructions of AMX do with them: in place of amx.h where a
   processor has none, so that the kernels that use tiles are tested everywhere. */
#include <string.h>

#define TILES 1
#define tiles_allowed() 1

static _Thread_local union {
    char bytes[1024];
    float floats[16][16];
    int32_t ints[16][16];
    uint16_t bfloats[16][32];
    int8_t whole[16][64];
} emulated[8];
static _Thread_local int configured;

static inline void begin_tiles(void) { configured = 1; }
static inline void end_tiles(void) { configured = 0; }

/* Without a configuration the instructions are illegal. */
static inline void check_configured(void) {
    if (!configured) __builtin_trap();
}

static inline float of_bfloat(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float number;
    memcpy(&number, &bits, 4);
    return number;
}

#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _tile_dpbsud

static inline void _tile_zero(int tile) {
    check_configured();
    memset(emulated[tile].bytes, 0, 1024);
}

static inline void _tile_loadd(int tile, const void *from, int64_t stride) {
    check_configured();
    for (int row = 0; row < 16; row++) memcpy(emulated[tile].bytes + 64 * row, (const char *)from + row * stride, 64);
}

static inline void _tile_stored(int tile, void *to, int64_t stride) {
    check_configured();
    for (int row = 0; row < 16; row++) memcpy((char *)to + row * stride, emulated[tile].bytes + 64 * row, 64);
}

/* Pairs of bfloats: sums[m][n] += x[m][2k] y[k][2n] + x[m][2k + 1] y[k][2n + 1]. */
static inline void _tile_dpbf16ps(int sums, int x, int y) {
    check_configured();
    for (int m = 0; m < 16; m++)
        for (int k = 0; k < 16; k++)
            for (int n = 0; n < 16; n++)
                for (int of = 0; of < 2; of++)
                    emulated[sums].floats[m][n] += of_bfloat(emulated[x].bfloats[m][2 * k + of]) *
                                                   of_bfloat(emulated[y].bfloats[k][2 * n + of]);
}

/* Fours of bytes, signed ones of x by unsigned ones of y. */
static inline void _tile_dpbsud(int sums, int x, int y) {
    check_configured();
    for (int m = 0; m < 16; m++)
        for (int k = 0; k < 16; k++)
            for (int n = 0; n < 16; n++)
                for (int of = 0; of < 4; of++)
                    emulated[sums].ints[m][n] +=
                        emulated[x].whole[m][4 * k + of] * (int)(uint8_t)emulated[y].whole[k][4 * n + of];
}
