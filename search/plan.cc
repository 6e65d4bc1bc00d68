#include "search/plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <numeric>
#include <tuple>

#include "search/funnel.h"
#include "search/request.h"

namespace autotune::search {
namespace {

CodeModel model_of(const Request& request, const CheckedCode& code) {
  const Work work = code.config.kernel->work(code.config, request.problem, *request.device);
  return {work, request.problem, *request.device, code.resources, request.limits->max_sms};
}

// A survivor before it is ranked: a code in one of its orders.
struct Entry {
  double us;
  std::uint32_t code;
  std::uint32_t order;
};

// Stable; times are positive, so their bits are in the same order as they are.
void sort_by_time(std::vector<Entry>& entries) {
  constexpr int kDigitBits = 11;
  constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
  std::vector<Entry> sorted(entries.size());
  for (int shift = 0; shift < 64; shift += kDigitBits) {
    const auto digit = [shift](const Entry& entry) {
      return std::bit_cast<std::uint64_t>(entry.us) >> shift & (kDigits - 1);
    };
    std::array<std::size_t, kDigits> next{};
    for (const Entry& entry : entries) ++next[digit(entry)];
    if (entries.empty() || next[digit(entries.front())] == entries.size()) continue;  // all alike
    std::exclusive_scan(next.begin(), next.end(), next.begin(), std::size_t{0});
    for (const Entry& entry : entries) sorted[next[digit(entry)]++] = entry;
    entries.swap(sorted);
  }
}

class Ranking {
 public:
  explicit Ranking(const Request& request) : request_(request) {}

  void add(const CheckedCode& code) {
    const HostTwin& kernel = *code.config.kernel;
    CodeModel model = model_of(request_, code);
    const auto index = static_cast<std::uint32_t>(codes_.size());
    const std::size_t begin = entries_.size();
    launches_.clear();
    for (const std::size_t order : code.allowed) launches_.push_back((*code.orders)[order]);
    kernel.canonical(code.config, request_.problem, launches_);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < code.allowed.size(); ++i) {
      const std::size_t order = code.allowed[i];
      const Entry entry{model.us((*code.orders)[order]), index, static_cast<std::uint32_t>(order)};
      const auto end = launches_.begin() + static_cast<std::ptrdiff_t>(kept);
      const auto same = std::find(launches_.begin(), end, launches_[i]);
      if (same == end) {
        launches_[kept++] = launches_[i];
        entries_.push_back(entry);
        continue;
      }
      ++same_launches_;
      Entry& first = entries_[begin + static_cast<std::size_t>(same - launches_.begin())];
      if (entry.us < first.us) first = entry;
    }
    std::sort(entries_.begin() + static_cast<std::ptrdiff_t>(begin), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.order < b.order; });
    codes_.push_back({{code.config, code.resources, 0}, code.orders, begin, entries_.size()});
  }

  bool empty() const { return codes_.empty(); }
  // Survivors that came to the same launch as one that is placed before them.
  std::int64_t same_launches() const { return same_launches_; }

  // Fastest first. What ranks_before looks at besides the time is a matter of the code, then of the
  // order, so that a stable sort by time alone does the rest.
  std::vector<Candidate> ranked() const {
    std::vector<std::uint32_t> by_needs(codes_.size());
    std::iota(by_needs.begin(), by_needs.end(), 0u);
    std::sort(by_needs.begin(), by_needs.end(), [&](std::uint32_t a, std::uint32_t b) {
      return ranks_before(codes_[a].candidate, codes_[b].candidate);
    });
    std::vector<Entry> entries;
    entries.reserve(entries_.size());
    for (const std::uint32_t code : by_needs) {
      for (std::size_t i = codes_[code].begin; i < codes_[code].end; ++i) {
        entries.push_back(entries_[i]);
      }
    }
    sort_by_time(entries);
    std::vector<Candidate> survivors;
    survivors.reserve(entries.size());
    for (const Entry& entry : entries) {
      const Code& code = codes_[entry.code];
      survivors.push_back(code.candidate);
      code.orders->put(entry.order, survivors.back().config);
      survivors.back().predicted_us = entry.us;
    }
    return survivors;
  }

 private:
  struct Code {
    Candidate candidate;  // in one of its orders, without a prediction
    std::shared_ptr<const TileOrders> orders;
    std::size_t begin;  // of its entries
    std::size_t end;
  };

  const Request& request_;
  std::vector<Code> codes_;
  std::vector<Entry> entries_;
  std::int64_t same_launches_ = 0;
  std::vector<TileOrder> launches_;  // of the code at hand, as its entries
};

}  // namespace

bool ranks_before(const Candidate& a, const Candidate& b) {
  if (a.predicted_us != b.predicted_us) return a.predicted_us < b.predicted_us;
  const auto needs = [](const Resources& r) {
    return std::tuple(r.smem_bytes, r.threads * r.registers, r.threads, r.workspace_bytes);
  };
  const auto needs_a = needs(a.resources);
  const auto needs_b = needs(b.resources);
  if (needs_a != needs_b) return needs_a < needs_b;
  if (a.config.kernel != b.config.kernel) {
    return a.config.kernel->name() < b.config.kernel->name();
  }
  return a.config.values < b.config.values;
}

bool same_launch(const Config& a, const Config& b, const Problem& problem) {
  const HostTwin& kernel = *a.kernel;
  if (b.kernel != &kernel || code_of(a) != code_of(b)) return false;
  std::array<TileOrder, 2> orders{kernel.tile_order(a), kernel.tile_order(b)};
  kernel.canonical(a, problem, orders);
  return orders[0] == orders[1];
}

Expected<Plan> make_plan(const Request& request, Plan* counted) {
  Plan plan;
  plan.problem = request.problem;
  Funnel funnel;
  Ranking ranking(request);
  plan.unsupported = for_each_checked(request, [&](const CheckedCode& code) {
    funnel.generate(code.configs);
    if (code.verdict) {
      funnel.reject(code.config, *code.verdict, code.configs);
    } else {
      ranking.add(code);
    }
  });
  plan.generated = funnel.generated();
  plan.rejected = funnel.rejected();
  if (ranking.empty()) {
    if (counted != nullptr) *counted = plan;
    return tl::unexpected(funnel.nothing_fits(request, plan.unsupported));
  }
  plan.survivors = ranking.ranked();
  const std::int64_t same = ranking.same_launches();
  if (same > 0) plan.rejected["same_launch"] = same;
  return plan;
}

Expected<Candidate> default_candidate(const Request& request) {
  std::optional<Candidate> best;
  const auto visit = [&](const CheckedCode& code) {
    if (code.verdict) return;
    CodeModel model = model_of(request, code);
    if (best && model.least_us() > best->predicted_us) return;
    for (const std::size_t order : code.allowed) {
      const double us = model.us((*code.orders)[order]);
      if (best && us > best->predicted_us) continue;
      const Candidate candidate{code.orders->at(code.config, order), code.resources, us};
      if (!best || ranks_before(candidate, *best)) best = candidate;
    }
  };
  for_each_checked(request, visit, Wanted::survivors);
  if (best) return *best;
  // Only a whole plan can tell why.
  return make_plan(request).map([](const Plan& plan) { return plan.default_config(); });
}

Expected<Plan> make_plan(const Problem& problem, const DeviceSpec& device, const Space& space,
                         const Limits& limits, Plan* counted) {
  const auto request = make_request(problem, device, space, limits);
  if (!request) return tl::unexpected(request.error());
  return make_plan(*request, counted);
}

Expected<Candidate> default_candidate(const Problem& problem, const DeviceSpec& device,
                                      const Space& space, const Limits& limits) {
  const auto request = make_request(problem, device, space, limits);
  if (!request) return tl::unexpected(request.error());
  return default_candidate(*request);
}

}  // namespace autotune::search
