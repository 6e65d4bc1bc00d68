# The project of a user of the installed package: the READMEs' examples and nothing else.
cmake_minimum_required(VERSION 3.25)
project(examples LANGUAGES C CXX)
find_package(autotune REQUIRED)
find_library(CUDART NAMES cudart libcudart.so.13
             HINTS ${CUDA_INCLUDE}/../lib64 ${CUDA_INCLUDE}/../lib REQUIRED)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20)
file(GLOB sources example_*.c example_*.cc)
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_compile_options(${name} PRIVATE -Wall -Wextra -Werror)
  target_include_directories(${name} SYSTEM PRIVATE ${CUDA_INCLUDE})
  target_link_libraries(${name} PRIVATE autotune::autotune ${CUDART})
  # The library is C++ inside.
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
endforeach()
