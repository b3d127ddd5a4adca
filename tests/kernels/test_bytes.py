"""``bytes.h`` under the sanitizer of undefined behavior, its instructions spelled out so that any processor runs it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from interlingua import kernels

COMPILER = shutil.which("gcc") or shutil.which("clang")
PROGRAM = """
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#define LANES 16
typedef struct {{ float at[16]; }} __m512;
typedef struct {{ int32_t at[16]; }} __m512i;
typedef struct {{ int8_t at[16]; }} __m128i;
#define EACH for (int i = 0; i < 16; i++)
static __m512 _mm512_set1_ps(float x) {{ __m512 v; EACH v.at[i] = x; return v; }}
static __m512i _mm512_setzero_si512(void) {{ __m512i v = {{{{0}}}}; return v; }}
static __m512 _mm512_loadu_ps(const float *x) {{ __m512 v; memcpy(v.at, x, 64); return v; }}
static __m512 _mm512_mul_ps(__m512 a, __m512 b) {{ EACH a.at[i] *= b.at[i]; return a; }}
static __m512i _mm512_cvtps_epi32(__m512 x) {{
    __m512i v;
    EACH v.at[i] = x.at[i] >= -2147483648.0f && x.at[i] < 2147483648.0f ? (int32_t)lrintf(x.at[i]) : INT32_MIN;
    return v;
}}
static __m512i _mm512_add_epi32(__m512i a, __m512i b) {{
    EACH a.at[i] = (int32_t)((uint32_t)a.at[i] + (uint32_t)b.at[i]);
    return a;
}}
static int32_t _mm512_reduce_add_epi32(__m512i x) {{
    uint32_t sum = 0;
    EACH sum += (uint32_t)x.at[i];
    return (int32_t)sum;
}}
static __m128i _mm512_cvtsepi32_epi8(__m512i x) {{
    __m128i v;
    EACH v.at[i] = (int8_t)(x.at[i] > 127 ? 127 : x.at[i] < -128 ? -128 : x.at[i]);
    return v;
}}
static void _mm_storeu_si128(__m128i *to, __m128i x) {{ memcpy((void *)to, x.at, 16); }}
static void _mm512_storeu_si512(void *to, __m512i x) {{ memcpy(to, x.at, 64); }}
/* without the rotation */
static float rotate(const char *x, int64_t type, int64_t inputs, float *to) {{
    float most = 0;
    memcpy(to, x, sizeof(float) * inputs);
    for (int64_t d = 0; d < inputs; d++) most = isnan(to[d]) ? to[d] : fmaxf(most, fabsf(to[d]));
    return most;
}}
{function}
int main(void) {{
    float x[32], turned[32], scale;
    char to[32];
    int32_t start;
    for (int i = 0; i < 32; i++) x[i] = (float)(i - 10);
    to_bytes((const char *)x, 0, 32, turned, to, &scale, &start);
    int32_t sum = 0;
    for (int i = 0; i < 32; i++) sum += to[i];
    printf("%d\\n", start + 128 * sum);
    for (int bad = 0; bad < 2; bad++) {{
        x[3] = bad ? INFINITY : NAN;
        x[4] = 3e38f;
        to_bytes((const char *)x, 0, 32, turned, to, &scale, &start);
    }}
    for (int i = 0; i < 32; i++) {{  /* in one more place each time: each alone, and all together, leave the range */
        x[i] = NAN;
        to_bytes((const char *)x, 0, 32, turned, to, &scale, &start);
    }}
    memset(x, 0, sizeof(x));
    to_bytes((const char *)x, 0, 32, turned, to, &scale, &start);
    return 0;
}}
"""


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_rows_to_bytes_have_no_undefined_behavior(tmp_path):
    """The sums of bytes overflowed where a row holds NaN."""
    header = Path(kernels.__file__).with_name("bytes.h").read_text(encoding="utf-8")
    function = re.search(r"^static void to_bytes\(.*?^}", header, re.MULTILINE | re.DOTALL)[0]
    (tmp_path / "t.c").write_text(PROGRAM.format(function=function))
    flags = ["-O1", "-fsanitize=undefined", "-fno-sanitize-recover=undefined", "-fsanitize-undefined-trap-on-error"]
    command = [COMPILER, *flags, str(tmp_path / "t.c"), "-lm", "-o", str(tmp_path / "t")]
    compiled = subprocess.run(command, check=False, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    ran = subprocess.run([str(tmp_path / "t")], check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "0\n")
