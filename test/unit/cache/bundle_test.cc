#include "cache/bundle.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "test/support/catch.h"
#include "test/unit/cache/fixture.h"

using namespace autotune;
using namespace autotune::cache;
using namespace autotune::cache::testing;

namespace {

const BundleInfo kInfo{"NVIDIA H200", kDevice, "sm_90a", "gemm", "0.1.0", 1234};

// Two winners, with the code of one.
void write_sample(const fs::path& file) {
  auto bundle = Bundle::create(kInfo);
  REQUIRE(bundle.has_value());
  for (int i = 0; i < 2; ++i) {
    WinnerRecord winner;
    winner.trial = sample_trial(i, 4096 + i);
    REQUIRE(bundle->store().crown(winner).has_value());
  }
  REQUIRE(bundle->store().put_cubin(sample_cubin_key(0), sample_cubin(0)).has_value());
  REQUIRE(bundle->write(file).has_value());
}

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_bytes(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

ErrorCode refusal(const fs::path& file) {
  const auto bundle = Bundle::open(file);
  REQUIRE_FALSE(bundle.has_value());
  CHECK(bundle.error().message.find(file.string()) != std::string::npos);
  return bundle.error().code;
}

}  // namespace

TEST_CASE("a bundle gives back what was put into it") {
  const TempFolder folder;
  const fs::path file = folder / "h200.bundle";
  write_sample(file);
  CHECK(mode_of(file) == 0644);
  CHECK(named(folder.path(), "").size() == 1);

  const auto bundle = Bundle::open(file);
  REQUIRE(bundle.has_value());
  CHECK(bundle->info() == kInfo);
  const Store& store = bundle->store();
  CHECK(store.gives_cubins());
  CHECK_FALSE(store.writable());
  const auto known = store.known_winner(problem_key(sample_problem(4097)), kDevice);
  REQUIRE(known.has_value());
  REQUIRE(known->has_value());
  CHECK((*known)->config == "mma:block_m=1");
  CHECK(store.known_winners("gemm")->size() == 2);
  CHECK(store.winners("gemm", kDevice)->size() == 2);
  const auto cubin = store.cubin(sample_cubin_key(0));
  REQUIRE(cubin.has_value());
  REQUIRE(cubin->has_value());
  CHECK((*cubin)->image == sample_cubin(0).image);
}

TEST_CASE("nothing can be written to an opened bundle") {
  const TempFolder folder;
  write_sample(folder / "b");
  const std::string before = bytes_of(folder / "b");
  auto bundle = Bundle::open(folder / "b");
  REQUIRE(bundle.has_value());
  WinnerRecord winner;
  winner.trial = sample_trial(5, 64);
  CHECK_FALSE(bundle->store().crown(winner).has_value());
  CHECK_FALSE(bundle->store().put_cubin(sample_cubin_key(9), sample_cubin(9)).has_value());
  CHECK(bytes_of(folder / "b") == before);
}

TEST_CASE("a bundle with any bit flipped or its end missing is refused") {
  const TempFolder folder;
  const fs::path file = folder / "b";
  write_sample(file);
  const std::string sound = bytes_of(file);
  for (std::size_t at = 0; at < sound.size(); at += at < 200 ? 1 : 997) {
    std::string flipped = sound;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    write_bytes(file, flipped);
    INFO("byte " << at);
    const ErrorCode code = refusal(file);
    CHECK((code == ErrorCode::corrupt_file || code == ErrorCode::foreign_file));
  }
  for (std::size_t kept : {std::size_t{0}, std::size_t{10}, std::size_t{40}, std::size_t{83},
                           sound.size() / 2, sound.size() - 1}) {
    write_bytes(file, sound.substr(0, kept));
    INFO(kept << " bytes");
    const ErrorCode code = refusal(file);
    CHECK((code == ErrorCode::corrupt_file || code == ErrorCode::foreign_file));
  }
  write_bytes(file, sound + "x");
  CHECK(refusal(file) == ErrorCode::corrupt_file);
  write_bytes(file, sound);
  CHECK(Bundle::open(file).has_value());
}

TEST_CASE("what is no bundle is said to be none") {
  const TempFolder folder;
  CHECK(refusal(folder / "missing") == ErrorCode::io_failed);
  CHECK(refusal(folder.path()) == ErrorCode::foreign_file);
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(refusal(folder / "pipe") == ErrorCode::foreign_file);
  write_bytes(folder / "letter", "Dear Sir or Madam");
  CHECK(refusal(folder / "letter") == ErrorCode::foreign_file);
  REQUIRE(Store::open(folder / "cache.db", Access::read_write).has_value());
  CHECK(refusal(folder / "cache.db") == ErrorCode::foreign_file);
  write_bytes(folder / "newer", "autotune bundle 999\n" + std::string(64, '0') + "\nx");
  CHECK(refusal(folder / "newer") == ErrorCode::foreign_file);
}

TEST_CASE("a bundle takes the place of a bundle or of an empty file") {
  const TempFolder folder;
  write_sample(folder / "b");
  CHECK(Bundle::check_place(folder / "b").has_value());
  write_bytes(folder / "b", "autotune bundle 999\n damaged");
  CHECK(Bundle::check_place(folder / "b").has_value());
  CHECK(Bundle::check_place(folder / "missing").has_value());
  write_bytes(folder / "b", "");
  CHECK(Bundle::check_place(folder / "b").has_value());

  write_bytes(folder / "b", "x");
  CHECK(Bundle::check_place(folder / "b").error().code == ErrorCode::bad_input);
  write_bytes(folder / "b", "a letter that is longer than a bundle's mark");
  CHECK_FALSE(Bundle::check_place(folder / "b").has_value());
  CHECK_FALSE(Bundle::check_place(folder.path()).has_value());
  CHECK_FALSE(Bundle::check_place("/dev/null").has_value());
}

TEST_CASE("an image that is no database, or one of something else, is damaged") {
  const TempFolder folder;
  const auto database = [&](const char* name, const char* sql) {
    sqlite3* db = nullptr;
    REQUIRE(sqlite3_open((folder / name).c_str(), &db) == SQLITE_OK);
    REQUIRE(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(db);
    return bytes_of(folder / name);
  };
  REQUIRE(Store::open(folder / "cache.db", Access::read_write));
  const auto refusal = [](const std::string& image) {
    const auto bundle = Bundle::of_image(image, "some.bundle");
    REQUIRE_FALSE(bundle.has_value());
    CHECK(bundle.error().code == ErrorCode::corrupt_file);
    return bundle.error().message;
  };
  CHECK(refusal("x") != "");
  CHECK(refusal(std::string(4096, 'S')) != "");
  const std::string wrong_tables = "its tables are not those of a bundle";
  CHECK(refusal(database("diary", "CREATE TABLE diary (day)")).find(wrong_tables) !=
        std::string::npos);
  CHECK(refusal(database("empty", "CREATE TABLE day (day); DROP TABLE day")).find(wrong_tables) !=
        std::string::npos);
  // A cache has the tables, and no word of what it would be a bundle of.
  CHECK(refusal(bytes_of(folder / "cache.db")).find("no such table: bundle") != std::string::npos);
}

TEST_CASE("a bundle that cannot be written leaves nothing behind") {
  const TempFolder folder;
  const auto bundle = Bundle::create(kInfo);
  REQUIRE(bundle.has_value());
  CHECK(bundle->write(folder / "no" / "b").error().code == ErrorCode::io_failed);
  fs::create_directory(folder / "taken");
  CHECK(bundle->write(folder / "taken").error().code == ErrorCode::io_failed);
  CHECK(named(folder.path(), "").size() == 1);
}

TEST_CASE("a bundle is published as a whole over an older one") {
  const TempFolder folder;
  write_sample(folder / "b");
  const auto old = Bundle::open(folder / "b");
  BundleInfo info = kInfo;
  info.suite = "thin";
  const auto made = Bundle::create(info);
  REQUIRE(made.has_value());
  fs::create_symlink("b", folder / "link");
  REQUIRE(made->write(folder / "link").has_value());
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(Bundle::open(folder / "b")->info().suite == "thin");
  // What was opened before is not touched by it.
  CHECK(old->store().known_winners("gemm")->size() == 2);
}
