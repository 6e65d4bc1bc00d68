// A file system for SQLite that fails, or kills the process, at a chosen step. It stands before the
// system's own: what it lets through really happens.
#pragma once

namespace autotune::test {

enum class Fault {
  none,
  read,   // reading fails
  write,  // writing, syncing, truncating or deleting fails
  full,   // writing finds no room
  kill    // SIGKILL in place of writing, syncing, truncating or deleting
};

struct FaultPlan {
  Fault fault = Fault::none;
  int at = 0;            // the step, counted from 1 among those that the fault concerns
  bool for_good = true;  // every step from there on; else that one only
};

// Makes it the one that SQLite uses from now on in this process; the plan starts anew.
void use_fault_vfs(const FaultPlan& plan);

// Steps so far: those that the plan's fault concerns (writing ones without a fault).
int fault_steps();

}  // namespace autotune::test
