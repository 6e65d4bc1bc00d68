// Catch2 2.13 or 3, whichever the distribution has.
#pragma once

#ifdef AUTOTUNE_CATCH2_V3
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
