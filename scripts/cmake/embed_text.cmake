# Writes OUTPUT: a C++ file that defines SYMBOL as the text of INPUTS, in order.
set(body "")
foreach(input IN LISTS INPUTS)
  file(READ ${input} text)
  string(LENGTH "${text}" length)
  # One raw literal may hold 64 KiB portably; cut longer texts.
  set(offset 0)
  while(offset LESS length)
    string(SUBSTRING "${text}" ${offset} 15000 piece)
    string(APPEND body "R\"__at__(${piece})__at__\"\n")
    math(EXPR offset "${offset} + 15000")
  endwhile()
endforeach()
file(WRITE ${OUTPUT} "#include <string_view>
namespace autotune::embedded {
extern const std::string_view ${SYMBOL};
const std::string_view ${SYMBOL} =
${body};
}  // namespace autotune::embedded
")
