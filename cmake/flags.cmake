# SPDX-License-Identifier: MIT
# Copyright the detent authors

# The flags of every file in the tree: the language, the warnings, and hardening when asked for.
# They are options of this folder and those below it, never of the programs that link the library.
include(CheckCCompilerFlag)
include(CheckPIESupported)

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
check_pie_supported(LANGUAGES C)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
# Assertions stay on in every build.
foreach(kind RELEASE RELWITHDEBINFO MINSIZEREL)
    string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_${kind} "${CMAKE_C_FLAGS_${kind}}")
endforeach()

# And in builds for development also those that look at whole structures: base/assert.h.
if(DETENT_CHECKS)
    add_compile_definitions(DET_CHECKS=1)
endif()

add_compile_definitions(_GNU_SOURCE DET_VERSION_TEXT="${PROJECT_VERSION}")
include_directories(include src tests)

set(DETENT_WARNINGS
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
    -Wundef -Wvla -Wcast-qual -Wformat=2 -Wswitch-enum -Wimplicit-fallthrough -Wnull-dereference)
if(DETENT_WERROR)
    list(APPEND DETENT_WARNINGS -Werror)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:C>:${DETENT_WARNINGS}>")

if(DETENT_HARDEN)
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong)
    foreach(flag -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard
            -ftrivial-auto-var-init=zero)
        string(MAKE_C_IDENTIFIER "DETENT_HAVE${flag}" have)
        check_c_compiler_flag(${flag} ${have})
        if(${have})
            add_compile_options(${flag})
        endif()
    endforeach()
    add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,-z,defs)
endif()
