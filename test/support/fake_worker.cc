// A worker for tests: speaks the protocol, needs no compiler and no GPU, and misbehaves on request.
//
// Misbehaviour is asked for by "@word" in the source text or config of a request, or by
// AUTOTUNE_FAKE_RULES="needle=>word|needle=>word", whose needles are looked for in the definitions
// ("NAME=value" lines) or the config. AUTOTUNE_FAKE_HELLO replaces the greeting, AUTOTUNE_FAKE_LOG
// names a file to which it appends what it does, AUTOTUNE_FAKE_CLOCKS=hotter lets times grow from
// one measurement to the next.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "autotune/worker/channel.h"
#include "autotune/worker/limits.h"
#include "autotune/worker/messages.h"
#include "test/support/fake_time.h"

namespace autotune::worker {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

void note(const std::string& line) {
  const std::string path = variable("AUTOTUNE_FAKE_LOG");
  if (path.empty()) return;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string text = line + "\n";
  if (fd < 0 || write(fd, text.data(), text.size()) < 0) std::abort();
  close(fd);
}

// The word that asks for misbehaviour in this text, or empty.
std::string asked(const std::string& text) {
  const auto is_word = [&](std::size_t at) {
    return at + 1 < text.size() && text[at + 1] >= 'a' && text[at + 1] <= 'z';
  };
  auto at = text.find('@');
  while (at != std::string::npos && !is_word(at)) at = text.find('@', at + 1);
  if (at != std::string::npos) {
    const auto end = text.find_first_of(" \n,", at);
    return text.substr(at + 1, end == std::string::npos ? end : end - at - 1);
  }
  std::string rest = variable("AUTOTUNE_FAKE_RULES");
  while (!rest.empty()) {
    const auto bar = std::min(rest.find('|'), rest.size());
    const std::string rule = rest.substr(0, bar);
    const auto arrow = rule.find("=>");
    if (arrow != std::string::npos && text.find(rule.substr(0, arrow)) != std::string::npos) {
      return rule.substr(arrow + 2);
    }
    rest.erase(0, bar + 1);
  }
  return {};
}

[[noreturn]] void sleep_forever() {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

[[noreturn]] void eat_memory() {
  std::vector<std::vector<char>> eaten;
  while (true) eaten.emplace_back(std::size_t{16} << 20, 'x');
}

// Does what ends a worker; returns for every other word.
void misbehave(const std::string& word) {
  if (word == "abort") {
    std::cerr << "last words before the abort\n";
    std::abort();
  }
  if (word == "kill") kill(getpid(), SIGKILL);
  if (word == "exit") _exit(7);
  if (word == "hang") sleep_forever();
  if (word == "eat") eat_memory();
  if (word == "garbage") {
    write_message(kWorkerFd, "not a message");
    sleep_forever();
  }
  if (word == "huge") {
    if (write(kWorkerFd, "\xff\xff\xff\xff", 4) != 4) std::abort();
    sleep_forever();
  }
  if (word == "half") {
    if (write(kWorkerFd, "\x10\0\0\0half", 8) != 8) std::abort();
    sleep_forever();
  }
  if (word == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

bool say(const std::string& bytes) { return write_message(kWorkerFd, bytes).has_value(); }

std::string text_of(const std::vector<Definition>& definitions) {
  std::string text;
  for (const auto& [name, value] : definitions) text += name + "=" + value + "\n";
  return text;
}

CompileReply compile(const CompileRequest& request) {
  const std::string definitions = text_of(request.definitions);
  std::string word = asked(request.source);
  if (word.empty()) word = asked(definitions);
  note("compile " + std::to_string(request.id));
  misbehave(word);
  CompileReply reply;
  reply.id = word == "wrong_id" ? request.id + 1 : request.id;
  reply.seconds = 0.01;
  reply.cubin = "cubin of " + request.entry + " " + request.arch + "\n" + definitions;
  reply.actual.registers = 100;
  int parts = 1;
  int parts_of_cluster = 1;
  bool consumers_meet = false;  // where they store through a stage
  for (const auto& [name, value] : request.definitions) {
    if (name == "THREADS") reply.actual.max_threads = std::atoi(value.c_str());
    if (name == "SPLIT_K") parts = std::atoi(value.c_str());
    if (name == "SPLIT_PARTS") parts_of_cluster = std::atoi(value.c_str());
    if (name == "STORES_IN_RING") consumers_meet = value == "1";
    if (name == "CLUSTER_M" || name == "CLUSTER_N")
      reply.actual.cluster *= std::atoi(value.c_str());
  }
  // As the GEMM kernels have them.
  reply.actual.cluster *= parts_of_cluster;
  const bool in_cluster = reply.actual.cluster > 1 && parts == parts_of_cluster;
  reply.actual.barriers = in_cluster && !consumers_meet ? 0 : 1;
  if (reply.actual.max_threads > 512) reply.actual.registers = 64;  // 1024 x 64 fill an SM
  if (word == "fail") {
    reply.outcome = Outcome::compile_failed;
    reply.cubin.clear();
    reply.log = "error: as asked";
  }
  if (word == "spill") reply.actual.spill_store_bytes = 8;
  if (word == "serialise") reply.actual.serialised = true;
  if (word == "narrow") reply.actual.max_threads /= 2;
  if (word == "greedy") reply.actual.registers = 4096;
  return reply;
}

MeasureReply measure(const MeasureRequest& request) {
  const std::string word = asked(request.config);
  note("behind " + std::to_string(request.options.behind_us));
  note("measure " + request.config);
  misbehave(word);
  MeasureReply reply;
  reply.id = word == "wrong_id" ? request.id + 1 : request.id;
  if (word == "fault") reply.outcome = Outcome::faulted;
  if (word == "wrong") reply.outcome = Outcome::wrong_result;
  if (word == "refuse") {
    reply.outcome = Outcome::launch_failed;
    reply.verdict = Verdict{Rule::shared_memory, 300000, 232448};
  }
  if (reply.outcome != Outcome::ok) {
    reply.log = "as asked";
    return reply;
  }
  // The clocks of "hotter" sink from one measurement to the next; those of "untold" only the first
  // measurement tells of.
  static double slower = 1;
  static bool told = false;
  reply.measurement.median_us = slower * test::fake_time_us(request.config);
  const bool tells = variable("AUTOTUNE_FAKE_CLOCKS") != "untold" || !std::exchange(told, true);
  if (tells && !request.reference.empty()) {  // at one place of the operands, where all take longer
    reply.reference_us = 1.03 * slower * test::fake_time_us(request.reference);
  }
  if (variable("AUTOTUNE_FAKE_CLOCKS") == "hotter") slower *= 1.01;
  reply.measurement.relative_error = 0.003;
  reply.measurement.samples = 11;
  reply.measurement.raced =
      request.options.behind_us > 0 && reply.measurement.median_us > 2 * request.options.behind_us;
  return reply;
}

// "gated" or "plain" as it was compiled; "none" where there is none.
std::string what_is(const std::string& cubin) {
  if (cubin.empty()) return "none";
  return cubin.find("\nGATED=1\n") != std::string::npos ? "gated" : "plain";
}

CompareReply compare(const CompareRequest& request) {
  std::string who = "compare";
  CompareReply reply;
  reply.id = request.id;
  for (const Contender& contender : request.contenders) {
    who += ' ' + contender.config;
    note("code " + what_is(contender.cubin) + ' ' + what_is(contender.second_cubin));
    reply.sides.emplace_back().measurement.median_us = test::fake_time_us(contender.config);
  }
  note(who + (request.baseline ? " baseline" : ""));
  note("rounds " + std::to_string(request.rounds));
  for (const Contender& contender : request.contenders) misbehave(asked(contender.config));
  if (request.baseline) {
    reply.baseline = "cublasLt #3";
    reply.baseline_candidates = 64;
    reply.sides.emplace_back().measurement.median_us = 100;
  }
  for (Side& side : reply.sides) {
    side.measurement.samples = request.rounds;
    side.ratio = side.measurement.median_us / reply.sides.front().measurement.median_us;
    side.ratio_lo = side.ratio - 1e-9;
    side.ratio_hi = side.ratio + 1e-9;
  }
  return reply;
}

Hello greeting(bool compiles) {
  Hello hello;
  hello.what = compiles ? "nvrtc 99.0" : "99.0";
  const std::string word = variable("AUTOTUNE_FAKE_HELLO");
  if (word == "die") _exit(9);
  if (word == "no_compiler" && compiles) {
    hello = {false, "", ErrorCode::no_compiler, "libnvrtc is not here; install it"};
  }
  if (word == "no_gpu" && !compiles) {
    hello = {false, "", ErrorCode::no_gpu, "GPU 0 is not here"};
  }
  return hello;
}

int serve(bool compiles) {
  end_with_channel(kWorkerFd);
  note("pid " + std::to_string(getpid()));
  if (!say(encode(greeting(compiles)))) return 1;
  if (variable("AUTOTUNE_FAKE_HELLO") == "then_die") _exit(9);
  while (true) {
    const auto bytes = read_message(kWorkerFd);
    if (!bytes) return closed(bytes.error()) ? 0 : 1;
    bool said = false;
    if (const auto request = decode_compile_request(*bytes); request && compiles) {
      said = say(encode(compile(*request)));
    } else if (const auto request = decode_measure_request(*bytes); request && !compiles) {
      const MeasureReply reply = measure(*request);
      said = say(encode(reply));
      if (reply.outcome == Outcome::faulted) return 1;
    } else if (const auto request = decode_compare_request(*bytes); request && !compiles) {
      said = say(encode(compare(*request)));
    }
    if (!said) return 1;
  }
}

}  // namespace
}  // namespace autotune::worker

int main(int argc, char** argv) {
  const std::string_view role = argc > 2 ? argv[2] : "";
  if (role == "compile") return autotune::worker::serve(true);
  if (role == "measure" && argc == 5) return autotune::worker::serve(false);
  return 2;
}
