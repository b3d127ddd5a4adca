/* Self-attention of one sentence by tiles, in bfloats or pairs of them, for heads of a multiple of 32 dimensions. */
typedef struct {
    int64_t width, heads;
    char *keys, *values; /* of a head, as tiles; those of the low bfloats after the others */
    float *scores;       /* of BLOCK queries, then the powers of these */
    char *low;           /* the low bfloats of the powers, in rows as far apart as the scores */
} TileAttention;

/* 2^x to 1e-4, which a bfloat's rounding hides. */
static Floats rough_power16(Floats x) {
    Floats whole = round16(x), r = sub16(x, whole);
    Floats p = set16(5.517167e-2f);
    p = fmadd16(p, r, set16(2.4261112e-1f));
    p = fmadd16(p, r, set16(6.9326099e-1f));
    p = fmadd16(p, r, set16(9.9992807e-1f));
    return scale16(p, whole);
}

/* Tiles of 16 keys and 32 dimensions, [keys / 16][head / 32][16 pairs of dimensions][16 keys]. */
static void tiles_of_keys(const char *keys, int64_t stride, int64_t length, int64_t head, char *to) {
    for (int64_t j = 0; j < length; j += LANES)
        for (int64_t d = 0; d < head; d += 32, to += TILE_BYTES)
            transpose16(keys + j * stride + 2 * d, stride, length - j, LANES, to, 64);
}

/* Tiles of 32 tokens and 16 dimensions, [tokens / 32][head / 16][16 pairs of tokens][16 dimensions]. */
static void tiles_of_values(const char *values, int64_t stride, int64_t length, int64_t head, char *to) {
    /* unpacklo and unpackhi work within quarters of a register: the first and the last two quarters of both */
    const Ints front = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), back = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
    for (int64_t j = 0; j < length; j += 32, to += head / 16 * TILE_BYTES)
        for (int64_t t = 0; t < 32; t += 2)
            for (int64_t d = 0; d < head; d += 32) {
                Ints first = _mm512_setzero_si512(), second = first;
                const char *from = values + (j + t) * stride + 2 * d;
                char *tile = to + d / 16 * TILE_BYTES + t / 2 * 64;
                if (j + t < length) first = read_ints16(from);
                if (j + t + 1 < length) second = read_ints16(from + stride);
                Ints low = _mm512_unpacklo_epi16(first, second), high = _mm512_unpackhi_epi16(first, second);
                write_ints16(tile, _mm512_permutex2var_epi64(low, front, high));
                write_ints16(tile + TILE_BYTES, _mm512_permutex2var_epi64(low, back, high));
            }
}

/* The largest absolute number in some rows of scores; there are `length` in each. */
static float largest_score(const float *scores, int64_t rows, int64_t length, int64_t padded) {
    Floats largest = set16(0.0f), zero = largest;
    for (int64_t r = 0; r < rows; r++, scores += padded)
        for (int64_t j = 0; j < length; j += LANES)
            largest = max16(largest, abs16(first16(least(LANES, length - j), read16(scores + j), zero)));
    return largest16(largest);
}

/* Replaces a row of scores by powers, with zeros from `length` to `padded`; `shift` prevents overflow. */
ALWAYS void powers_of(int type, float *scores, char *low, int64_t length, int64_t padded, Floats factor, Floats shift) {
    Floats zero = set16(0.0f);
    for (int64_t j = 0; j < padded; j += LANES) {
        int64_t real = length - j < 0 ? 0 : least(LANES, length - j);
        Floats x = fmsub16(first16(real, read16(scores + j), zero), factor, shift);
        x = first16(real, type == PAIRS ? power16(x) : rough_power16(x), zero);
        char *high = (char *)scores + 2 * j;
        store(high, BFLOAT16, x);
        if (type == PAIRS) store(low + 2 * j, BFLOAT16, sub16(x, load(high, BFLOAT16)));
    }
}

#define SAFE 60.0f /* no power of two up to this overflows, and no sum of them */

/* Replaces scores by powers, not yet divided by their sums. The largest of a row is computed only if powers may
   overflow. */
ALWAYS void weigh(int type, float *scores, char *low, int64_t rows, int64_t length, int64_t padded, float scale) {
    Floats factor = set16(scale * 1.44269504f), shift = set16(0.0f);
    int safe = largest_score(scores, rows, length, padded) * scale * 1.44269504f < SAFE;
    for (int64_t r = 0; r < rows; r++, scores += padded, low += 4 * padded) {
        if (!safe) {
            Floats most = set16(-3.0e38f);
            for (int64_t j = 0; j < length; j += LANES)
                most = max16(most, first16(least(LANES, length - j), read16(scores + j), most));
            shift = mul16(set16(largest16(most)), factor);
        }
        powers_of(type, scores, low, length, padded, factor, shift);
    }
}

/* Scores of up to 16 or 32 queries with all keys; `q_low` and `keys_low` are bytes from high bfloats to low ones. */
ALWAYS void tile_scores(int type, int halves, const char *q, int64_t q_low, int64_t stride, const char *keys,
                        int64_t keys_low, int64_t steps, int64_t length, int64_t padded, float *scores) {
    for (int64_t j = 0; j < length; j += 2 * LANES, scores += 2 * LANES) {
        CLEAR_SUMS
        for (int64_t s = 0; s < steps; s++) {
            const char *key = keys + (j / LANES * steps + s) * TILE_BYTES, *other = key + TILE_BYTES * steps;
            LOAD_ROWS(q + 64 * s, stride)
            LOAD_COLUMNS(key, other, 64)
            MULTIPLY(dpbf16ps)
            if (type == PAIRS) {
                LOAD_ROWS(q + q_low + 64 * s, stride)
                MULTIPLY(dpbf16ps)
                LOAD_ROWS(q + 64 * s, stride)
                LOAD_COLUMNS(key + keys_low, other + keys_low, 64)
                MULTIPLY(dpbf16ps)
            }
        }
        STORE_SUMS(scores, 4 * padded)
    }
}

/* Powers times 32 dimensions of the values. */
ALWAYS void tile_context(int type, int halves, const char *powers, const char *low, int64_t stride, const char *values,
                         int64_t values_low, int64_t apart, int64_t steps, float *sums) {
    CLEAR_SUMS
    for (int64_t s = 0; s < steps; s++, values += apart) {
        LOAD_ROWS(powers + 64 * s, stride)
        LOAD_COLUMNS(values, values + TILE_BYTES, 64)
        MULTIPLY(dpbf16ps)
        if (type == PAIRS) {
            LOAD_ROWS(low + 64 * s, stride)
            MULTIPLY(dpbf16ps)
            LOAD_ROWS(powers + 64 * s, stride)
            LOAD_COLUMNS(values + values_low, values + values_low + TILE_BYTES, 64)
            MULTIPLY(dpbf16ps)
        }
    }
    STORE_SUMS(sums, 4 * PANEL)
}

/* The sum of the powers of each row, sixteen times: the product of the row with ones. */
ALWAYS void tile_totals(int type, int halves, const char *powers, const char *low, int64_t stride, int64_t steps,
                        const char *ones, float *totals) {
    _tile_zero(0);
    _tile_zero(2);
    _tile_loadd(6, ones, 64);
    for (int64_t s = 0; s < steps; s++) {
        LOAD_ROWS(powers + 64 * s, stride)
        _tile_dpbf16ps(0, 4, 6);
        if (halves > 1) _tile_dpbf16ps(2, 5, 6);
        if (type == PAIRS) {
            LOAD_ROWS(low + 64 * s, stride)
            _tile_dpbf16ps(0, 4, 6);
            if (halves > 1) _tile_dpbf16ps(2, 5, 6);
        }
    }
    _tile_stored(0, totals, 64);
    if (halves > 1) _tile_stored(2, totals + TILE_ROWS * LANES, 64);
}

/* One head: the context of up to 16 or 32 queries. */
ALWAYS void head_by_tiles(int type, int halves, const TileAttention *to, const char *q, int64_t rows, int64_t length,
                          float scale, const char *ones, char *context) {
    int64_t width = to->width, head = width / to->heads, padded = up(length, 32), apart = head / 16 * TILE_BYTES;
    int64_t both = type == PAIRS ? 2 : 1, tiles_low = padded * head * 2;
    float sums[BLOCK * PANEL] __attribute__((aligned(64))), totals[BLOCK * LANES] __attribute__((aligned(64)));
    const char *powers = (char *)to->scores;
    ALL_STORED
    tile_scores(type, halves, q, 6 * width, 6 * width * both, to->keys, tiles_low, head / 32, length, padded, to->scores);
    weigh(type, to->scores, to->low, rows, length, padded, scale);
    ALL_STORED
    tile_totals(type, halves, powers, to->low, 4 * padded, padded / 32, ones, totals);
    for (int64_t d = 0; d < head; d += 32) {
        const char *values = to->values + d / 16 * TILE_BYTES;
        tile_context(type, halves, powers, to->low, 4 * padded, values, tiles_low, apart, padded / 32, sums);
        for (int64_t r = 0; r < rows; r++) {
            Floats inverse = div16(set16(1.0f), read16(totals + r * LANES));
            Floats a = mul16(read16(sums + r * PANEL), inverse), b = mul16(read16(sums + r * PANEL + LANES), inverse);
            char *at = context + r * width * 2 * both + d * 2;
            if (type == PAIRS) store_pairs32(at, 2 * width, a, b);
            else store_bfloats32(at, a, b);
        }
    }
}

/* Attention of some heads. In PAIRS, rows of qkv and context have high bfloats first. Up to 31 more rows are read. */
ALWAYS void attend_in(int type, const TileAttention *to, const char *qkv, int64_t length, int64_t first, int64_t end,
                      char *context) {
    int64_t width = to->width, head = width / to->heads, tiles_low = up(length, 32) * head * 2;
    int64_t both = type == PAIRS ? 2 : 1, stride = 6 * width * both, low = 6 * width;
    float scale = first_lane16(div16(set16(1.0f), sqrt16(set16((float)head))));
    char ones[TILE_BYTES] __attribute__((aligned(64)));
    for (int i = 0; i < TILE_BYTES; i += 32) store(ones + i, BFLOAT16, set16(1.0f));
    context += first * head * 2;
    for (const char *q = qkv + first * head * 2; q < qkv + end * head * 2; q += head * 2, context += head * 2) {
        for (int64_t part = 0; part < both; part++) {
            tiles_of_keys(q + width * 2 + part * low, stride, length, head, to->keys + part * tiles_low);
            tiles_of_values(q + 4 * width + part * low, stride, length, head, to->values + part * tiles_low);
        }
        for (int64_t i = 0; i < length; i += BLOCK) {
            int64_t rows = least(BLOCK, length - i);
            char *at = context + i * width * 2 * both;
            if (rows > TILE_ROWS) head_by_tiles(type, 2, to, q + i * stride, rows, length, scale, ones, at);
            else head_by_tiles(type, 1, to, q + i * stride, rows, length, scale, ones, at);
        }
    }
}

static void attend_by_tiles(int64_t type, const TileAttention *to, const char *qkv, int64_t length, int64_t first,
                            int64_t end, char *context) {
    if (type == PAIRS) attend_in(PAIRS, to, qkv, length, first, end, context);
    else attend_in(BFLOAT16, to, qkv, length, first, end, context);
}
