#include "cache/impl.h"
#include "cache/rows.h"

namespace autotune::cache {
namespace {

// What follows names tables so that the row is found by their keys alone.
constexpr const char* kOneWinner =
    "SELECT t.config, t.source_hash, t.median_us FROM problem p "
    "JOIN winner w ON w.problem = p.id JOIN device d ON d.id = w.device "
    "JOIN trial t ON t.id = w.trial "
    "WHERE p.key = ? AND d.fingerprint = ? AND t.outcome = 'ok'";

std::string select_known_winners() {
  Names problem;
  visit_problem(static_cast<const Problem&>(Problem{}), problem);
  return "SELECT d.fingerprint, t.config, t.source_hash, t.median_us, " + problem.listed("p") +
         " FROM winner w JOIN problem p ON p.id = w.problem JOIN device d ON d.id = w.device "
         "JOIN trial t ON t.id = w.trial WHERE p.family = ? AND t.outcome = 'ok'";
}

// A statement that is not reset keeps its lock on the file.
class ResetAfterwards {
 public:
  explicit ResetAfterwards(Statement& statement) : statement_(statement) {}
  ResetAfterwards(const ResetAfterwards&) = delete;
  ResetAfterwards& operator=(const ResetAfterwards&) = delete;
  ~ResetAfterwards() { statement_.reset(); }

 private:
  Statement& statement_;
};

}  // namespace

Expected<std::optional<KnownWinner>> Store::known_winner(
    const std::string& problem_key, const std::string& device_fingerprint) const {
  if (!impl_->db) return std::nullopt;
  if (!impl_->known) {
    auto made = Statement::make(*impl_->db, kOneWinner);
    if (!made) return tl::unexpected(made.error());
    impl_->known = std::move(*made);
  }
  Statement& select = *impl_->known;
  const ResetAfterwards reset(select);
  select.bind(problem_key);
  select.bind(device_fingerprint);
  const auto row = select.step();
  if (!row) return tl::unexpected(row.error());
  if (!*row) return std::nullopt;
  KnownWinner winner;
  winner.device_fingerprint = device_fingerprint;
  select.read(winner.config);
  select.read(winner.source_hash);
  select.read(winner.median_us);
  return winner;
}

Expected<std::vector<KnownWinner>> Store::known_winners(const std::string& family) const {
  std::vector<KnownWinner> found;
  if (!impl_->db) return found;
  static const std::string sql = select_known_winners();
  auto select = Statement::make(*impl_->db, sql, family);
  if (!select) return tl::unexpected(select.error());
  for (;;) {
    const auto row = select->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return found;
    KnownWinner winner;
    select->read(winner.device_fingerprint);
    select->read(winner.config);
    select->read(winner.source_hash);
    select->read(winner.median_us);
    Reader reader{*select};
    visit_problem(winner.problem, reader);
    if (select->sound()) found.push_back(std::move(winner));
  }
}

Expected<std::vector<std::string>> Store::compilers(const std::string& source_hash,
                                                    const std::string& arch) const {
  if (!impl_->db) return std::vector<std::string>();
  auto select = Statement::make(
      *impl_->db, "SELECT compiler FROM cubin WHERE source_hash = ? AND arch = ? ORDER BY id DESC",
      source_hash, arch);
  return read_texts(std::move(select));
}

}  // namespace autotune::cache
