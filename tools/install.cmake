# SPDX-License-Identifier: Apache-2.0
# libleeway.a and libleeway.so: the objects of src/api and, of the folders below it, those that these reach, so that a
# program that links them needs no reader of pictures, archives or videos (docs/adr/0022-a-small-library.md); and
# `cmake --install`: program, its modules, libraries, header, pkg-config file, CMake package (leeway::leeway shared,
# leeway::static).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Folders that src/api stands on.
set(below lw_api)
set(open lw_api)
while(open)
  list(POP_FRONT open folder)
  get_target_property(deps ${folder} LINK_LIBRARIES)
  list(FILTER deps INCLUDE REGEX "^lw_")
  list(REMOVE_ITEM deps ${below})
  list(APPEND below ${deps})
  list(APPEND open ${deps})
endwhile()
list(REMOVE_DUPLICATES below)
list(REMOVE_ITEM below lw_api)
list(TRANSFORM below REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)

# One object with everything, its hidden (private) symbols made local: nothing but leeway.h's names in libleeway.a.
set(whole ${CMAKE_BINARY_DIR}/generated/leeway_whole.o)
add_custom_command(OUTPUT ${whole} DEPENDS lw_api ${below} $<TARGET_OBJECTS:lw_api> ${archives} COMMAND_EXPAND_LISTS VERBATIM
  COMMAND ${CMAKE_LINKER} -r -o ${whole} $<TARGET_OBJECTS:lw_api> --start-group ${archives} --end-group
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${whole})
add_library(leeway_static STATIC ${whole})
set_source_files_properties(${whole} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
set_target_properties(leeway_static PROPERTIES OUTPUT_NAME leeway)

add_library(leeway_shared SHARED $<TARGET_OBJECTS:lw_api>)
set_target_properties(leeway_shared PROPERTIES OUTPUT_NAME leeway VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME leeway LINK_DEPENDS ${CMAKE_SOURCE_DIR}/tools/leeway.map)
target_link_libraries(leeway_shared PRIVATE lw_api)
# --as-needed: libraries that only unreached objects use are not named.
target_link_options(leeway_shared PRIVATE -Wl,--as-needed -Wl,--version-script=${CMAKE_SOURCE_DIR}/tools/leeway.map)
if(NOT LW_SANITIZE)
  target_link_options(leeway_shared PRIVATE -Wl,--no-undefined)
endif()
target_include_directories(leeway_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# Objects alone carry no language for the linker.
set_target_properties(leeway_static leeway_shared PROPERTIES LINKER_LANGUAGE C)

# From the folder of leeway.pc to the prefix, so that an installed tree may be moved.
file(RELATIVE_PATH LW_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/leeway)
configure_file(${CMAKE_SOURCE_DIR}/tools/leeway.pc.in ${CMAKE_BINARY_DIR}/generated/leeway.pc @ONLY)
configure_package_config_file(${CMAKE_SOURCE_DIR}/tools/leeway-config.cmake.in
  ${CMAKE_BINARY_DIR}/generated/leeway-config.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/leeway-config-version.cmake
  COMPATIBILITY SameMinorVersion)

# Manual pages and completions, written by the program itself.
set(pages ${CMAKE_BINARY_DIR}/generated/share)
add_custom_command(OUTPUT ${pages}/man/man1/leeway.1 DEPENDS leeway VERBATIM
  COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:leeway> -DDIR=${pages} -P ${CMAKE_SOURCE_DIR}/tools/pages.cmake)
add_custom_target(leeway_pages ALL DEPENDS ${pages}/man/man1/leeway.1)
add_dependencies(programs leeway_pages)
install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT tools)

# Where the program looks for its modules, seen from its own folder.
file(RELATIVE_PATH LW_MODULE_FOLDER /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR}/leeway)
set_source_files_properties(src/base/sys/sys_module.c PROPERTIES
  COMPILE_DEFINITIONS "LW_MODULE_FOLDER=\"${LW_MODULE_FOLDER}\"")

install(TARGETS leeway RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
if(LW_MODULES)
  install(TARGETS ${LW_MODULES} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/leeway COMPONENT tools)
endif()
install(TARGETS leeway_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(TARGETS leeway_shared EXPORT leeway-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev)
install(EXPORT leeway-targets NAMESPACE leeway:: DESTINATION ${package_dir} COMPONENT dev)
install(FILES ${CMAKE_SOURCE_DIR}/include/leeway.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT dev)
install(FILES ${CMAKE_BINARY_DIR}/generated/leeway.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
install(FILES ${CMAKE_BINARY_DIR}/generated/leeway-config.cmake
  ${CMAKE_BINARY_DIR}/generated/leeway-config-version.cmake DESTINATION ${package_dir} COMPONENT dev)

include(${CMAKE_SOURCE_DIR}/tools/package.cmake)
