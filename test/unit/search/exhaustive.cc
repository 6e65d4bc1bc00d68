// A plan looks at codes, not at configs, and the default config at bounds: both must come out as if
// every config had been looked at by itself.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "real_plans.h"
#include "search/check.h"
#include "search/request.h"

namespace autotune::search {
namespace {

// Every n-th value of each parameter, so that a test can afford to look at each config.
Space thinned(std::string_view family, std::size_t n) {
  Space space = *io::default_space(family);
  for (KernelSpace& kernel : space.kernels) {
    for (ParameterRange& range : kernel.parameters) {
      std::vector<std::int32_t> kept;
      for (std::size_t i = 0; i < range.values.size(); ++i) {
        if (i % n == 0 || range.values.size() < 6) kept.push_back(range.values[i]);
      }
      range.values = std::move(kept);
    }
  }
  return space;
}

struct Looked {
  std::int64_t generated = 0;
  std::map<std::string, std::int64_t> rejected;
  std::vector<Candidate> survivors;
};

std::string rule_of(const Verdict& verdict, const HostTwin& kernel) {
  if (verdict.rule != Rule::structure) return std::string(to_string(verdict.rule));
  const auto index = static_cast<std::size_t>(verdict.constraint);
  return "structure:" + std::string(kernel.constraints()[index].name);
}

Looked look_at_each(const Problem& problem, const DeviceSpec& device, const Space& space,
                    const Limits& limits) {
  Looked looked;
  const KernelTraits traits = traits_of(problem);
  std::vector<Candidate> all;
  for (const HostTwin* kernel : find_family(problem.family)->kernels) {
    if (!kernel->unsupported(traits, device).empty()) continue;
    const std::int64_t most_rows = kernel->most_rows(traits);
    if (most_rows > 0 && problem.m > most_rows) continue;
    if (problem.k < kernel->least_k(traits)) continue;
    for (const KernelSpace& kernel_space : space.kernels) {
      if (kernel_space.kernel != kernel->name()) continue;
      for (std::int64_t i = 0; i < size_of(kernel_space); ++i) {
        const Config config = config_at(*kernel, kernel_space, i);
        ++looked.generated;
        Resources resources;
        const auto verdict = check(config, problem, traits, device, limits, &resources);
        if (verdict) {
          ++looked.rejected[rule_of(*verdict, *kernel)];
        } else {
          all.push_back(
              {config, resources, predict_us(config, problem, device, resources, limits.max_sms)});
        }
      }
    }
  }
  std::sort(all.begin(), all.end(), ranks_before);
  std::unordered_map<Config, std::vector<Config>, ConfigHash> of_code;
  for (const Candidate& candidate : all) {
    std::vector<Config>& kept = of_code[code_of(candidate.config)];
    const bool seen = std::any_of(kept.begin(), kept.end(), [&](const Config& other) {
      return same_launch(other, candidate.config, problem);
    });
    if (seen) {
      ++looked.rejected["same_launch"];
      continue;
    }
    kept.push_back(candidate.config);
    looked.survivors.push_back(candidate);
  }
  return looked;
}

Problem geglu(std::int64_t m, std::int64_t n, std::int64_t k) {
  Problem problem = gemm(m, n, k);
  problem.family = "geglu";
  return problem;
}

Problem gemm_in(Layout layout, std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
  Problem problem = gemm(m, n, k, dtype);
  problem.layout = layout;
  problem.lda = problem.ldb = problem.ldc = 0;
  return checked(problem).value();
}

}  // namespace

TEST_CASE("a plan counts and ranks as if every config were looked at by itself", "[long]") {
  const Space plain = thinned("gemm", 3);
  const Space gated = thinned("geglu", 3);
  Limits capped;
  capped.max_smem = 100000;
  capped.max_sms = 100;
  Limits excluding;
  for (const char* text : {"*:raster=1,swizzle=4", "mma:stages=2", "wgmma:swizzle=1,cluster_m=1"}) {
    excluding.excludes.push_back(parse_pattern(text, *find_family("gemm")).value());
  }
  Problem hot = gemm(1024, 1024, 1024);
  hot.mode = TimingMode::hot;
  const std::vector<std::pair<Problem, Limits>> cases = {
      {gemm(4096, 4096, 4096), {}},
      {gemm(1000, 1524, 4096), excluding},
      {gemm_in(Layout::nt, 65, 8192, 8192, DType::bf16), capped},
      {gemm(16, 11008, 4096, DType::tf32), {}},
      {gemm(100, 1524, 512, DType::fp32), excluding},
      {gemm(1, 1, 1), {}},
      {gemm(100, 512, 1523), {}},
      {hot, {}},
      {geglu(1000, 1524, 4096), {}},
      {geglu(16, 11008, 4096), capped}};
  for (const std::string_view name :
       {"nvidia-h200", "nvidia-h100-80gb-hbm3", "nvidia-geforce-rtx-3090"}) {
    const DeviceSpec& device = device_named(name);
    for (const auto& [problem, limits] : cases) {
      INFO(name << " " << describe(problem));
      const Space& space = problem.family == "geglu" ? gated : plain;
      const Looked looked = look_at_each(problem, device, space, limits);
      const auto plan = make_plan(problem, device, space, limits);
      REQUIRE(plan);
      CHECK(plan->generated == looked.generated);
      CHECK(plan->rejected == looked.rejected);
      REQUIRE(plan->survivors.size() == looked.survivors.size());
      bool same = true;
      for (std::size_t i = 0; i < looked.survivors.size(); ++i) {
        const Candidate& a = plan->survivors[i];
        const Candidate& b = looked.survivors[i];
        same &= a.config == b.config && a.predicted_us == b.predicted_us &&
                a.resources.smem_bytes == b.resources.smem_bytes &&
                a.resources.registers == b.resources.registers &&
                a.resources.grid == b.resources.grid;
      }
      CHECK(same);
    }
  }
}

TEST_CASE("the default config is the whole plan's first, whatever the problem", "[long]") {
  constexpr std::int64_t kExtents[] = {1, 7, 16, 100, 512, 1524, 4096, 11008, 65536};
  constexpr DType kTypes[] = {DType::bf16, DType::fp16, DType::tf32, DType::fp32};
  constexpr Layout kLayouts[] = {Layout::tn, Layout::tt, Layout::nn, Layout::nt};
  const DeviceSpec& device = device_named("nvidia-h200");
  int differ = 0;
  for (int i = 0; i < 81; ++i) {  // each pair of extents, types and layouts by turns
    const Problem problem = gemm_in(kLayouts[i % 4], kExtents[i / 9], kExtents[i % 9],
                                    kExtents[(i / 9 + i) % 9], kTypes[i / 4 % 4]);
    INFO(describe(problem));
    const auto alone = default_candidate(problem, device, gemm_space(), {});
    const auto plan = make_plan(problem, device, gemm_space(), {});
    REQUIRE(alone.has_value() == plan.has_value());
    if (!plan) {
      CHECK(alone.error().message == plan.error().message);
      continue;
    }
    const Candidate& first = plan->default_config();
    differ += alone->config != first.config || alone->predicted_us != first.predicted_us;
  }
  CHECK(differ == 0);
}

TEST_CASE("a ring is no more than the shared memory, and known from its own parameters") {
  const DeviceSpec& device = device_named("nvidia-h200");
  const Limits limits;
  std::int64_t rings = 0;
  for (const char* family : {"gemm", "geglu"}) {
    const Space space = thinned(family, 3);
    for (const auto& [dtype, layout] : {std::pair(DType::bf16, Layout::tn),
                                        {DType::fp16, Layout::nt},
                                        {DType::fp32, Layout::tt}}) {
      Problem problem = gemm_in(layout, 100, 1524, 4096, dtype);
      problem.family = family;
      const KernelTraits traits = traits_of(problem);
      const auto request = make_request(problem, device, space, limits);
      REQUIRE(request);
      bool sound = true;
      std::vector<Config> survivors;
      std::int64_t codes = 0;
      for_each_checked(*request, [&](const CheckedCode& code) {
        if (code.verdict && code.verdict->rule == Rule::structure) return;
        ++codes;
        if (!code.verdict) survivors.push_back(code.config);
        const HostTwin& kernel = *code.config.kernel;
        const std::int64_t ring = kernel.ring_bytes(code.config, traits);
        Config other = code.config;
        for (std::size_t p = HostTwin::kRingParameters; p < kernel.parameters().size(); ++p) {
          other.values[p] = kernel.parameters()[p].lo;
        }
        sound &= ring <= code.resources.smem_bytes && ring == kernel.ring_bytes(other, traits);
        rings += ring > 0 ? 1 : 0;
      });
      CHECK(sound);
      // Nothing that fits is passed over for its ring, and something that does not is.
      std::vector<Config> found;
      for_each_checked(
          *request,
          [&](const CheckedCode& code) {
            if (code.verdict && code.verdict->rule == Rule::structure) return;
            --codes;
            if (!code.verdict) found.push_back(code.config);
          },
          Wanted::survivors);
      CHECK(found == survivors);
      CHECK(codes > 0);
    }
  }
  CHECK(rings > 10000);
}

TEST_CASE("constraints read no other parameters than they say", "[long]") {
  const Space space = gemm_space();
  for (const HostTwin* kernel : find_family("gemm")->kernels) {
    std::vector<const KernelSpace*> products;
    for (const KernelSpace& each : space.kernels) {
      if (each.kernel == kernel->name()) products.push_back(&each);
    }
    REQUIRE_FALSE(products.empty());
    // Every so many of all products' configs.
    std::vector<Config> configs;
    for (const KernelSpace* product : products) {
      for (std::int64_t i = 0; i < size_of(*product); i += 997) {
        configs.push_back(config_at(*kernel, *product, i));
      }
    }
    for (const auto& [layout, gated] : {std::pair(Layout::tn, false),
                                        {Layout::nt, false},
                                        {Layout::tn, true},
                                        {Layout::nt, true}}) {
      KernelTraits traits = traits_of(gemm_in(layout, 64, 64, 64, DType::bf16));
      traits.gated = gated;
      for (std::size_t i = 0; i < configs.size(); ++i) {
        const Config& config = configs[i];
        const Config& other = configs[(i * 31 + 12345) % configs.size()];
        for (const Constraint& constraint : kernel->constraints()) {
          Config mixed = config;  // what the constraint does not read comes from the other
          for (std::size_t p = 0; p < kMaxParameters; ++p) {
            if ((constraint.reads >> p & 1) == 0) mixed.values[p] = other.values[p];
          }
          INFO(kernel->name() << ": " << constraint.name << " of " << to_string(config));
          REQUIRE(constraint.holds(mixed.values, traits) ==
                  constraint.holds(config.values, traits));
        }
      }
    }
  }
}

}  // namespace autotune::search
