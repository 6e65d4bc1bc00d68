# Every third-party library under one name each: at_fmt, at_log, at_yaml, at_sqlite, at_cuda_headers.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tl-expected REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(CLI11 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(SQLite3 REQUIRED)

# fmt is compiled here: distributions have a shared library only, which the one file to copy cannot
# use, and header-only fmt takes up to three quarters of the time that an object compiles.
add_library(at_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cc)
target_include_directories(at_fmt SYSTEM PUBLIC
  $<BUILD_INTERFACE:$<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>>)
target_link_libraries(at_fmt PUBLIC tl::expected)
if(NOT fmt_VERSION MATCHES "^9\\.")  # fmt.cc knows what version 9 instantiates
  target_compile_definitions(at_fmt PUBLIC $<BUILD_INTERFACE:FMT_HEADER_ONLY=1>)
endif()

# spdlog header-only; its own target would link libfmt.
add_library(at_log INTERFACE)
target_link_libraries(at_log INTERFACE at_fmt Threads::Threads)
target_compile_definitions(at_log INTERFACE SPDLOG_FMT_EXTERNAL)
target_include_directories(at_log SYSTEM INTERFACE
  $<TARGET_PROPERTY:spdlog::spdlog_header_only,INTERFACE_INCLUDE_DIRECTORIES>)

add_library(at_yaml INTERFACE)
add_library(at_sqlite INTERFACE)
if(AUTOTUNE_PORTABLE)
  find_library(AUTOTUNE_YAML_A libyaml-cpp.a REQUIRED)
  find_library(AUTOTUNE_SQLITE_A libsqlite3.a REQUIRED)
  target_link_libraries(at_yaml INTERFACE ${AUTOTUNE_YAML_A})
  target_link_libraries(at_sqlite INTERFACE ${AUTOTUNE_SQLITE_A} ${CMAKE_DL_LIBS} Threads::Threads m)
  add_link_options(-static-libstdc++ -static-libgcc)
else()
  if(TARGET yaml-cpp::yaml-cpp)  # since 0.8
    target_link_libraries(at_yaml INTERFACE yaml-cpp::yaml-cpp)
  else()
    target_link_libraries(at_yaml INTERFACE yaml-cpp)
  endif()
  target_link_libraries(at_sqlite INTERFACE SQLite::SQLite3)
endif()

# CUDA: headers only. Every CUDA library is opened at run time.
find_path(AUTOTUNE_CUDA_H cuda.h
          HINTS ${AUTOTUNE_CUDA_INCLUDE} $ENV{CUDA_HOME}/include /usr/local/cuda/include
                ${CMAKE_SOURCE_DIR}/build/cuda/include REQUIRED)
add_library(at_cuda_headers INTERFACE)
target_include_directories(at_cuda_headers SYSTEM INTERFACE $<BUILD_INTERFACE:${AUTOTUNE_CUDA_H}>)
