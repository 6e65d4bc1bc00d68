# Every third-party library under one name each: at::fmt, at::yaml, at::sqlite, at::cuda_headers...
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tl-expected REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(CLI11 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(SQLite3 REQUIRED)

add_library(at_fmt INTERFACE)
add_library(at_yaml INTERFACE)
add_library(at_sqlite INTERFACE)
target_link_libraries(at_fmt INTERFACE fmt::fmt-header-only tl::expected)
if(AUTOTUNE_PORTABLE)
  find_library(AUTOTUNE_YAML_A libyaml-cpp.a REQUIRED)
  find_library(AUTOTUNE_SQLITE_A libsqlite3.a REQUIRED)
  target_link_libraries(at_yaml INTERFACE ${AUTOTUNE_YAML_A})
  target_link_libraries(at_sqlite INTERFACE ${AUTOTUNE_SQLITE_A} ${CMAKE_DL_LIBS} Threads::Threads)
  add_link_options(-static-libstdc++ -static-libgcc)
else()
  target_link_libraries(at_yaml INTERFACE yaml-cpp)
  target_link_libraries(at_sqlite INTERFACE SQLite::SQLite3)
endif()

# spdlog header-only beside a header-only fmt, whichever way the distribution built it.
add_library(at_log INTERFACE)
target_link_libraries(at_log INTERFACE spdlog::spdlog_header_only at_fmt)

# CUDA: headers only. Every CUDA library is opened at run time.
find_path(AUTOTUNE_CUDA_H cuda.h
          HINTS ${AUTOTUNE_CUDA_INCLUDE} ${CMAKE_SOURCE_DIR}/build/cuda/include $ENV{CUDA_HOME}/include
                /usr/local/cuda/include REQUIRED)
add_library(at_cuda_headers INTERFACE)
target_include_directories(at_cuda_headers SYSTEM INTERFACE ${AUTOTUNE_CUDA_H})
