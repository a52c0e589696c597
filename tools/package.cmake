# SPDX-License-Identifier: Apache-2.0
# Packages of Debian (`cpack -G DEB`, `./run package`): leeway (program, modules, manual pages, completions), the library
# libleeway0, and libleeway-dev. What they depend on is read off the binaries (dpkg-shlibdeps).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME leeway)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "Leeway developers <leeway@localhost>" CACHE STRING "maintainer named in packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains and runs image generators on the CPU")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL tools library dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME leeway)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "Program
 One-step drifting generators and DDPMs, encoders, comparisons, live streams and
 proofs, with the same bits for any number of threads.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libleeway${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "Shared library
 Runs trained networks, samples pictures and computes drift fields from C.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libleeway-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
# What libleeway.a needs has to be there to be linked (leeway::static, pkg-config --static).
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} (= ${PROJECT_VERSION}), libjansson-dev")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Development files
 Header, static library, pkg-config file and CMake package of libleeway.")
include(CPack)
