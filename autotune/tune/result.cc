// The end of a session: finalists, winner, crown.
#include <fmt/format.h>

#include "autotune/tune/session.h"
#include "kernels/problem.h"

namespace autotune::tune {

Error Session::nothing_worked() const {
  std::string counts;
  for (const auto& [outcome, count] : result_.outcomes) {
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, outcome);
  }
  return {ErrorCode::failed,
          fmt::format("no config of {} worked on {}: {}; the first was {}", describe(plan_.problem),
                      tools_.device.name, counts, first_failure_)};
}

bool Session::out_of_time() const {
  const double budget = tools_.options.budget_seconds;
  return tools_.stop || (budget > 0 && elapsed_s() > budget);
}

Expected<std::optional<worker::CompareReply>> Session::look(const std::vector<const Trial*>& trials,
                                                            Look look) {
  const std::optional<worker::CompareReply> none;
  if (out_of_time()) return none;
  worker::CompareRequest request = look_request(plan_.problem, tools_.options, look);
  request.id = ++looks_;
  for (const Trial* trial : trials) {
    auto entrant = code_.entrant(trial->config, plan_.problem, [this] { return out_of_time(); });
    if (!entrant) {
      if (entrant.error().code == ErrorCode::cancelled) return none;
      return tl::unexpected(entrant.error());
    }
    if (entrant->failed) return none;
    request.contenders.push_back(std::move(entrant->contender));
  }
  auto reply = tools_.measurer.compare(request);
  if (!reply) return tl::unexpected(reply.error());
  return std::optional(std::move(*reply));
}

Expected<TuneResult> Session::conclude() {
  code_.forget();
  tools_.measurer.cancel();
  compiling_.clear();
  if (good_.empty()) {
    if (tools_.stop) return fail(ErrorCode::cancelled, "stopped before any config was measured");
    return tl::unexpected(nothing_worked());
  }
  const auto standing = settle(
      good_, plan_.problem.mode, default_good_, former_good_,
      [this](const std::vector<const Trial*>& trials, Look how) { return look(trials, how); });
  if (!standing) return tl::unexpected(standing.error());
  ensure_run();
  for (const std::size_t i : standing->timed_again) ledger_.record(good_[i], good_hashes_[i]);

  const std::string& hash = good_hashes_[standing->winner];
  result_.problem = plan_.problem;
  result_.winner = good_[standing->winner];
  result_.match = "exact";
  if (default_good_) {
    result_.default_trial = good_[*default_good_];
    result_.default_us = result_.default_trial->measurement.median_us;
  }
  for (const std::size_t i : standing->leaders) result_.finalists.push_back(good_[i]);
  result_.lead_percent = standing->lead_percent;
  result_.tie = standing->tie;
  result_.cancelled = tools_.stop;
  result_.compiled = code_.compiled();
  result_.seconds = elapsed_s();
  // A program that asks for the winner needs no compiler then.
  code_.save(hash);
  if (tools_.options.whole_space()) result_.crowned = ledger_.crown(result_, hash);
  ledger_.end(plan_.rejected);
  while (!code_.saved() && !out_of_time()) code_.save(1);
  return result_;
}

}  // namespace autotune::tune
