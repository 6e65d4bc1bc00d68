// What tests of the cache share: a private folder, sample records, and child processes that report
// back in words.
#pragma once

#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "cache/store.h"
#include "kernels/problem.h"
#include "test/support/temp_folder.h"

namespace autotune::cache::testing {

namespace fs = std::filesystem;

using test::TempFolder;

inline constexpr const char* kDevice = "NVIDIA H200 cc=90 sms=132 smem=232448 memory=160GiB";

inline Problem sample_problem(std::int64_t m = 4096) {
  Problem problem;
  problem.m = m;
  problem.n = 1524;
  problem.k = 512;
  return *checked(problem);
}

// A trial of config number `i` that took 100 + i microseconds.
inline TrialRecord sample_trial(int i, std::int64_t m = 4096) {
  TrialRecord trial;
  trial.problem = sample_problem(m);
  trial.key = {problem_key(trial.problem), kDevice, fmt::format("mma:block_m={}", i), "5eed",
               "nvrtc 13.0"};
  trial.predicted.threads = 128;
  trial.measurement.median_us = 100.0 + i;
  trial.measurement.samples = 7;
  return trial;
}

inline CubinKey sample_cubin_key(int i) {
  return {fmt::format("source{}", i), "sm_90a", "nvrtc 13.0"};
}

inline CubinRecord sample_cubin(int i, std::size_t bytes = 20000) {
  CubinRecord cubin;
  cubin.image.assign(bytes, static_cast<char>('a' + i % 26));
  cubin.image += fmt::format("end of cubin {}", i);
  cubin.actual.registers = 100 + i;
  return cubin;
}

// Runs `work` in a child process and gives back what it returned: empty when all was well.
template <class Work>
std::string in_child(const Work& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child < 0) return "no fork";
  if (child == 0) {
    close(ends[0]);
    const std::string said = work();
    const bool written = write(ends[1], said.data(), said.size()) == std::ssize(said);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, n);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) said += " (the child died)";
  return said;
}

inline constexpr uid_t kNobody = 65534;

// Root may do anything whatever the modes say: become another. True for an ordinary user already.
inline bool become_ordinary_user(uid_t user = kNobody) {
  if (geteuid() != 0) return true;
  return setgroups(0, nullptr) == 0 && setgid(user) == 0 && setuid(user) == 0;
}

inline mode_t mode_of(const fs::path& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

// Names in a folder that start with `prefix`.
inline std::vector<fs::path> named(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().rfind(prefix, 0) == 0) found.push_back(entry.path());
  }
  return found;
}

}  // namespace autotune::cache::testing
