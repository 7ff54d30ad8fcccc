# Cross build for arm64: cmake -DCMAKE_TOOLCHAIN_FILE=cmake/arm64.cmake -DCMAKE_SYSROOT=DIR [-DCMAKE_C_COMPILER=clang]
# DIR: a tree of arm64 libraries and headers, as tests/arm64/sysroot-make makes one.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
# CMake's own trials of the compiler read this file, too, and get only the variables that are listed here
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CMAKE_SYSROOT)

set(triple aarch64-linux-gnu)
if(NOT CMAKE_C_COMPILER)
	set(CMAKE_C_COMPILER ${triple}-gcc)
endif()
set(CMAKE_C_COMPILER_TARGET ${triple})
set(CMAKE_LIBRARY_ARCHITECTURE ${triple})
# the tree's libraries come before the cross compiler's own C library, which may be of another release
set(CMAKE_EXE_LINKER_FLAGS_INIT -L${CMAKE_SYSROOT}/usr/lib/${triple})

set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# ctest runs the arm64 programs with this emulator
find_program(QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static)
if(QEMU_AARCH64)
	set(CMAKE_CROSSCOMPILING_EMULATOR ${QEMU_AARCH64} -cpu max,pauth-impdef=on -L ${CMAKE_SYSROOT})
endif()
