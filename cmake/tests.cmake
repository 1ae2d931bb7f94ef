# SPDX-License-Identifier: MIT
# Copyright the detent authors

# How tests enter the build.
#
# detent_unit_tests(<folder> FILES <x_test.c...> [LIBRARIES <...>])
#                                         src/base/map_test.c becomes the test base.map, label unit.
#                                         The suites of a folder are one program, base_tests, which
#                                         runs the one that is named. A line in a suite says more:
#                                         /* test: threads */    also label threads; in a program of
#                                                                their own, base_thread_tests
#                                         /* test: sanitized */  also label sanitized: it looks for
#                                                                what sanitizers see; `make test`
#                                                                runs it there only
#                                         /* test: alone */      a program of its own, x.y_test,
#                                                                for one with other link options or
#                                                                that replaces functions of libc
# detent_test(<name> COMMAND <...> [LABELS <...>] [TIMEOUT <seconds>] [COST <seconds>] [WAITS])
#                                         any other program or script. A test takes five of the 12
#                                         places that our presets give; one that WAITS for most of
#                                         its time takes one. So two cores run two tests that
#                                         compute, beside two that wait. What has the highest COST,
#                                         about its seconds, starts first.
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
list(APPEND DETENT_TEST_LINK_OPTIONS ${DETENT_TEST_LINK_FLAGS})

# What all programs of unit tests have.
function(detent_suite_program program libraries)
    set_target_properties(${program} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    target_link_libraries(${program} PRIVATE detent_test_lib ${libraries} detent_static)
    target_compile_definitions(${program} PRIVATE DET_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_compile_options(${program} PRIVATE ${DETENT_TEST_FLAGS})
    target_link_options(${program} PRIVATE ${DETENT_TEST_LINK_OPTIONS})
    # Without relocations of its data a program is smaller by a sixth.
    set_target_properties(${program} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    add_dependencies(tests_unit ${program})
endfunction()

# Sets `ret` to whether the file has this line.
function(detent_has_line file regex ret)
    file(STRINGS "${file}" lines REGEX "${regex}")
    set(${ret} OFF PARENT_SCOPE)
    if(lines)
        set(${ret} ON PARENT_SCOPE)
    endif()
endfunction()

# One program of many suites; its table is generated.
function(detent_suites program files libraries)
    set(declarations)
    set(rows)
    foreach(file IN LISTS files)
        file(RELATIVE_PATH suite "${CMAKE_CURRENT_SOURCE_DIR}" "${file}")
        string(REGEX REPLACE "_test\\.c$" "" suite "${suite}")
        string(REGEX REPLACE "[^A-Za-z0-9]" "_" symbol "${suite}")
        detent_test_name("${file}" name)
        string(APPEND declarations "int suite_${symbol}(void);\n")
        string(APPEND rows "    { \"${name}\", suite_${symbol} },\n")
    endforeach()
    set(table "${CMAKE_CURRENT_BINARY_DIR}/${program}.c")
    file(CONFIGURE OUTPUT "${table}" @ONLY CONTENT [[
#include "lib/suites/suites.h"

@declarations@
const struct det_suite det_suites[] = {
@rows@    { 0, 0 },
};
]])
    add_library(${program}_objects OBJECT ${files})
    target_compile_definitions(${program}_objects PRIVATE DET_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_compile_options(${program}_objects PRIVATE ${DETENT_TEST_FLAGS})
    target_link_libraries(${program}_objects PRIVATE detent_test_lib ${libraries} detent_static)
    set_target_properties(${program}_objects PROPERTIES
        RULE_LAUNCH_COMPILE "${PROJECT_SOURCE_DIR}/scripts/compile-suite")
    add_executable(${program} $<TARGET_OBJECTS:${program}_objects> "${table}"
        "${PROJECT_SOURCE_DIR}/tests/lib/suites/main.c")
    detent_suite_program(${program} "${libraries}")
endfunction()

# src/base/map_test.c is base.map, tests/task/bus_test.c is task.bus; the rooms of the program are
# named without the folder above them.
function(detent_test_name file ret)
    file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}" "${file}")
    string(REGEX REPLACE "_test\\.c$" "" name "${name}")
    string(REGEX REPLACE "^(src/program|src|tests)/" "" name "${name}")
    string(REPLACE "/" "." name "${name}")
    set(${ret} "${name}" PARENT_SCOPE)
endfunction()

# Sets `ret` to the command that runs the unit test of this name.
function(detent_suite_command name ret)
    get_property(command GLOBAL PROPERTY DETENT_SUITE_${name})
    if(NOT command)
        message(FATAL_ERROR "there is no unit test ${name}")
    endif()
    set(${ret} ${command} PARENT_SCOPE)
endfunction()

function(detent_unit_tests folder)
    cmake_parse_arguments(PARSE_ARGV 1 unit "" "" "FILES;LIBRARIES")
    get_filename_component(room "${folder}" NAME)
    set(plain)
    set(threads)
    foreach(file IN LISTS unit_FILES)
        # A changed marker must change the label, so an edited test configures again.
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
        detent_test_name("${file}" name)
        detent_has_line("${file}" "^/\\* test: threads \\*/$" has_threads)
        detent_has_line("${file}" "^/\\* test: sanitized \\*/$" is_sanitized)
        detent_has_line("${file}" "^/\\* test: alone \\*/$" is_alone)
        detent_has_line("${file}"
            "^#include \"(lib/postgres|store/postgres/postgres_test)\\.h\"$" waits)
        set(labels unit)
        set(more)
        if(has_threads)
            list(APPEND labels threads)
        endif()
        if(is_sanitized)
            list(APPEND labels sanitized)
        endif()
        if(waits)
            set(more WAITS)
        endif()
        if(is_alone)
            add_executable(${name}_test "${file}")
            detent_suite_program(${name}_test "${unit_LIBRARIES}")
            set(command ${name}_test)
            if(has_threads)
                add_dependencies(tests_threads ${name}_test)
            endif()
        elseif(has_threads)
            list(APPEND threads "${file}")
            set(command ${room}_thread_tests ${name})
        else()
            list(APPEND plain "${file}")
            set(command ${room}_tests ${name})
        endif()
        set_property(GLOBAL PROPERTY DETENT_SUITE_${name} "${command}")
        detent_test(${name} COMMAND ${command} LABELS ${labels} ${more})
    endforeach()
    if(plain)
        detent_suites(${room}_tests "${plain}" "${unit_LIBRARIES}")
    endif()
    if(threads)
        detent_suites(${room}_thread_tests "${threads}" "${unit_LIBRARIES}")
        add_dependencies(tests_threads ${room}_thread_tests)
    endif()
endfunction()

function(detent_test name)
    cmake_parse_arguments(PARSE_ARGV 1 test "WAITS" "TIMEOUT;COST" "COMMAND;LABELS")
    if(NOT test_TIMEOUT)
        set(test_TIMEOUT 1800) # for what hangs; a busy machine may take long
    endif()
    set(places 5)
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
