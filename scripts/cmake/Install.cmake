# `cmake --install`: the command, the library with its three headers, and the package that
# find_package(autotune) finds.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/autotune)
target_include_directories(autotune INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(TARGETS autotune_cli RUNTIME)
# The archives that `autotune` is made of go with it.
install(TARGETS autotune at_builtin at_gpu at_cache at_search at_kernels
                at_fmt at_sqlite at_cuda_headers
        EXPORT autotune_targets ARCHIVE)
install(FILES autotune/autotune.h autotune/types.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/autotune)
install(EXPORT autotune_targets NAMESPACE autotune:: DESTINATION ${package_dir})

configure_package_config_file(scripts/cmake/autotune-config.cmake.in
                              ${CMAKE_BINARY_DIR}/autotune-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/autotune-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/autotune-config.cmake
              ${CMAKE_BINARY_DIR}/autotune-config-version.cmake
        DESTINATION ${package_dir})
