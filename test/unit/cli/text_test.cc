#include "autotune/cli/text.h"

#include "test/support/catch.h"

using namespace autotune::cli;

TEST_CASE("numbers carry four digits and their unit") {
  CHECK(microseconds(4.1234) == "4.123 us");
  CHECK(microseconds(41.234) == "41.23 us");
  CHECK(microseconds(210.54) == "210.5 us");
  CHECK(microseconds(12345.6) == "12346 us");
  CHECK(microseconds(0) == "-");
  CHECK(teraflops(652.94) == "652.9");
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(-186624) == "-186,624");
  CHECK(grouped(-186) == "-186");
  CHECK(grouped(1234567890) == "1,234,567,890");
  CHECK(counted(1, "config") == "1 config");
  CHECK(counted(1200, "config") == "1,200 configs");
  CHECK(counted(0, "mismatch") == "0 mismatches");
  CHECK(counted(2, "false pass") == "2 false passes");
}

TEST_CASE("durations change their unit before they read as 60") {
  CHECK(duration(4.21) == "4.2 s");
  CHECK(duration(59.96) == "1 min 00 s");
  CHECK(duration(65) == "1 min 05 s");
  CHECK(duration(7380) == "2 h 03 min");
}

TEST_CASE("TFLOP/s of 4096^3 in 210.5 us") {
  CHECK(tflops_of(2.0 * 4096 * 4096 * 4096, 210.5) == Approx(652.9).epsilon(1e-3));
  CHECK(tflops_of(1, 0) == 0);
}

TEST_CASE("a table lines up and leaves no blanks at the end of a line") {
  Table table({{"#", Table::Align::right}, {"config", Table::Align::left}});
  CHECK(table.empty());
  table.add({"1", "mma:a"});
  table.add({"10", "simt"});
  CHECK(table.str() ==
        "   #  config\n"
        "   1  mma:a\n"
        "  10  simt\n");
}

TEST_CASE("a table without titles has no title line") {
  Table table({{"", Table::Align::left}, {"", Table::Align::right}});
  table.add({"generated", "12"});
  table.add({"kept", "3"});
  CHECK(table.str() ==
        "  generated  12\n"
        "  kept        3\n");
}
