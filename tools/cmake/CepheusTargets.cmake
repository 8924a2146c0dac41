# cepheus_library, cepheus_test, cepheus_script_test, cepheus_fuzzer: every folder declares its targets with these.

option(CEPHEUS_WERROR "Treat warnings as errors" OFF)
option(CEPHEUS_FUZZ "Build the libFuzzer targets (clang only)" OFF)
set(CEPHEUS_SANITIZE "" CACHE STRING "Sanitizers for every target, for example address;undefined")

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# Warnings on a private interface target: never on the command line of a user of our libraries.
add_library(cepheus_warnings INTERFACE)
target_compile_options(cepheus_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wpointer-arith -Wcast-align
  $<$<BOOL:${CEPHEUS_WERROR}>:-Werror>)

add_library(cepheus_sanitizers INTERFACE)
foreach(sanitizer IN LISTS CEPHEUS_SANITIZE)
  target_compile_options(cepheus_sanitizers INTERFACE -fsanitize=${sanitizer} -fno-omit-frame-pointer)
  target_link_options(cepheus_sanitizers INTERFACE -fsanitize=${sanitizer})
endforeach()

# Unity files are so large that collecting the compiler's garbage would take a tenth of its time.
set(unity_with_gnu $<AND:$<BOOL:${CMAKE_UNITY_BUILD}>,$<COMPILE_LANG_AND_ID:CXX,GNU>>)

function(_cepheus_common target)
  target_compile_options(${target} PRIVATE $<${unity_with_gnu}:SHELL:--param=ggc-min-heapsize=524288>)
  # Unity files include by absolute path. Without it in __FILE__, compiler caches serve every checkout.
  target_compile_options(${target} PRIVATE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:cepheus_warnings> $<BUILD_INTERFACE:cepheus_sanitizers>)
endfunction()

# Cold sources handle no packets: tests without simulation, and programs that leave all work to libraries.
set(CEPHEUS_COLD_OPTIONS "" CACHE STRING "Compiler options for sources whose own speed does not matter")

# The name of a folder's target: its path with underscores, and PART if the folder has several targets of a kind.
# switch-emulator/live: switch_emulator_live; its part "status": switch_emulator_live_status.
function(_cepheus_name result part)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
  if(part)
    string(APPEND name _${part})
  endif()
  string(REGEX REPLACE "[/-]" "_" name ${name})
  set(${result} ${name} PARENT_SCOPE)
endfunction()

# cepheus_library([PART] SOURCES ... [LIBS ...] [COLD]): the folder's static library cepheus_NAME, alias cepheus::NAME.
function(cepheus_library)
  cmake_parse_arguments(A "COLD" "" "SOURCES;LIBS" ${ARGN})
  _cepheus_name(name "${A_UNPARSED_ARGUMENTS}")
  add_library(cepheus_${name} STATIC ${A_SOURCES})
  if(A_COLD)
    target_compile_options(cepheus_${name} PRIVATE ${CEPHEUS_COLD_OPTIONS})
  endif()
  add_library(cepheus::${name} ALIAS cepheus_${name})
  target_link_libraries(cepheus_${name} PUBLIC ${A_LIBS})
  target_include_directories(cepheus_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  _cepheus_common(cepheus_${name})
endfunction()

# cepheus_executable(NAME SOURCES ... [LIBS ...] [INSTALL] [COLD]): program NAME in <build>/bin.
function(cepheus_executable name)
  cmake_parse_arguments(A "INSTALL;COLD" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  if(A_COLD)
    target_compile_options(${name} PRIVATE ${CEPHEUS_COLD_OPTIONS})
  endif()
  target_link_libraries(${name} PRIVATE ${A_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  _cepheus_common(${name})
  if(A_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()

# A test's labels: unit unless others are given, and needs-PACKAGE for each Debian package beyond those of a build. ./run test
# installs the packages of its tests.
function(_cepheus_label name labels packages)
  if(NOT labels)
    set(labels unit)
  endif()
  list(TRANSFORM packages PREPEND needs-)
  set_tests_properties(${name} PROPERTIES LABELS "${labels};${packages}" SKIP_RETURN_CODE 77)
endfunction()

# GoogleTest's headers take longer to compile than most tests, so all cold tests share them precompiled. Builds with a
# compiler cache do without: one changed header would miss all of them.
function(_cepheus_precompile name)
  if(NOT CMAKE_UNITY_BUILD OR CMAKE_CXX_COMPILER_LAUNCHER OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  if(NOT TARGET cepheus_test_headers)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cc CONTENT "int main() {}\n")
    add_executable(cepheus_test_headers ${PROJECT_BINARY_DIR}/test_headers.cc)
    target_link_libraries(cepheus_test_headers PRIVATE GTest::gmock)
    target_compile_options(cepheus_test_headers PRIVATE ${CEPHEUS_COLD_OPTIONS})
    target_precompile_headers(cepheus_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>
      <algorithm> <array> <chrono> <deque> <functional> <map> <memory> <optional> <set> <span> <string> <string_view>
      <thread> <variant> <vector>)
    _cepheus_common(cepheus_test_headers)
  endif()
  target_precompile_headers(${name} REUSE_FROM cepheus_test_headers)
  set_target_properties(${name} PROPERTIES PCH_WARN_INVALID OFF)  # with other options the headers are read as usual
endfunction()

# cepheus_test([PART] SOURCES ... [LIBS ...] [LABELS ...] [PACKAGES ...] [TIMEOUT s]): the folder's GoogleTest program
# NAME_test, one ctest entry.
function(cepheus_test)
  cmake_parse_arguments(A "" "TIMEOUT" "SOURCES;LIBS;LABELS;PACKAGES" ${ARGN})
  if(NOT BUILD_TESTING)
    return()
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 600)
  endif()
  _cepheus_name(name "${A_UNPARSED_ARGUMENTS}")
  string(APPEND name _test)
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_LIBS} GTest::gmock GTest::gtest_main)
  if(NOT sim IN_LIST A_LABELS)
    target_compile_options(${name} PRIVATE ${CEPHEUS_COLD_OPTIONS})
    _cepheus_precompile(${name})
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  _cepheus_common(${name})
  add_test(NAME ${name} COMMAND ${name})
  if(CEPHEUS_SANITIZE)
    math(EXPR A_TIMEOUT "${A_TIMEOUT} * 8")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT})
  _cepheus_label(${name} "${A_LABELS}" "${A_PACKAGES}")
endfunction()

# cepheus_script_test(NAME COMMAND ... [BUILDS TARGETS ...] [LABELS ...] [PACKAGES ...] [TIMEOUT s] [SERIAL]): a test without
# GoogleTest. The target of its name builds its programs. It finds the build tree by CEPHEUS_BUILD.
function(cepheus_script_test name)
  cmake_parse_arguments(A "SERIAL" "TIMEOUT" "COMMAND;BUILDS;LABELS;PACKAGES" ${ARGN})
  if(NOT BUILD_TESTING)
    return()
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 600)
  endif()
  add_custom_target(${name})
  if(A_BUILDS)
    add_dependencies(${name} ${A_BUILDS})
  endif()
  add_test(NAME ${name} COMMAND ${A_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${A_TIMEOUT} RUN_SERIAL ${A_SERIAL} ENVIRONMENT "CEPHEUS_BUILD=${PROJECT_BINARY_DIR}")
  _cepheus_label(${name} "${A_LABELS}" "${A_PACKAGES}")
endfunction()

# cepheus_knows_source_dir(FILES ...): tests that read files of the source tree, by CEPHEUS_SOURCE_DIR. No other file has it, so
# that compiler caches serve every checkout.
function(cepheus_knows_source_dir)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_DEFINITIONS CEPHEUS_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endfunction()

# cepheus_skipped_test(NAME REASON): a test that can't run with this machine's libraries. ctest lists it as skipped.
function(cepheus_skipped_test name reason)
  if(NOT BUILD_TESTING)
    return()
  endif()
  cepheus_script_test(${name} COMMAND ${CMAKE_COMMAND} -E echo "${name}: SKIPPED, nothing was checked: ${reason}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED, nothing was checked")
endfunction()

# cepheus_fuzzer([PART] SOURCES ... [LIBS ...]): the folder's libFuzzer program NAME_fuzzer, run for CEPHEUS_FUZZ_SECONDS by
# the fuzz preset's tests; the target `fuzzers` builds all.
set(CEPHEUS_FUZZ_SECONDS 30 CACHE STRING "How long each fuzzer runs as a test")
function(cepheus_fuzzer)
  cmake_parse_arguments(A "" "" "SOURCES;LIBS" ${ARGN})
  if(NOT CEPHEUS_FUZZ)
    return()
  endif()
  _cepheus_name(name "${A_UNPARSED_ARGUMENTS}")
  string(APPEND name _fuzzer)
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_LIBS})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  _cepheus_common(${name})
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_dependencies(fuzzers ${name})
  math(EXPR timeout "${CEPHEUS_FUZZ_SECONDS} + 120")
  add_test(NAME ${name} COMMAND ${name} -max_total_time=${CEPHEUS_FUZZ_SECONDS} -rss_limit_mb=1024)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS fuzz)
endfunction()

# Every test has a target of its name: ./run test builds the targets of the chosen tests.
function(cepheus_check_tests directory)
  get_property(tests DIRECTORY ${directory} PROPERTY TESTS)
  foreach(test ${tests})
    if(NOT TARGET ${test})
      message(FATAL_ERROR "the test ${test} has no target of its name: declare it by cepheus_test or cepheus_script_test")
    endif()
  endforeach()
  get_property(folders DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(folder ${folders})
    cepheus_check_tests(${folder})
  endforeach()
endfunction()
