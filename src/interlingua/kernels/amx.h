/* The tiles of Intel's server processors (AMX): eight registers of 16 rows of 64 bytes. The system lends them to a process
   that asks for them. */
#include <sys/syscall.h>
#include <unistd.h>

#define TILES 1
#define REQUEST_PERMISSION 0x1023 /* ARCH_REQ_XCOMP_PERM of arch_prctl */
#define TILE_STATE 18             /* XFEATURE_XTILEDATA */

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} TileConfig;

/* Whether the processor has tiles of bfloats and bytes, and the system lets this process use them. */
static int tiles_allowed(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    int bfloats = d >> 22 & 1, tiles = d >> 24 & 1, bytes = d >> 25 & 1;
    return bfloats && tiles && bytes && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_STATE) == 0;
}

/* Eight whole tiles for this thread, until end_tiles. */
static inline void begin_tiles(void) {
    TileConfig config = {.palette = 1};
    for (int i = 0; i < 8; i++) config.row_bytes[i] = 64, config.rows[i] = 16;
    /* _tile_loadconfig() lets GCC believe that eight bytes of it are read */
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
}

static inline void end_tiles(void) { _tile_release(); }
