// How numbers and tables look to a person. Units stand beside the number; columns line up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/types.h"

namespace autotune::cli {

// Rows under titles, each column as wide as its widest cell. ASCII only.
class Table {
 public:
  enum class Align : std::uint8_t { left, right };
  struct Column {
    std::string title;
    Align align = Align::right;
  };

  explicit Table(std::vector<Column> columns);
  void add(std::vector<std::string> cells);  // as many as there are columns
  bool empty() const { return rows_.empty(); }
  // Every line indented by two spaces and ended by a newline, no trailing blanks. A table whose
  // titles are all empty has no title line.
  std::string str() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::string grouped(std::int64_t number);   // 186624 -> "186,624"
std::string percent(double value);          // 81.23 -> "81.2 %"
std::string microseconds(double us);        // 4 digits: "210.5 us"; "-" for 0
std::string teraflops(double tflops);       // 4 digits: "652.9"; "-" for 0
std::string duration(double seconds);       // "4.2 s", "1 min 05 s", "2 h 03 min"
std::string gibibytes(std::int64_t bytes);  // "141 GiB"

// TFLOP/s of `flops` operations in `us` microseconds; 0 where us is 0.
double tflops_of(double flops, double us);

// "gemm 4096x4096x4096 bf16 tn": describe() with the family always in front.
std::string titled(const Problem& problem);

// What stands before a line about one of a problem's `stages`, where nothing else says which:
// "gemm 100x512x1524 bf16 tn: "; nothing where there is only one.
std::string stage_label(const Problem& stage, std::size_t stages);

// "1 config", "2 configs", "2 false passes".
std::string counted(std::int64_t number, std::string_view noun);

}  // namespace autotune::cli
