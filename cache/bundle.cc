#include "cache/bundle.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "cache/impl.h"
#include "cache/schema.h"
#include "kernels/sha256.h"

namespace autotune::cache {
namespace {

namespace fs = std::filesystem;

// The format is that of this text and of the tables in the image.
constexpr std::string_view kMark = "autotune bundle ";
constexpr std::size_t kDigestChars = 64;
// Some thousand kernels; more is not a bundle.
constexpr std::int64_t kMaxBytes = 1LL << 30;

constexpr const char* kInfoTable =
    "CREATE TABLE bundle (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID";

std::string first_line() { return fmt::format("{}{}\n", kMark, kSchemaVersion); }

template <class Info, class Visitor>
void visit_info(Info& info, const Visitor& visit) {
  visit("device", info.device);
  visit("fingerprint", info.fingerprint);
  visit("arch", info.arch);
  visit("suite", info.suite);
  visit("version", info.version);
  visit("time", info.time);
}

tl::unexpected<Error> io_failure(const fs::path& file, std::string_view what) {
  return fail(ErrorCode::io_failed, fmt::format("bundle {} cannot be {}: {}", file.string(), what,
                                                std::generic_category().message(errno)));
}

tl::unexpected<Error> damaged(const fs::path& file, std::string_view finding) {
  return fail(ErrorCode::corrupt_file,
              fmt::format("bundle {} is damaged ({}): copy or make it anew ('autotune bundle')",
                          file.string(), finding));
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

Expected<std::string> read_whole(const fs::path& file) {
  // Not to wait for the other end of a pipe.
  const Descriptor opened{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat info = {};
  if (opened.fd < 0 || fstat(opened.fd, &info) != 0) return io_failure(file, "opened");
  if (!S_ISREG(info.st_mode) || info.st_size > kMaxBytes) {
    return fail(ErrorCode::foreign_file,
                fmt::format("{} is not an autotune bundle: it is {}", file.string(),
                            S_ISREG(info.st_mode) ? "too large" : "not a regular file"));
  }
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t count = ::read(opened.fd, bytes.data() + got, bytes.size() - got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_failure(file, "read");
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  bytes.resize(got);
  return bytes;
}

// A new file beside `file` with `bytes` in it, on the disk.
Expected<fs::path> write_beside(const fs::path& file, std::string_view bytes) {
  std::string name = file.string() + ".XXXXXX";
  const int fd = mkstemp(name.data());
  if (fd < 0) return io_failure(file, "written");
  const auto give_up = [&]() -> tl::unexpected<Error> {
    auto error = io_failure(file, "written");
    close(fd);
    unlink(name.c_str());
    return error;
  };
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t written = ::write(fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return give_up();
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  // Nothing in it is secret: whoever runs the program must be able to read it.
  if (fchmod(fd, 0644) != 0 || fsync(fd) != 0) return give_up();
  close(fd);
  return fs::path(name);
}

Expected<void> write_info(const Connection& db, const BundleInfo& info) {
  if (auto made = db.execute(kInfoTable); !made) return made;
  Expected<void> written;
  visit_info(info, [&](const char* name, const auto& value) {
    if (!written) return;
    auto insert = Statement::make(db, "INSERT INTO bundle (name, value) VALUES (?, ?)", name,
                                  fmt::format("{}", value));
    if (insert) {
      written = insert->run();
    } else {
      written = tl::unexpected(insert.error());
    }
  });
  return written;
}

void parse_into(std::string& field, std::string text) { field = std::move(text); }
void parse_into(std::int64_t& field, const std::string& text) {
  field = std::strtoll(text.c_str(), nullptr, 10);
}

Expected<BundleInfo> read_info(const Connection& db) {
  BundleInfo info;
  std::optional<Error> error;
  visit_info(info, [&](const char* name, auto& value) {
    auto text =
        db.value_of(fmt::format("SELECT value FROM bundle WHERE name = '{}'", name).c_str());
    if (text) {
      parse_into(value, *std::move(text));
    } else {
      error = text.error();
    }
  });
  if (error) return tl::unexpected(*error);
  return info;
}

Expected<void> check_tables(const Connection& db) {
  const auto content = content_of(db);
  if (!content) return tl::unexpected(content.error());
  if (*content == Content::current) return {};
  return fail(ErrorCode::corrupt_file, "its tables are not those of a bundle");
}

}  // namespace

Expected<Bundle> Bundle::create(const BundleInfo& info) {
  auto impl = std::make_unique<Store::Impl>();
  impl->path = "(bundle)";
  impl->writable = true;
  impl->trusted = true;
  auto db = Connection::in_memory(impl->path);
  if (!db) return tl::unexpected(db.error());
  if (auto made = bring_up_to_date(*db); !made) return tl::unexpected(made.error());
  if (auto written = write_info(*db, info); !written) return tl::unexpected(written.error());
  impl->db = std::move(*db);
  return Bundle(info, Store(std::move(impl)));
}

Expected<void> Bundle::check_place(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return {};
  if (fs::is_regular_file(file, ignored)) {
    std::string mark(kMark.size(), '\0');
    std::ifstream stream(file, std::ios::binary);
    stream.read(mark.data(), static_cast<std::streamsize>(mark.size()));
    if (mark == kMark || fs::file_size(file, ignored) == 0) return {};
  }
  return fail(ErrorCode::bad_input, fmt::format("{} exists and is no bundle; it was left alone: "
                                                "remove it, or give another name",
                                                file.string()));
}

Expected<void> Bundle::write(const fs::path& file) const {
  const auto image = store_.impl_->db->image();
  if (!image) return tl::unexpected(image.error());
  std::error_code unlinked;
  fs::path target = fs::canonical(file, unlinked);  // a link stays one
  if (unlinked) target = file;
  const auto beside =
      write_beside(target, fmt::format("{}{}\n{}", first_line(), sha256_hex(*image), *image));
  if (!beside) return tl::unexpected(beside.error());
  if (rename(beside->c_str(), target.c_str()) == 0) return {};
  auto error = io_failure(file, "written");
  unlink(beside->c_str());
  return error;
}

Expected<Bundle> Bundle::open(const fs::path& file) {
  const auto bytes = read_whole(file);
  if (!bytes) return tl::unexpected(bytes.error());
  std::string_view rest = *bytes;
  if (!rest.starts_with(kMark)) {
    return fail(
        ErrorCode::foreign_file,
        fmt::format("{} is not an autotune bundle; 'autotune bundle' makes one", file.string()));
  }
  const std::string expected = first_line();
  if (!rest.starts_with(expected)) {
    return fail(ErrorCode::foreign_file,
                fmt::format("bundle {} was made by another version of autotune: make it anew with "
                            "this one ('autotune bundle')",
                            file.string()));
  }
  rest.remove_prefix(expected.size());
  const std::string_view digest = rest.substr(0, kDigestChars);
  if (rest.size() <= kDigestChars || rest[kDigestChars] != '\n') {
    return damaged(file, "it is cut short");
  }
  rest.remove_prefix(kDigestChars + 1);
  if (sha256_hex(rest) != digest) return damaged(file, "its SHA-256 does not match");
  return of_image(rest, file);
}

Expected<Bundle> Bundle::of_image(std::string_view image, const fs::path& name) {
  auto impl = std::make_unique<Store::Impl>();
  impl->path = name;
  impl->trusted = true;
  auto db = Connection::of_image(image, name);
  if (!db) return damaged(name, db.error().message);
  if (auto sound = check_tables(*db); !sound) return damaged(name, sound.error().message);
  auto info = read_info(*db);
  if (!info) return damaged(name, info.error().message);
  impl->db = std::move(*db);
  return Bundle(*std::move(info), Store(std::move(impl)));
}

}  // namespace autotune::cache
