// The product of kernels/products.h written with Google Highway, for highway.py: the same panels of weights, the same
// blocks of rows, the same order of sums. Highway chooses its target by the compiler's flags. With SETTLE the sums are
// settled as the kernel's are, which is not Highway's own: in registers, or GCC copies and spills them in the loop.
#include <cstdint>

#include "hwy/highway.h"

#if HWY_MAJOR < 1 || (HWY_MAJOR == 1 && HWY_MINOR < 1)
#error "products of bytes came with Highway 1.1"
#endif

#define UNROLL _Pragma("GCC unroll 12")

HWY_BEFORE_NAMESPACE();
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr bool kWide = HWY_TARGET <= HWY_AVX3;      // registers of 512 bits, and 32 of them
constexpr bool kHasDots = HWY_TARGET <= HWY_AVX3_DL;  // an instruction for four products of bytes
constexpr int kVectors = 2;                           // of columns, in a panel
constexpr int kRows = kWide ? 12 : 6;                 // by them: the sums fill 24 of 32 registers, or 12 of 16
constexpr int64_t kAhead = 4096;                      // bytes: weights are fetched that long before

using Floats = hn::FixedTag<float, kWide ? 16 : 8>;
using Ints = hn::RebindToSigned<Floats>;
using Bytes = hn::Repartition<int8_t, Ints>;
using Unsigned = hn::Repartition<uint8_t, Ints>;
using Shorts = hn::Repartition<int16_t, Ints>;
constexpr int64_t kLanes = kWide ? 16 : 8;
constexpr int64_t kPanel = kVectors * kLanes;

struct Product {
  const float *bias, *scales, *x_scales;
  const int32_t *starts;
  int64_t inputs, ld;
};

// From memory to the second-level cache, as products.h does. Highway's own Prefetch() goes to the first.
HWY_INLINE void Fetch(const char *at) { __builtin_prefetch(at, 0, 2); }

// sum + w x: four bytes w, which are 128 too large, by four signed bytes x.
template <class V>
HWY_INLINE V Dot(V sum, hn::Vec<Unsigned> w, hn::Vec<Bytes> x) {
  if constexpr (kHasDots) {
    return hn::SumOfMulQuadAccumulate(Ints(), w, x, sum);
  } else {
    // As in avx2.h: two neighboring x are together at most 128, so that the 16 bits in between are exact.
    const auto pairs = hn::SatWidenMulPairwiseAdd(Shorts(), w, x);
    return hn::Add(sum, hn::WidenMulPairwiseAdd(Ints(), pairs, hn::Set(Shorts(), 1)));
  }
}

HWY_INLINE void MultiplyFloats(const Product &p, const float *panel, const float *x, int64_t column, float *y) {
  const Floats d;
  hn::Vec<Floats> sum[kRows][kVectors];
  UNROLL
  for (int r = 0; r < kRows; r++) {
    UNROLL
    for (int c = 0; c < kVectors; c++) sum[r][c] = hn::LoadU(d, p.bias + column + c * kLanes);
  }
  for (int64_t i = 0; i < p.inputs; i++, panel += kPanel) {
    hn::Vec<Floats> w[kVectors];
    UNROLL
    for (int c = 0; c < kVectors; c++) {
      if (c % (64 / (kLanes * 4)) == 0) Fetch(reinterpret_cast<const char *>(panel + c * kLanes) + kAhead);
      w[c] = hn::LoadU(d, panel + c * kLanes);
    }
    UNROLL
    for (int r = 0; r < kRows; r++) {
      const auto value = hn::Set(d, x[r * p.inputs + i]);
      UNROLL
      for (int c = 0; c < kVectors; c++) sum[r][c] = hn::MulAdd(w[c], value, sum[r][c]);
    }
  }
  UNROLL
  for (int r = 0; r < kRows; r++) {
    UNROLL
    for (int c = 0; c < kVectors; c++) hn::StoreU(sum[r][c], d, y + r * p.ld + c * kLanes);
  }
}

HWY_INLINE void MultiplyBytes(const Product &p, const uint8_t *panel, const int8_t *x, int64_t row, int64_t column,
                              float *y) {
  const Floats d;
  const Ints di;
  hn::Vec<Ints> sum[kRows][kVectors];
  UNROLL
  for (int r = 0; r < kRows; r++) {
    UNROLL
    for (int c = 0; c < kVectors; c++) sum[r][c] = hn::Set(di, p.starts[row + r]);
  }
  for (int64_t i = 0; i < p.inputs; i += 4, panel += 4 * kPanel) {
    hn::Vec<Unsigned> w[kVectors];
    UNROLL
    for (int c = 0; c < kVectors; c++) {
      if (c % (64 / (kLanes * 4)) == 0) Fetch(reinterpret_cast<const char *>(panel + 4 * c * kLanes) + kAhead);
      w[c] = hn::LoadU(Unsigned(), panel + 4 * c * kLanes);
    }
    UNROLL
    for (int r = 0; r < kRows; r++) {
      int32_t four;
      hwy::CopyBytes<4>(x + r * p.inputs + i, &four);
      const auto value = hn::BitCast(Bytes(), hn::Set(di, four));
      UNROLL
      for (int c = 0; c < kVectors; c++) sum[r][c] = Dot(sum[r][c], w[c], value);
    }
  }
  UNROLL
  for (int r = 0; r < kRows; r++) {
    UNROLL
    for (int c = 0; c < kVectors; c++) {
#ifdef SETTLE
      __asm__("" : "+v"(sum[r][c].raw));
#endif
      const auto scaled = hn::Mul(hn::ConvertTo(d, sum[r][c]), hn::Set(d, p.x_scales[row + r]));
      const int64_t at = column + c * kLanes;
      const auto value = hn::MulAdd(scaled, hn::LoadU(d, p.scales + at), hn::LoadU(d, p.bias + at));
      hn::StoreU(value, d, y + r * p.ld + c * kLanes);
    }
  }
}

// The type is 0 for float32 and 2 for bytes, as in the kernel.
void MultiplyRows(int64_t type, const void *weights, const Product &p, const void *x, int64_t rows, float *y) {
  for (int64_t j = 0; j < p.ld; j += kPanel) {
    for (int64_t i = 0; i < rows; i += kRows) {
      float *to = y + i * p.ld + j;
      if (type == 0) {
        const float *from = static_cast<const float *>(x) + i * p.inputs;
        MultiplyFloats(p, static_cast<const float *>(weights) + j * p.inputs, from, j, to);
      } else {
        const int8_t *from = static_cast<const int8_t *>(x) + i * p.inputs;
        MultiplyBytes(p, static_cast<const uint8_t *>(weights) + j * p.inputs, from, i, j, to);
      }
    }
  }
}

const char *TargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

extern "C" {

int64_t columns_of_a_panel() { return HWY_STATIC_DISPATCH(kPanel); }

const char *target_name() { return HWY_STATIC_DISPATCH(TargetName)(); }

// As in highway_kernel.c; the numbers of rows and outputs are multiples of a block's.
void multiply_rows(int64_t times, int64_t type, const void *weights, const float *bias, const float *scales,
                   int64_t inputs, int64_t outputs, const void *x, const float *x_scales, const int32_t *starts,
                   int64_t rows, float *y) {
  const HWY_STATIC_DISPATCH(Product) p = {bias, scales, x_scales, starts, inputs, outputs};
  for (int64_t time = 0; time < times; time++) HWY_STATIC_DISPATCH(MultiplyRows)(type, weights, p, x, rows, y);
}
}
