# SPDX-License-Identifier: Apache-2.0
# libleeway.a and libleeway.so from the objects of all folders below the command line, and `cmake --install`:
# program, its modules, libraries, header, pkg-config file, CMake package (leeway::leeway shared, leeway::static).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(objects "")
foreach(folder ${LW_FOLDERS})
  if(NOT folder STREQUAL lw_cli)
    list(APPEND objects $<TARGET_OBJECTS:${folder}>)
    list(APPEND LW_OBJECT_FOLDERS ${folder})
  endif()
endforeach()
set(outside PkgConfig::JANSSON PkgConfig::YAML PkgConfig::PNG PkgConfig::TURBOJPEG PkgConfig::ARCHIVE
  ${LW_WEBP_TARGET}   m Threads::Threads)

# One object with everything, its hidden (private) symbols made local: nothing but leeway.h's names in libleeway.a.
set(whole ${CMAKE_BINARY_DIR}/generated/leeway_whole.o)
add_custom_command(OUTPUT ${whole} DEPENDS ${LW_OBJECT_FOLDERS} ${objects} COMMAND_EXPAND_LISTS VERBATIM
  COMMAND ${CMAKE_LINKER} -r -o ${whole} ${objects}
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${whole})
add_library(leeway_static STATIC ${whole})
set_source_files_properties(${whole} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
set_target_properties(leeway_static PROPERTIES OUTPUT_NAME leeway)

add_library(leeway_shared SHARED ${objects})
set_target_properties(leeway_shared PROPERTIES OUTPUT_NAME leeway VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME leeway LINK_DEPENDS ${CMAKE_SOURCE_DIR}/tools/leeway.map)
target_link_libraries(leeway_shared PRIVATE ${outside})
target_link_options(leeway_shared PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/tools/leeway.map)
if(NOT LW_SANITIZE)
  target_link_options(leeway_shared PRIVATE -Wl,--no-undefined)
endif()
target_include_directories(leeway_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# Objects alone carry no language for the linker.
set_target_properties(leeway_static leeway_shared PROPERTIES LINKER_LANGUAGE C)

if(LW_WEBP_LIB)
  set(LW_WEBP_FLAG "-l${LW_WEBP_LIB} ")
  set(LW_WEBP_LINK "${LW_WEBP_LIB};")
endif()
# From the folder of leeway.pc to the prefix, so that an installed tree may be moved.
file(RELATIVE_PATH LW_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/leeway)
configure_file(${CMAKE_SOURCE_DIR}/tools/leeway.pc.in ${CMAKE_BINARY_DIR}/generated/leeway.pc @ONLY)
configure_package_config_file(${CMAKE_SOURCE_DIR}/tools/leeway-config.cmake.in
  ${CMAKE_BINARY_DIR}/generated/leeway-config.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/leeway-config-version.cmake
  COMPATIBILITY SameMinorVersion)

# Where the program looks for its modules, seen from its own folder.
file(RELATIVE_PATH LW_MODULE_FOLDER /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR}/leeway)
set_source_files_properties(src/base/sys/sys_module.c PROPERTIES
  COMPILE_DEFINITIONS "LW_MODULE_FOLDER=\"${LW_MODULE_FOLDER}\"")

install(TARGETS leeway RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(LW_MODULES)
  install(TARGETS ${LW_MODULES} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/leeway)
endif()
install(TARGETS leeway_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS leeway_shared EXPORT leeway-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT leeway-targets NAMESPACE leeway:: DESTINATION ${package_dir})
install(FILES ${CMAKE_SOURCE_DIR}/include/leeway.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_BINARY_DIR}/generated/leeway.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${CMAKE_BINARY_DIR}/generated/leeway-config.cmake
  ${CMAKE_BINARY_DIR}/generated/leeway-config-version.cmake DESTINATION ${package_dir})
