#include "test/faults/fault_vfs.h"

#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

namespace autotune::test {
namespace {

FaultPlan plan;
int steps = 0;

sqlite3_vfs* system_vfs() {
  static sqlite3_vfs* const found = sqlite3_vfs_find("unix");
  return found;
}

struct File {
  sqlite3_file base;
  // The system's file lies behind.
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<File*>(file)->real(); }

// SQLITE_OK, or the code in whose place the step does not happen.
int step(bool reads, int code, int code_when_full) {
  const bool concerned = reads == (plan.fault == Fault::read);
  if (!concerned) return SQLITE_OK;
  ++steps;
  if (plan.fault == Fault::none) return SQLITE_OK;
  if (plan.for_good ? steps < plan.at : steps != plan.at) return SQLITE_OK;
  if (plan.fault == Fault::kill) kill(getpid(), SIGKILL);
  return plan.fault == Fault::full ? code_when_full : code;
}

int close_file(sqlite3_file* file) { return real(file)->pMethods->xClose(real(file)); }
int read_file(sqlite3_file* file, void* to, int bytes, sqlite3_int64 offset) {
  if (const int code = step(true, SQLITE_IOERR_READ, SQLITE_OK)) return code;
  return real(file)->pMethods->xRead(real(file), to, bytes, offset);
}
int write_file(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  if (const int code = step(false, SQLITE_IOERR_WRITE, SQLITE_FULL)) {
    // A disk takes what it can before it says that it is full.
    if (code == SQLITE_FULL) real(file)->pMethods->xWrite(real(file), from, bytes / 2, offset);
    return code;
  }
  return real(file)->pMethods->xWrite(real(file), from, bytes, offset);
}
int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  if (const int code = step(false, SQLITE_IOERR_TRUNCATE, SQLITE_OK)) return code;
  return real(file)->pMethods->xTruncate(real(file), size);
}
int sync_file(sqlite3_file* file, int flags) {
  if (const int code = step(false, SQLITE_IOERR_FSYNC, SQLITE_FULL)) return code;
  return real(file)->pMethods->xSync(real(file), flags);
}
int file_size(sqlite3_file* file, sqlite3_int64* size) {
  return real(file)->pMethods->xFileSize(real(file), size);
}
int lock_file(sqlite3_file* file, int level) {
  return real(file)->pMethods->xLock(real(file), level);
}
int unlock_file(sqlite3_file* file, int level) {
  return real(file)->pMethods->xUnlock(real(file), level);
}
int check_reserved(sqlite3_file* file, int* reserved) {
  return real(file)->pMethods->xCheckReservedLock(real(file), reserved);
}
int control(sqlite3_file* file, int operation, void* argument) {
  return real(file)->pMethods->xFileControl(real(file), operation, argument);
}
int sector_size(sqlite3_file* file) { return real(file)->pMethods->xSectorSize(real(file)); }
int characteristics(sqlite3_file* file) {
  return real(file)->pMethods->xDeviceCharacteristics(real(file));
}

// Version 1: no memory mapping and no WAL, which would pass the steps by.
constexpr sqlite3_io_methods kMethods = {
    1,         close_file,  read_file,      write_file, truncate_file, sync_file,      file_size,
    lock_file, unlock_file, check_reserved, control,    sector_size,   characteristics};

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  const int code = system_vfs()->xOpen(system_vfs(), name, real(file), flags, out_flags);
  if (real(file)->pMethods != nullptr) file->pMethods = &kMethods;
  return code;
}
int delete_file(sqlite3_vfs*, const char* name, int sync) {
  if (const int code = step(false, SQLITE_IOERR_DELETE, SQLITE_OK)) return code;
  return system_vfs()->xDelete(system_vfs(), name, sync);
}

}  // namespace

void use_fault_vfs(const FaultPlan& next) {
  static sqlite3_vfs* const vfs = [] {
    static sqlite3_vfs mine = *system_vfs();
    mine.zName = "autotune-fault";
    mine.szOsFile = static_cast<int>(sizeof(File)) + system_vfs()->szOsFile;
    mine.xOpen = open_file;
    mine.xDelete = delete_file;
    return &mine;
  }();
  plan = next;
  steps = 0;
  if (sqlite3_vfs_register(vfs, 1) != SQLITE_OK) std::abort();
}

int fault_steps() { return steps; }

}  // namespace autotune::test
