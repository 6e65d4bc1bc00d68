#include "autotune/tune/code.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/stages.h"
#include "search/check.h"

namespace autotune::tune {
namespace {

constexpr std::size_t kMemoryBytes = std::size_t{512} << 20;
constexpr std::uint64_t kGetTicket = std::numeric_limits<std::uint64_t>::max();

}  // namespace

CodePtr CodeMemory::find(const std::string& hash) const {
  const auto found = known_.find(hash);
  return found == known_.end() ? nullptr : found->second;
}

void CodeMemory::keep(const std::string& hash, CodePtr code) {
  const std::size_t size = code->image.size() + code->log.size();
  if (!known_.emplace(hash, std::move(code)).second) return;
  bytes_ += size;
  age_.push_back(hash);
  while (bytes_ > kMemoryBytes && age_.size() > 1) {
    const auto oldest = known_.find(age_.front());
    bytes_ -= oldest->second->image.size() + oldest->second->log.size();
    known_.erase(oldest);
    age_.pop_front();
  }
}

worker::CompileRequest compile_request(std::uint64_t id, const Config& config,
                                       const KernelTraits& traits, const DeviceSpec& device) {
  const HostTwin& kernel = *config.kernel;
  return {id, std::string(kernel.source().text), std::string(kernel.entry()), device.limits.arch,
          kernel.definitions(config, traits, device)};
}

Expected<std::optional<Verdict>> judge(const Config& config, const Resources& predicted,
                                       const ActualResources& actual, const DeviceSpec& device) {
  if (const std::string differs = search::mismatch(predicted, actual); !differs.empty()) {
    return fail(ErrorCode::failed,
                fmt::format("the cubin of {} is not what was predicted: {}; this is a bug in its "
                            "host twin, report it (--exclude passes it by)",
                            to_string(config), differs));
  }
  return search::check_compiled(predicted, actual, device);
}

CodeSource::CodeSource(worker::CompilePool& pool, CodeMemory& memory, cache::Store* store,
                       const DeviceSpec& device, std::string compiler, WriteFailed write_failed)
    : pool_(pool),
      memory_(memory),
      store_(store),
      device_(device),
      compiler_(std::move(compiler)),
      write_failed_(std::move(write_failed)) {}

CodeSource::~CodeSource() { forget(); }

void CodeSource::forget() {
  pool_.cancel();
  jobs_.clear();
  at_work_.clear();
  ready_.clear();
  waiting_ = 0;
}

void CodeSource::write(const std::string& hash, const Code& code) {
  if (!store_ || !store_->writable()) return;
  const auto kept =
      store_->put_cubin({hash, device_.limits.arch, compiler_}, {code.image, code.actual});
  if (!kept) write_failed_(kept.error());
}

void CodeSource::save(std::size_t count) {
  for (; count > 0 && !unsaved_.empty(); --count) {
    write(unsaved_.front().first, *unsaved_.front().second);
    unsaved_.pop_front();
  }
}

void CodeSource::save(const std::string& hash) {
  const auto found = std::find_if(unsaved_.begin(), unsaved_.end(),
                                  [&](const auto& entry) { return entry.first == hash; });
  if (found != unsaved_.end()) {
    write(hash, *found->second);
    unsaved_.erase(found);
  } else if (const CodePtr code = memory_.find(hash); code && !from_store(hash)) {
    write(hash, *code);  // of an earlier problem, whose time was over before it was written
  }
}

CodePtr CodeSource::find(const std::string& hash) {
  CodePtr code = memory_.find(hash);
  if (!code && (code = from_store(hash))) memory_.keep(hash, code);
  return code;
}

CodePtr CodeSource::from_store(const std::string& hash) const {
  if (!store_ || !store_->gives_cubins()) return nullptr;
  const auto found = store_->cubin({hash, device_.limits.arch, compiler_});
  if (!found || !*found) return nullptr;
  auto code = std::make_shared<Code>();
  code->image = (*found)->image;
  code->actual = (*found)->actual;
  return code;
}

bool CodeSource::want(std::uint64_t ticket, const Config& config, const KernelTraits& traits,
                      const std::string& hash) {
  if (const auto same = at_work_.find(hash); same != at_work_.end()) {
    jobs_.at(same->second).tickets.push_back(ticket);
    ++waiting_;
    return false;
  }
  if (CodePtr code = find(hash)) {
    ready_.emplace_back(ticket, std::move(code));
    return true;
  }
  const std::uint64_t id = next_id_++;
  jobs_.emplace(id, Job{hash, {ticket}});
  at_work_.emplace(hash, id);
  ++waiting_;
  pool_.submit(compile_request(id, config, traits, device_));
  return false;
}

Expected<void> CodeSource::collect(std::chrono::milliseconds timeout) {
  auto replies = pool_.poll(timeout);
  if (!replies) return tl::unexpected(replies.error());
  for (worker::CompileReply& reply : *replies) {
    const auto found = jobs_.find(reply.id);
    if (found == jobs_.end()) continue;
    const Job job = std::move(found->second);
    jobs_.erase(found);
    at_work_.erase(job.hash);
    waiting_ -= job.tickets.size();
    ++compiled_;
    const CodePtr code = std::make_shared<Code>(Code{
        reply.outcome, std::move(reply.cubin), reply.actual, std::move(reply.log), reply.seconds});
    memory_.keep(job.hash, code);
    for (const std::uint64_t ticket : job.tickets) ready_.emplace_back(ticket, code);
    if (code->outcome == Outcome::ok) unsaved_.emplace_back(job.hash, code);
  }
  return {};
}

Expected<std::vector<std::pair<std::uint64_t, CodePtr>>> CodeSource::poll(
    std::chrono::milliseconds timeout) {
  if (auto collected = collect(ready_.empty() ? timeout : std::chrono::milliseconds(0));
      !collected) {
    return tl::unexpected(collected.error());
  }
  return std::exchange(ready_, {});
}

Expected<CodePtr> CodeSource::get(const Config& config, const KernelTraits& traits,
                                  const std::string& hash, const std::function<bool()>& stop) {
  want(kGetTicket, config, traits, hash);
  while (true) {
    const auto mine = std::find_if(ready_.begin(), ready_.end(),
                                   [](const auto& entry) { return entry.first == kGetTicket; });
    if (mine != ready_.end()) {
      CodePtr code = std::move(mine->second);
      ready_.erase(mine);
      return code;
    }
    if (stop()) return fail(ErrorCode::cancelled, "stopped while compiling");
    if (auto collected = collect(std::chrono::milliseconds(100)); !collected) {
      return tl::unexpected(collected.error());
    }
  }
}

Expected<Entrant> CodeSource::entrant(const Config& config, const Problem& problem,
                                      const std::function<bool()>& stop) {
  Entrant entrant;
  entrant.contender.config = to_string(config);
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    const Config own = stage_of(config, i);
    const KernelTraits traits = traits_of(stage_of(problem, i));
    const auto code = get(own, traits, source_hash(own, traits, device_), stop);
    if (!code) return tl::unexpected(code.error());
    if (!entrant.failed && (*code)->outcome != Outcome::ok) entrant.failed = *code;
    (i == 0 ? entrant.contender.cubin : entrant.contender.second_cubin) = (*code)->image;
  }
  return entrant;
}

}  // namespace autotune::tune
