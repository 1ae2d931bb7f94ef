# SPDX-License-Identifier: MIT
# Copyright the detent authors

# detent_layer(<folder> [PACKAGES <pkg-config name>...]): the sources of one folder of src/.
#
# Its *.c join the library (or the program, for the folder that src/LAYERS marks so), each *_test.c
# becomes a test (tests.cmake). The packages are linked privately and end up in detent.pc and the
# CMake package. A new file needs no line here: the build looks again whenever the folder changes.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# Sets `ret` to the target of a pkg-config package, which it finds on first use.
function(detent_package name ret)
    string(MAKE_C_IDENTIFIER "detent_pkg_${name}" id)
    if(NOT TARGET PkgConfig::${id})
        pkg_check_modules(${id} REQUIRED IMPORTED_TARGET GLOBAL ${name})
    endif()
    set(${id}_LIBRARIES ${${id}_LIBRARIES} CACHE INTERNAL "of ${name}")
    set(${ret} PkgConfig::${id} PARENT_SCOPE)
endfunction()

# Sets `ret` to the folder of a layer: rooms of the program are in src/program/.
function(detent_folder layer ret)
    set(folder "${PROJECT_SOURCE_DIR}/src/${layer}")
    if(layer IN_LIST DETENT_PROGRAM_LAYERS)
        set(folder "${PROJECT_SOURCE_DIR}/src/program/${layer}")
    endif()
    set(${ret} "${folder}" PARENT_SCOPE)
endfunction()

function(detent_layer folder)
    cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "PACKAGES")
    detent_folder(${folder} path)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${path}/*.c")
    set(tests ${sources})
    list(FILTER sources EXCLUDE REGEX "_test\\.c$")
    list(FILTER tests INCLUDE REGEX "_test\\.c$")
    # Contracts and behaviours of a layer have a folder in tests/; they join its test program.
    file(GLOB contracts CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${folder}/*_test.c")
    list(APPEND tests ${contracts})
    set(libraries)
    foreach(package IN LISTS layer_PACKAGES)
        detent_package(${package} library)
        list(APPEND libraries ${library})
    endforeach()

    if(NOT sources)
        return()
    endif()
    if(folder IN_LIST DETENT_PROGRAM_LAYERS)
        detent_program(${folder} "${sources}" "${libraries}")
        list(APPEND libraries detent_${folder})
    else()
        target_sources(detent_objects PRIVATE ${sources})
        target_link_libraries(detent_objects PRIVATE ${libraries})
        target_link_libraries(detent_static PRIVATE ${libraries})
        target_link_libraries(detent_shared PRIVATE ${libraries})
        set_property(GLOBAL APPEND PROPERTY DETENT_PACKAGES ${layer_PACKAGES})
    endif()
    if(DETENT_TESTS)
        detent_unit_tests(${folder} FILES ${tests} LIBRARIES ${libraries})
    endif()
endfunction()

# A room of the program is an archive that links the rooms above its line in src/LAYERS, so that its
# tests can link it; main.c is apart.
function(detent_program room sources libraries)
    detent_folder(${room} folder)
    set(main "${folder}/main.c")
    list(REMOVE_ITEM sources "${main}")
    add_library(detent_${room} STATIC ${sources})
    set_target_properties(detent_${room} PROPERTIES LINKER_LANGUAGE C)
    target_include_directories(detent_${room} PUBLIC "${PROJECT_SOURCE_DIR}/src/program")
    get_property(above GLOBAL PROPERTY DETENT_ROOM_ABOVE)
    target_link_libraries(detent_${room} PUBLIC ${libraries} ${above} detent_static)
    set_property(GLOBAL PROPERTY DETENT_ROOM_ABOVE detent_${room})
    if(EXISTS "${main}")
        add_executable(detent_program "${main}")
        set_target_properties(detent_program PROPERTIES
            OUTPUT_NAME detent RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
        target_link_libraries(detent_program PRIVATE detent_${room})
        install(TARGETS detent_program RUNTIME)
    endif()
endfunction()
