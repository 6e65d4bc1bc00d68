// What the cubin reader makes of things that are none, and of the compiler's log. Real cubins are
// read in test/compile.
#include "autotune/gpu/cubin.h"

#include <random>
#include <string>

#include "test/support/catch.h"

using namespace autotune;

TEST_CASE("what is not a cubin is an error") {
  const std::string elf_of_this_machine =
      "\x7f"
      "ELF\x02\x01\x01";
  for (const std::string& bytes :
       {std::string(), std::string("x"), std::string(64, '\0'), std::string(4096, '\xff'),
        elf_of_this_machine + std::string(200, '\0')}) {
    const auto resources = gpu::read_cubin(bytes, "kernel");
    REQUIRE(!resources);
    CHECK(resources.error().code == ErrorCode::corrupt_file);
  }
}

TEST_CASE("random bytes behind a cubin's first bytes do no harm") {
  std::mt19937 random(11);
  int beyond = 0;  // of the names of its sections
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(64 + random() % 512, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const std::string ident(
        "\x7f"
        "ELF\x02\x01\x01\x41\x08",
        9);
    bytes.replace(0, ident.size(), ident);
    bytes[18] = static_cast<char>(190);
    bytes[19] = 0;
    bytes[58] = 64;
    bytes[59] = 0;
    // A few section headers that lie inside, most times.
    bytes.replace(40, 8, 8, '\0');
    bytes[40] = static_cast<char>(random() % 256);
    bytes[49] = 90;                             // the architecture
    for (const std::size_t field : {60, 62}) {  // how many there are, and which has the names
      bytes[field] = static_cast<char>(random() % 4);
      bytes[field + 1] = 0;
    }
    const auto read = gpu::read_cubin(bytes, "kernel");
    if (!read && read.error().message.find("no section names") == std::string::npos) ++beyond;
  }
  CHECK(beyond > 100);
}

namespace {

constexpr const char* kLog = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Function properties for other
ptxas         .     8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Compiling entry function 'kernel' for 'sm_90a'
ptxas info    : Function properties for kernel
ptxas         .     416 bytes stack frame, 520 bytes spill stores, 1044 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers
)";

}  // namespace

TEST_CASE("spills are read from the log, for the entry that was asked for") {
  ActualResources resources;
  gpu::add_compiler_report(kLog, "kernel", resources);
  CHECK(resources.spill_store_bytes == 520);
  CHECK(resources.spill_load_bytes == 1044);
  CHECK(!resources.serialised);
  gpu::add_compiler_report(kLog, "other", resources);
  CHECK(resources.spill_store_bytes == 12);
  CHECK(resources.spill_load_bytes == 16);
}

TEST_CASE("an entry that the log does not name, and a number beyond any bound") {
  ActualResources resources;
  gpu::add_compiler_report(kLog, "kern", resources);
  CHECK(resources.spill_store_bytes == 0);
  gpu::add_compiler_report(
      "Function properties for k\n 99999999999999999999 bytes spill stores, x bytes spill loads",
      "k", resources);
  CHECK(resources.spill_store_bytes == 1 << 30);
  CHECK(resources.spill_load_bytes == 0);
}

TEST_CASE("a serialised wgmma and an ignored setmaxnreg are seen") {
  for (const char* code : {"C7508", "C7510", "C7511", "C7512"}) {
    ActualResources resources;
    gpu::add_compiler_report(std::string("warning : (") + code + ") something", "k", resources);
    CHECK(resources.serialised);
  }
}
