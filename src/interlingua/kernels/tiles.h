/* What the kernels do with tiles, each 16 rows of 64 bytes: products of up to 32 rows by 32 columns, which take all eight
   of them. amx.h has the instructions. */
#define TILE_ROWS 16
#define TILE_BYTES 1024

/* Tiles 0 to 3 are sums, 4 and 5 sixteen rows each, 6 and 7 weights or what else the rows are multiplied by. Macros, as
   the numbers of tiles are part of the instructions; `halves` is how many times sixteen rows there are, 1 or 2. */
#define CLEAR_SUMS       \
    _tile_zero(0);       \
    _tile_zero(1);       \
    if (halves > 1) {    \
        _tile_zero(2);   \
        _tile_zero(3);   \
    }
#define LOAD_ROWS(X, STRIDE)     \
    _tile_loadd(4, X, STRIDE);   \
    if (halves > 1) _tile_loadd(5, (X) + TILE_ROWS * (STRIDE), STRIDE);
#define LOAD_COLUMNS(FIRST, SECOND, STRIDE) \
    _tile_loadd(6, FIRST, STRIDE);          \
    _tile_loadd(7, SECOND, STRIDE);
#define MULTIPLY(INSTRUCTION)       \
    _tile_##INSTRUCTION(0, 4, 6);   \
    _tile_##INSTRUCTION(1, 4, 7);   \
    if (halves > 1) {               \
        _tile_##INSTRUCTION(2, 5, 6); \
        _tile_##INSTRUCTION(3, 5, 7); \
    }
#define STORE_SUMS(TO, STRIDE)                                          \
    _tile_stored(0, TO, STRIDE);                                        \
    _tile_stored(1, (char *)(TO) + 64, STRIDE);                         \
    if (halves > 1) {                                                   \
        _tile_stored(2, (char *)(TO) + TILE_ROWS * (STRIDE), STRIDE);   \
        _tile_stored(3, (char *)(TO) + TILE_ROWS * (STRIDE) + 64, STRIDE); \
    }
/* The compiler does not see what tiles read: this makes it store all values in memory first. */
#define ALL_STORED __asm__ volatile("" ::: "memory");
