# SPDX-License-Identifier: MIT
# Copyright the detent authors

# How tests enter the build.
#
# detent_unit_test(<file> [library...])   src/base/map_test.c becomes the test base.map, label unit;
#                                         with the line "/* test: threads */" also label threads
#                                         and who starts a server WAITS; with the line
#                                         "/* test: sanitized */" also label sanitized: it looks
#                                         for what sanitizers see; `make test` runs it there only
# detent_test(<name> COMMAND <...> [LABELS <...>] [TIMEOUT <seconds>] [COST <seconds>] [WAITS])
#                                         any other program or script. A test takes two of the five
#                                         places that our presets give, which is a core; one that
#                                         WAITS for most of its time takes one. What has the highest
#                                         COST, about its seconds, starts first.
# detent_fuzz_target(<name> <source...>)  a libFuzzer program in <build>/fuzz/, if DETENT_FUZZ is on
#
# The targets tests_unit and tests_threads build the programs of one label and nothing else, and
# fuzz_targets the fuzz targets.
detent_package(cmocka DETENT_CMOCKA)
add_custom_target(tests_unit)
add_custom_target(tests_threads)
add_custom_target(fuzz_targets)

# There are hundreds of programs, and lld links one in a third of the time. What is installed is
# linked by the linker of the compiler.
set(DETENT_TEST_LINK_OPTIONS)
find_program(DETENT_LLD ld.lld)
mark_as_advanced(DETENT_LLD)
if(DETENT_LLD)
    list(APPEND DETENT_TEST_LINK_OPTIONS -fuse-ld=lld)
endif()

function(detent_unit_test file)
    file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}/src" "${file}")
    string(REGEX REPLACE "_test\\.c$" "" name "${name}")
    string(REPLACE "/" "." name "${name}")
    add_executable(${name}_test "${file}")
    set_target_properties(${name}_test PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    target_link_libraries(${name}_test PRIVATE detent_test_lib ${ARGN} detent_static)
    target_compile_definitions(${name}_test PRIVATE DET_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_compile_options(${name}_test PRIVATE ${DETENT_TEST_FLAGS})
    target_link_options(${name}_test PRIVATE ${DETENT_TEST_LINK_OPTIONS})
    add_dependencies(tests_unit ${name}_test)

    # A changed marker must change the label, so an edited test configures again.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(STRINGS "${file}" marker REGEX "^/\\* test: threads \\*/$")
    set(labels unit)
    if(marker)
        list(APPEND labels threads)
        add_dependencies(tests_threads ${name}_test)
    endif()
    file(STRINGS "${file}" marker REGEX "^/\\* test: sanitized \\*/$")
    if(marker)
        list(APPEND labels sanitized)
    endif()
    file(STRINGS "${file}" waits REGEX "^#include \"(lib/postgres|store/postgres_test)\\.h\"$")
    if(waits)
        set(waits WAITS)
    endif()
    detent_test(${name} COMMAND ${name}_test LABELS ${labels} ${waits})
endfunction()

function(detent_test name)
    cmake_parse_arguments(PARSE_ARGV 1 test "WAITS" "TIMEOUT;COST" "COMMAND;LABELS")
    if(NOT test_TIMEOUT)
        set(test_TIMEOUT 1800) # for what hangs; a busy machine may take long
    endif()
    set(places 2)
    if(test_WAITS)
        set(places 1)
    endif()
    add_test(NAME ${name} COMMAND ${test_COMMAND})
    # Many run at the same time, and there is one port that they would listen on.
    set_tests_properties(${name} PROPERTIES LABELS "${test_LABELS}" TIMEOUT ${test_TIMEOUT}
        PROCESSORS ${places} ENVIRONMENT "DETENT_LISTEN=none")
    if(test_COST)
        set_tests_properties(${name} PROPERTIES COST ${test_COST})
    endif()
endfunction()

function(detent_fuzz_target name)
    if(DETENT_FUZZ)
        add_executable(${name} ${ARGN})
        set_target_properties(${name} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
        target_link_libraries(${name} PRIVATE detent_static)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        add_dependencies(fuzz_targets ${name})
    endif()
endfunction()
