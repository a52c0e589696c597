# SPDX-License-Identifier: Apache-2.0
# For cmake -DCMAKE_TOOLCHAIN_FILE: 64-bit ARM with Debian's cross compiler. CMAKE_SYSROOT is a root file system of arm64, which
# PKG_CONFIG_SYSROOT_DIR and PKG_CONFIG_LIBDIR name, too (tools/arm_check.sh).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_FIND_ROOT_PATH ${CMAKE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
