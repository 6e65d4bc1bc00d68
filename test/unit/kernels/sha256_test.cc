#include "kernels/sha256.h"

#include <set>

#include "kernels/kernel.h"
#include "test/support/catch.h"

namespace autotune {
namespace {

// Vectors of FIPS 180-4's example papers and of NIST's byte-oriented test set.
TEST_CASE("published digests") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("the build hashes each kernel's source alike") {
  for (const Family* family : families()) {
    for (const HostTwin* kernel : family->kernels) {
      INFO(kernel->name());
      CHECK(kernel->source().sha256 == sha256_hex(kernel->source().text));
    }
  }
}

TEST_CASE("every length around a block's edge has a digest of its own") {
  std::set<std::string> digests;
  for (std::size_t length = 0; length <= 200; ++length) {
    digests.insert(sha256_hex(std::string(length, '\0')));
  }
  CHECK(digests.size() == 201);
}

TEST_CASE("bytes above 127 count as such") {
  CHECK(sha256_hex("\xbd") == "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b");
}

}  // namespace
}  // namespace autotune
