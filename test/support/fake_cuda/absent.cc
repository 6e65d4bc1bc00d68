// Every entry point that the project asks libcuda for, as one that succeeds and does nothing.
// device.cc defines those that a test needs more of; these give way to them.
#include "autotune/gpu/driver.h"

extern "C" __attribute__((visibility("default"))) int fake_cuda_nothing() { return 0; }

// A second level, so that cuda.h's mapping of the name happens before it becomes text.
#define FAKE_TEXT(name) #name
#define FAKE_SYMBOL(name) FAKE_TEXT(name)
#define FAKE_ENTRY(name)                                                                        \
  asm(".weak " FAKE_SYMBOL(name) "\n.type " FAKE_SYMBOL(name) ", %function\n.set " FAKE_SYMBOL( \
      name) ", fake_cuda_nothing\n");
AUTOTUNE_DRIVER_FUNCTIONS(FAKE_ENTRY)
