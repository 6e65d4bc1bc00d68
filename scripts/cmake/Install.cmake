# `cmake --install`: the program with its manual page and completion, the libraries in both forms
# with the headers that their users include, and what find_package and pkg-config find.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/autotune)
set(tuner_headers ${CMAKE_INSTALL_INCLUDEDIR}/autotune-tuner)

# The program, and what it says about itself.
install(TARGETS autotune_cli RUNTIME)
set(documents)
foreach(pair "--man-page=autotune.1" "--bash-completion=autotune.bash")
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 option)
  list(GET pair 1 file)
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/${file}
                     COMMAND autotune_cli ${option} > ${CMAKE_BINARY_DIR}/${file}
                     DEPENDS autotune_cli VERBATIM)
  list(APPEND documents ${CMAKE_BINARY_DIR}/${file})
endforeach()
add_custom_target(documents ALL DEPENDS ${documents})
install(FILES ${CMAKE_BINARY_DIR}/autotune.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_BINARY_DIR}/autotune.bash RENAME autotune
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)

# Headers. The tuner's users include more of the rooms, by the names that they have here.
install(FILES autotune/autotune.h autotune/c_api.h autotune/session.h autotune/types.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/autotune)
foreach(header
    autotune/gpu/detect.h autotune/io/builtin.h autotune/tune/bench.h autotune/tune/tuner.h
    cache/store.h kernels/config.h kernels/device_source.h kernels/device_spec.h kernels/kernel.h
    kernels/model_coefficients.h kernels/problem.h
    kernels/resources.h kernels/trial.h kernels/verdict.h search/check.h search/model.h
    search/model_memory.h search/plan.h search/space.h)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${tuner_headers}/${folder})
endforeach()

# The static libraries, with the archives that they are made of.
target_include_directories(autotune INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_include_directories(tuner INTERFACE $<INSTALL_INTERFACE:${tuner_headers}>)
set_target_properties(tuner PROPERTIES OUTPUT_NAME autotune_tuner)
install(TARGETS autotune at_builtin at_gpu at_cache at_search at_kernels
                at_fmt at_sqlite at_cuda_headers
        EXPORT autotune_targets ARCHIVE)
install(TARGETS tuner at_worker at_io at_parse at_yaml EXPORT autotune_tuner_targets ARCHIVE)
install(EXPORT autotune_targets NAMESPACE autotune:: DESTINATION ${package_dir})
install(EXPORT autotune_tuner_targets NAMESPACE autotune:: DESTINATION ${package_dir})

# The shared ones: the same objects, with only the interface to be seen.
function(at_shared name objects_of)
  set(objects)
  foreach(target ${objects_of})
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
  endforeach()
  string(REPLACE "_shared" "" output ${name})
  if(NOT output STREQUAL autotune)
    set(output autotune_${output})
  endif()
  set(map ${CMAKE_SOURCE_DIR}/scripts/cmake/${output}.map)
  add_library(${name} SHARED ${objects})
  target_link_libraries(${name} INTERFACE tl::expected PRIVATE ${ARGN})
  target_link_options(${name} PRIVATE -Wl,--version-script=${map} -Wl,-z,defs)
  set_target_properties(${name} PROPERTIES
    OUTPUT_NAME ${output} LINKER_LANGUAGE CXX LINK_DEPENDS ${map})
  target_include_directories(${name} INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

# With a sanitizer a shared library lacks what the program brings.
if(AUTOTUNE_PORTABLE)
  # One file to copy, for programs that load it: `scripts/portable.sh libautotune.so`.
  at_shared(autotune_shared autotune at_builtin at_gpu at_cache at_search)
  set_target_properties(autotune_shared PROPERTIES
    EXCLUDE_FROM_ALL ON LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
elseif(NOT AUTOTUNE_SANITIZE)
  at_shared(autotune_shared autotune at_builtin at_gpu at_cache at_search)
  at_shared(tuner_shared "tuner;autotune" at_search at_cache at_worker at_io at_gpu at_builtin
            nlohmann_json::nlohmann_json)
  target_include_directories(tuner_shared INTERFACE $<INSTALL_INTERFACE:${tuner_headers}>)
  set_target_properties(autotune_shared tuner_shared PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  install(TARGETS autotune_shared tuner_shared EXPORT autotune_shared_targets LIBRARY)
  install(EXPORT autotune_shared_targets NAMESPACE autotune:: DESTINATION ${package_dir})
endif()

configure_package_config_file(scripts/cmake/autotuneConfig.cmake.in
                              ${CMAKE_BINARY_DIR}/autotuneConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/autotuneConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/autotuneConfig.cmake
              ${CMAKE_BINARY_DIR}/autotuneConfigVersion.cmake
        DESTINATION ${package_dir})
file(RELATIVE_PATH AUTOTUNE_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(scripts/cmake/autotune.pc.in ${CMAKE_BINARY_DIR}/autotune.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/autotune.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# `cpack` in the build folder: a .deb and a .tar.gz.
set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_PACKAGE_NAME autotune)
set(CPACK_PACKAGE_VENDOR "autotune developers")
set(CPACK_PACKAGE_CONTACT "autotune developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Finds the fastest configuration of a GPU kernel")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# Which packages the libraries come from; without the tool they are named by hand.
find_program(AUTOTUNE_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(AUTOTUNE_SHLIBDEPS)
if(AUTOTUNE_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6, libstdc++6, libsqlite3-0, libyaml-cpp0.7 | libyaml-cpp0.8")
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libexpected-dev")
include(CPack)
