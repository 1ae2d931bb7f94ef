# SPDX-License-Identifier: MIT
# Copyright the detent authors

# What `make install` puts where: headers, both libraries, detent.pc and the CMake package.
include(CMakePackageConfigHelpers)

get_property(DETENT_PACKAGES GLOBAL PROPERTY DETENT_PACKAGES)
list(REMOVE_DUPLICATES DETENT_PACKAGES)
# The libraries by name, not by Requires.private: what their own .pc files say for linking all of it
# statically is not all in Debian, and nobody needs it to link libdetent.a.
set(DETENT_LIBRARIES)
foreach(package IN LISTS DETENT_PACKAGES)
    string(MAKE_C_IDENTIFIER "detent_pkg_${package}" id)
    list(TRANSFORM ${id}_LIBRARIES PREPEND "-l" OUTPUT_VARIABLE libraries)
    list(APPEND DETENT_LIBRARIES ${libraries})
endforeach()
list(JOIN DETENT_LIBRARIES " " DETENT_LIBRARIES)
list(JOIN DETENT_PACKAGES " " DETENT_PACKAGES)

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/detent" TYPE INCLUDE)
install(TARGETS detent_static detent_shared EXPORT detent LIBRARY ARCHIVE)

install(FILES "${PROJECT_SOURCE_DIR}/packaging/detent.service"
    "${PROJECT_SOURCE_DIR}/packaging/detent.socket" DESTINATION "lib/systemd/system")

# detent.pc finds its prefix from its own place, so that the tree may be moved after installing.
file(RELATIVE_PATH DETENT_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${PROJECT_SOURCE_DIR}/cmake/detent.pc.in" "${PROJECT_BINARY_DIR}/detent.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/detent.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/detent")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/detent-config.cmake.in"
    "${PROJECT_BINARY_DIR}/detent-config.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/detent-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/detent-config.cmake"
    "${PROJECT_BINARY_DIR}/detent-config-version.cmake" DESTINATION "${package_folder}")
install(EXPORT detent NAMESPACE detent:: FILE detent-targets.cmake
    DESTINATION "${package_folder}")
