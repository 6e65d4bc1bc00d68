// Where simt's tiles hold their elements: all of a row within it, four neighbours together, and a
// warp's in different banks.
#include "kernels/gemm/simt_map.h"

#include <algorithm>
#include <set>
#include <vector>

#include "test/support/catch.h"

namespace {

constexpr int kDepths[] = {2, 4, 6, 8, 12, 16, 32};

std::vector<int> extents() {
  std::vector<int> list{256, 480, 512, 2048};
  for (int extent = 4; extent <= 160; extent += 4) list.push_back(extent);
  return list;
}

int span_of(int extent, int other, int block_k) {
  return simt_span(true, extent * 4, extent * block_k * 4, other * block_k * 4);
}

// Whether the elements of row k have each a place in it, in chunks of 16 bytes.
bool permutes(int span, int extent, int k) {
  std::set<int> chunks;
  for (int i = 0; i < extent; ++i) {
    const int place = i * 4 ^ simt_swizzle(span, k);
    const int chunk = i / 4 * 16 ^ simt_swizzle(span, k);
    if (place < 0 || place >= extent * 4 || place != chunk + i % 4 * 4) return false;
    chunks.insert(chunk);
  }
  return static_cast<int>(chunks.size()) == extent / 4;
}

// The bank, in fours, of a chunk of row k.
int bank(int span, int extent, int k, int chunk) {
  return (k * extent * 4 + (chunk * 16 ^ simt_swizzle(span, k))) / 16 % 8;
}

// Whether one chunk of 8 rows from k lies in 8 banks.
bool spreads_rows(int span, int extent, int k, int chunk) {
  std::set<int> banks;
  for (int row = k; row < k + 8; ++row) banks.insert(bank(span, extent, row, chunk));
  return banks.size() == 8;
}

// Whether 8 chunks of row k lie in 8 banks.
bool spreads_chunks(int span, int extent, int k, int first) {
  std::set<int> banks;
  for (int chunk = first; chunk < first + 8; ++chunk) banks.insert(bank(span, extent, k, chunk));
  return banks.size() == 8;
}

}  // namespace

TEST_CASE("simt's swizzle permutes the chunks of a row, and leaves what is in them") {
  for (const int extent : extents()) {
    for (const int other : {4, 24, 128}) {
      for (const int block_k : kDepths) {
        const int span = span_of(extent, other, block_k);
        CAPTURE(extent, other, block_k, span);
        REQUIRE(extent * 4 % span == 0);
        for (int k = 0; k < std::min(block_k, 8); ++k) REQUIRE(permutes(span, extent, k));
        for (int k = 0; k < 32; ++k) REQUIRE(simt_swizzle(span, k) == simt_swizzle(span, k % 8));
      }
    }
  }
}

TEST_CASE("simt's transposing writes of 8 rows, and its reads of 8 chunks, meet in no bank") {
  for (const int extent : extents()) {
    const int span = span_of(extent, 4, 8);
    const int chunks = extent / 4;
    CAPTURE(extent, span);
    for (int chunk = 0; chunk < chunks; ++chunk) REQUIRE(spreads_rows(span, extent, 0, chunk));
    for (int k = 0; k < 8; ++k) {
      for (int first = 0; first + 8 <= chunks; first += 8) {
        REQUIRE(spreads_chunks(span, extent, k, first));
      }
    }
  }
}

TEST_CASE("a thread of simt finds its elements by constant steps from its first") {
  struct Shape {
    int threads;  // side by side along a row
    int vector;   // neighbours of one thread
    int vectors;
  };
  // Reads, then transposing writes: 64 x 4 is whole spans, 4 x 4 less than one; 12 x 4 and 4 x 3
  // carry from one part of a span into the next.
  for (const Shape& shape :
       {Shape{64, 4, 2}, Shape{4, 4, 4}, Shape{12, 4, 2}, Shape{8, 1, 1}, Shape{16, 2, 1},
        Shape{4, 3, 1}, Shape{1, 4, 32}, Shape{16, 1, 8}, Shape{12, 1, 8}, Shape{1, 1, 64}}) {
    const int group = shape.threads * shape.vector;
    const int row_bytes = group * shape.vectors * 4;
    for (const int block_k : kDepths) {
      const int span = span_of(group * shape.vectors, 24, block_k);
      const int tile = 5 * 24 * block_k * 4;  // what lies in front of it
      CAPTURE(shape.threads, shape.vector, shape.vectors, block_k, span);
      for (int k = 0; k < std::min(block_k, 9); ++k) {
        const int swizzle = simt_swizzle(span, k);
        for (int thread = 0; thread < shape.threads; ++thread) {
          const int first = thread * shape.vector * 4;
          for (int i = 0; i < shape.vector * shape.vectors; ++i) {
            // The kernel takes a vector of 2 or 4 as one, 3 elements one by one.
            const int within = i % shape.vector * 4;
            const int apart = shape.vector == 3 ? within : 0;
            const int step = k * row_bytes + i / shape.vector * group * 4 + apart;
            const auto start = static_cast<unsigned>(tile + first);
            const int place = static_cast<int>(simt_place(span, group * 4, start, step, swizzle)) +
                              simt_whole_spans(span, step);
            const int column = i / shape.vector * group * 4 + first + within;
            const int expected = tile + k * row_bytes + (column ^ swizzle);
            REQUIRE(place + within - apart == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("what simt does not transpose lies plainly") {
  const int span = simt_span(false, 128 * 4, 128 * 16 * 4, 128 * 16 * 4);
  CHECK(span == 16);
  for (int k = 0; k < 64; ++k) CHECK(simt_swizzle(span, k) == 0);
}
