# at_embed(<target> <symbol> <files...>): the files' text, concatenated, as
# `extern const DeviceSource <symbol>` in namespace autotune::embedded of <target>.
function(at_embed target symbol)
  set(output ${CMAKE_BINARY_DIR}/generated/embedded/${symbol}.cc)
  set(inputs)
  foreach(file ${ARGN})
    list(APPEND inputs ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DSYMBOL=${symbol} "-DINPUTS=${inputs}"
            -P ${CMAKE_SOURCE_DIR}/scripts/cmake/embed_text.cmake
    DEPENDS ${inputs} ${CMAKE_SOURCE_DIR}/scripts/cmake/embed_text.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
