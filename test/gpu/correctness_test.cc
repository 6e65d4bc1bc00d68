// What the check of a result must notice, each planted into a right output.
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "autotune/gpu/operands.h"
#include "kernels/problem.h"
#include "test/gpu/gpu_here.h"

using namespace autotune;
using gpu::Correctness;
using gpu::Operands;

namespace {

Problem product(DType dtype, std::int64_t k, std::int64_t ldc = 0) {
  Problem problem;
  problem.m = 100;
  problem.n = 200;
  problem.k = k;
  problem.ldc = ldc;
  problem.dtype = dtype;
  problem.out_dtype = default_out_dtype(dtype);
  return checked(problem).value();
}

// C = A B over the first `k` of the inner dimension, written to the operands' output as a kernel
// would. tn layout.
void multiply(gpu::Workbench& bench, const Operands& operands, std::int64_t k) {
  const Problem& p = operands.problem();
  const DevicePointers at = operands.pointers();
  const auto row = static_cast<std::size_t>(p.n * storage_bytes(p.out_dtype));
  auto tight = gpu::DeviceMemory::allocate(row * static_cast<std::size_t>(p.m));
  REQUIRE(tight);
  REQUIRE(bench.reference({{at.a, p.dtype, p.m, k, p.lda, 1},
                           {at.b, p.dtype, k, p.n, 1, p.ldb},
                           {at.c, p.out_dtype, p.m, p.n, p.ldc, 1},
                           {tight->address(), p.out_dtype, p.m, p.n, p.n, 1},
                           p.alpha,
                           p.beta}));
  for (std::int64_t m = 0; m < p.m; ++m) {
    REQUIRE(bench.copy(at.c + static_cast<std::uint64_t>(m * p.ldc * storage_bytes(p.out_dtype)),
                       tight->address() + static_cast<std::uint64_t>(m) * row, row));
  }
  REQUIRE(bench.synchronize());
}

struct Prepared {
  gpu::Workbench& bench;
  Operands operands;
  explicit Prepared(gpu::Workbench& on, const Problem& problem)
      : bench(on), operands(Operands::create(on, problem, 1).value()) {
    REQUIRE(operands.poison(bench));
  }
  Correctness verify() { return operands.verify(bench).value(); }
  void put_byte(std::int64_t offset, unsigned char value) {
    const auto at =
        static_cast<std::uint64_t>(static_cast<std::int64_t>(operands.pointers().c) + offset);
    REQUIRE(bench.upload(at, &value, 1));
  }
};

constexpr DType kAll[] = {DType::bf16, DType::fp16, DType::tf32, DType::fp32};

}  // namespace

TEST_CASE("a right output passes, with gaps between rows and with beta") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  for (const DType dtype : kAll) {
    Problem problem = product(dtype, 1000, 208);
    Prepared plain(*bench, problem);
    multiply(*bench, plain.operands, 1000);
    const Correctness result = plain.verify();
    INFO(to_string(dtype) << ": " << result.what);
    CHECK(result.ok);
    CHECK(result.error == 0);

    problem.beta = 0.5;
    Prepared with_beta(*bench, problem);
    multiply(*bench, with_beta.operands, 1000);
    CHECK(with_beta.verify().ok);
    // A second run reads the first one's output, unless C is put back.
    multiply(*bench, with_beta.operands, 1000);
    CHECK(!with_beta.verify().ok);
    REQUIRE(with_beta.operands.restore(*bench));
    multiply(*bench, with_beta.operands, 1000);
    CHECK(with_beta.verify().ok);
  }
}

TEST_CASE("one dropped slice of k never passes") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  for (const DType dtype : kAll) {
    for (const std::int64_t k : {64, 4096, 28672}) {
      Prepared prepared(*bench, product(dtype, k));
      multiply(*bench, prepared.operands, k - 8);
      const Correctness result = prepared.verify();
      INFO(to_string(dtype) << " k=" << k << " error " << result.error);
      CHECK(!result.ok);
      CHECK(result.error == Approx(std::sqrt(8.0 / static_cast<double>(k))).epsilon(0.1));
    }
  }
}

TEST_CASE("an output that was never written, or holds one NaN, never passes") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  for (const DType dtype : kAll) {
    Prepared prepared(*bench, product(dtype, 64));
    CHECK(prepared.verify().what.find("20000 of 20000 elements") == 0);
    multiply(*bench, prepared.operands, 64);
    REQUIRE(prepared.verify().ok);
    const int size = storage_bytes(prepared.operands.problem().out_dtype);
    for (int i = 0; i < size; ++i) prepared.put_byte(12345 * size + i, 0xff);
    const Correctness result = prepared.verify();
    CHECK(!result.ok);
    CHECK(!result.complete);
    CHECK(result.what.find("1 of 20000 elements") == 0);
  }
}

TEST_CASE("one wrong element never passes") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  for (const DType dtype : kAll) {
    Prepared prepared(*bench, product(dtype, 64));
    multiply(*bench, prepared.operands, 64);
    const int size = storage_bytes(prepared.operands.problem().out_dtype);
    // Sign and exponent of one element: 4, in fp16 2.25, where values are about 1.
    prepared.put_byte(777 * size + size - 1, 0x40);
    prepared.put_byte(777 * size + size - 2, 0x80);
    const Correctness result = prepared.verify();
    CHECK(!result.ok);
    CHECK(result.max_ratio > 1);
  }
}

TEST_CASE("a byte written before, behind or between the output's rows is noticed") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  const Problem problem = product(DType::bf16, 64, 208);
  const std::int64_t row = 208 * 2;
  const std::int64_t behind = 100 * row;
  for (const std::int64_t offset : {std::int64_t{-1}, std::int64_t{-200'000}, behind,
                                    behind + 200'000, std::int64_t{400}, 50 * row - 1}) {
    Prepared prepared(*bench, problem);
    multiply(*bench, prepared.operands, 64);
    REQUIRE(prepared.verify().ok);
    prepared.put_byte(offset, 0);
    const Correctness result = prepared.verify();
    INFO("offset " << offset);
    CHECK(!result.ok);
    CHECK(result.what.find("overwritten") != std::string::npos);
  }
}

TEST_CASE("operands lie at several places, with the same inputs at each") {
  gpu::Workbench* here = test::workbench();
  if (here == nullptr) return;
  gpu::Workbench& bench = *here;
  Prepared prepared(bench, product(DType::bf16, 300, 216));
  REQUIRE(prepared.operands.places() == 1);
  prepared.operands.spread(bench);
  CHECK(prepared.operands.places() == 16);
  const DevicePointers first = prepared.operands.pointers();
  constexpr std::uint64_t kPage = 2 << 20;
  std::set<std::pair<std::uint64_t, std::uint64_t>> offsets;
  for (std::size_t place = 1; place < prepared.operands.places(); ++place) {
    const DevicePointers other = prepared.operands.pointers(place);
    CHECK(other.a != first.a);
    CHECK(other.c != first.c);
    CHECK(other.workspace == first.workspace);
    CHECK((other.a % 512 == 0 && other.b % 512 == 0));
    offsets.insert({other.a % kPage, other.b % kPage});
    CHECK(bench.count_differences(first.a, other.a, 100 * 300 * 2).value() == 0);
    CHECK(bench.count_differences(first.b, other.b, 200 * 300 * 2).value() == 0);
  }
  CHECK(offsets.size() > 10);  // places are not alike
  const DevicePointers moved =
      prepared.operands.moved({first.c, 1, first.a, first.workspace}, 2);  // as a product behind it
  const DevicePointers third = prepared.operands.pointers(2);
  CHECK((moved.a == third.c && moved.b == 1 && moved.c == third.a));
  CHECK((moved.workspace == first.workspace && moved.up == 0 && moved.down == 0));
  // What is written at another place is not what is checked.
  multiply(bench, prepared.operands, 300);
  REQUIRE(bench.fill_bytes(prepared.operands.pointers(1).c, 0, 64));
  CHECK(prepared.verify().ok);
  Problem large = product(DType::bf16, 300);
  large.m = 40'000;
  large.n = large.ldc = 4000;
  Prepared heavy(bench, checked(large).value());
  heavy.operands.spread(bench);
  CHECK(heavy.operands.places() == 3);  // of 350 MB
}
