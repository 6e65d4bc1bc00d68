# Writes OUTPUT: a C++ file that defines SYMBOL as the text of INPUTS, in order.
set(body "")
set(whole "")
foreach(input IN LISTS INPUTS)
  file(READ ${input} text)
  string(APPEND whole "${text}")
  string(LENGTH "${text}" length)
  # One raw literal may hold 64 KiB portably; cut longer texts.
  set(offset 0)
  while(offset LESS length)
    string(SUBSTRING "${text}" ${offset} 15000 piece)
    string(APPEND body "R\"__at__(${piece})__at__\"\n")
    math(EXPR offset "${offset} + 15000")
  endwhile()
endforeach()
string(SHA256 digest "${whole}")
file(WRITE ${OUTPUT} "#include \"kernels/device_source.h\"
namespace autotune::embedded {
extern const DeviceSource ${SYMBOL};
const DeviceSource ${SYMBOL}{
${body},
    \"${digest}\"};
}  // namespace autotune::embedded
")
