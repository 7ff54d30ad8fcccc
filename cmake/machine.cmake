# TSNAP_MACHINE: the CPU that is built for, as in the name of src/kernel/registers_*.c, the file that says what its saved
# registers mean.
set(TSNAP_MACHINE ${CMAKE_SYSTEM_PROCESSOR})
string(REPLACE "amd64" "x86_64" TSNAP_MACHINE "${TSNAP_MACHINE}")
string(REPLACE "arm64" "aarch64" TSNAP_MACHINE "${TSNAP_MACHINE}")
set(registers src/kernel/registers_${TSNAP_MACHINE}.c)
if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${registers})
	message(FATAL_ERROR "tsnap does not run on ${TSNAP_MACHINE} yet, on x86_64 and aarch64 only: nothing tells it "
		"what that CPU's saved registers mean (${registers} is missing; src/README.md says what a new CPU takes)")
endif()
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
	message(FATAL_ERROR "tsnap does not run on 32-bit ${TSNAP_MACHINE} yet: it reads 64-bit kernels, "
		"and ${CMAKE_C_COMPILER} makes a 32-bit program")
endif()
