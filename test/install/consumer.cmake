# The project of a user of the installed package: README's example and nothing else.
cmake_minimum_required(VERSION 3.25)
project(example LANGUAGES CXX)
find_package(autotune REQUIRED)
find_library(CUDART NAMES cudart libcudart.so.13
             HINTS ${CUDA_INCLUDE}/../lib64 ${CUDA_INCLUDE}/../lib REQUIRED)
add_executable(example example.cc)
target_compile_features(example PRIVATE cxx_std_20)
target_include_directories(example SYSTEM PRIVATE ${CUDA_INCLUDE})
target_link_libraries(example PRIVATE autotune::autotune ${CUDART})
