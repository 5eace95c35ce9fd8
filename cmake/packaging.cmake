# SPDX-License-Identifier: BSD-3-Clause
# What others find an installed vecmpi by: a CMake package and a pkg-config file for vecmpi/team.h, an environment
# module, a Debian package (cpack -G DEB) and an archive (cpack -G TGZ).
include(CMakePackageConfigHelpers)

# Prefix and folders are worked out from where the files lie: an archive may be unpacked anywhere.
set(vecmpi_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/vecmpi)
install(EXPORT vecmpi_targets NAMESPACE vecmpi:: FILE vecmpi-targets.cmake DESTINATION ${vecmpi_package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/packaging/vecmpi-config.cmake.in
                              ${PROJECT_BINARY_DIR}/packaging/vecmpi-config.cmake
                              INSTALL_DESTINATION ${vecmpi_package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/packaging/vecmpi-config-version.cmake
                                 COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/packaging/vecmpi-config.cmake
              ${PROJECT_BINARY_DIR}/packaging/vecmpi-config-version.cmake
        DESTINATION ${vecmpi_package_dir})

file(RELATIVE_PATH vecmpi_prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/packaging/vecmpi-team.pc.in ${PROJECT_BINARY_DIR}/packaging/vecmpi-team.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/packaging/vecmpi-team.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(vecmpi_module_dir ${CMAKE_INSTALL_DATADIR}/vecmpi/modulefiles/vecmpi)
file(RELATIVE_PATH vecmpi_prefix_from_module /${vecmpi_module_dir} /)
configure_file(${PROJECT_SOURCE_DIR}/packaging/modulefile.in
               ${PROJECT_BINARY_DIR}/packaging/${PROJECT_VERSION} @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/packaging/${PROJECT_VERSION} DESTINATION ${vecmpi_module_dir})

set(CPACK_PACKAGE_VENDOR "vecmpi")
set(CPACK_PACKAGE_CONTACT "the maintainers of vecmpi <maintainers@vecmpi.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "faster communication for unmodified MPI programs (MPICH family)")
set(CPACK_PACKAGE_DESCRIPTION
    "libvecmpi.so is preloaded into an MPI program: SIMD reductions, packing of
derived datatypes by plans, collectives as pipelined schedules and through the
memory of a node, communication on a thread of its own.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)

# ---- the Debian package -------------------------------------------------------------------------------
set(vecmpi_debian ${PROJECT_SOURCE_DIR}/packaging/debian)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${vecmpi_debian}/triggers ${vecmpi_debian}/shlibs)
# What the programs are linked with. The libraries link no MPI, and libvecmpi.so loads libnuma where it is there.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "python3")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "mpich, libnuma1")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "iproute2, python3-matplotlib")
set(CPACK_PRE_BUILD_SCRIPTS ${vecmpi_debian}/finish.cmake)
include(CPack)
