// What export writes is what the loader and the embedding read.
#include "autotune/io/tuned_text.h"

#include <algorithm>
#include <fstream>

#include "autotune/io/configs_folder.h"
#include "autotune/io/table_writer.h"
#include "kernels/problem.h"
#include "support.h"
#include "test/support/temp_folder.h"

namespace autotune::io {
namespace {

// One of each kind: every dtype, layout and mode, every field that is not at its default.
TunedFile sample_file() {
  TunedFile file{"NVIDIA H200", {}};
  const auto add = [&](Problem problem, const std::string& config, double us) {
    const auto whole = checked(problem);
    REQUIRE(whole);
    const auto parsed = parse_config(config, *find_family(problem.family));
    REQUIRE(parsed);
    file.entries.push_back({*whole, to_string(*parsed), us});
  };
  std::int64_t m = 64;
  for (const DType dtype : {DType::bf16, DType::fp16, DType::tf32, DType::fp32}) {
    for (const Layout layout : {Layout::tn, Layout::tt, Layout::nn, Layout::nt}) {
      Problem problem;
      problem.m = m++;
      problem.n = 2147483647;
      problem.k = 1;
      problem.dtype = dtype;
      problem.out_dtype = default_out_dtype(dtype);
      problem.layout = layout;
      add(problem, "mma:block_m=128", 12.345678901234567);
    }
  }
  Problem odd;
  odd.m = odd.n = odd.k = 100;
  odd.out_dtype = DType::fp32;
  odd.lda = 104;
  odd.ldb = 107;
  odd.ldc = 2147483647;
  odd.alpha = -0.1;
  odd.beta = 1e-30;
  odd.mode = TimingMode::hot;
  add(odd, "mma:stages=3", 1e-3);
  odd.alpha = 1e30;
  odd.beta = 0;
  add(odd, "simt", 1e12);
  odd.dtype = DType::fp32;
  odd.exact_fp32 = true;
  add(odd, "simt", 1e12);
  odd.family = "geglu";
  odd.alpha = 1;
  odd.activation = Activation::gelu_erf;
  add(odd, "simt", 1e12);
  odd.family = "geglu_mlp";
  odd.n = 90;
  add(odd, "simt:block_m=64 + simt:block_m=128", 2.5);
  return file;
}

TEST_CASE("an exported file reads back as it was") {
  const TunedFile file = sample_file();
  const auto back = parse_tuned(tuned_text(file), "back.yaml");
  INFO(message_of(back));
  REQUIRE(back);
  CHECK(back->device == file.device);
  REQUIRE(back->entries.size() == file.entries.size());
  for (const TunedEntry& entry : file.entries) {
    const auto same = [&](const TunedEntry& other) {
      return other.problem == entry.problem && other.config == entry.config &&
             other.median_us == entry.median_us;
    };
    INFO(describe(entry.problem));
    CHECK(std::count_if(back->entries.begin(), back->entries.end(), same) == 1);
  }
  // Written once more it is the same text, whatever the order was.
  TunedFile reversed = *back;
  std::reverse(reversed.entries.begin(), reversed.entries.end());
  CHECK(tuned_text(reversed) == tuned_text(file));
}

TEST_CASE("an MLP's winner is written with the names of its dimensions and both configs") {
  const std::string text = tuned_text(sample_file());
  CHECK_THAT(text, HasText("{family: geglu_mlp, tokens: 100, intermediate: 90, hidden: 100, "));
  CHECK_THAT(text, HasText(" + simt:block_m=128,"));
}

TEST_CASE("a device's name may hold what YAML reads as more than text") {
  for (const char* name : {"a: b # c", "- x", "quo\"te", "back\\slash", "{}", "'", "true", "bell\a",
                           "two\nlines", "\t", "del\x7f", " spaces ", "\xc3\xbc"}) {
    TunedFile file = sample_file();
    file.device = name;
    const auto back = parse_tuned(tuned_text(file), "back.yaml");
    INFO(name << ": " << message_of(back));
    REQUIRE(back);
    CHECK(back->device == name);
  }
}

TEST_CASE("the embedding takes an exported file") {
  const test::TempFolder folder;
  for (const char* part : {"gpus", "spaces", "suites"}) {
    std::filesystem::copy(source_dir() / "configs" / part, folder / part);
  }
  std::filesystem::create_directory(folder / "tuned");
  const TunedFile file = sample_file();
  std::ofstream(folder / "tuned/nvidia-h200.yaml") << tuned_text(file);
  const auto configs = load_configs(folder.path());
  INFO(message_of(configs));
  REQUIRE(configs);
  REQUIRE(configs->tuned.size() == 1);
  CHECK(configs->tuned.front().entries.size() == file.entries.size());
  const std::string tables = tables_source(*configs);
  for (const TunedEntry& entry : file.entries) {
    CHECK(tables.find("row.config = \"" + entry.config + "\"") != std::string::npos);
  }
}

}  // namespace
}  // namespace autotune::io
