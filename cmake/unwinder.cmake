# Libraries for user stacks. libdw reads unwind tables; -DTSNAP_UNWINDER=OFF builds without it, and walks follow frame pointers.
# Two others are optional: liblzma reads .gnu_debugdata, libiberty makes C++ and Rust names readable.
if(TSNAP_UNWINDER)
	tsnap_find(dep_dw elfutils/libdw.h dw libdw-dev elfutils-devel)
	tsnap_find(dep_elf libelf.h elf libelf-dev elfutils-libelf-devel)
endif()

# unwinder_optional(TARGET DEFINITION HEADER LIBRARY): links the library and sets the definition, if it is installed.
function(unwinder_optional target definition header library)
	find_path(${definition}_INCLUDE ${header})
	find_library(${definition}_LIBRARY ${library})
	if(NOT ${definition}_INCLUDE OR NOT ${definition}_LIBRARY)
		message(STATUS "lib${library} is missing: ${definition} is off")
		return()
	endif()
	target_compile_definitions(${target} PRIVATE ${definition})
	target_include_directories(${target} PRIVATE ${${definition}_INCLUDE})
	target_link_libraries(${target} PRIVATE ${${definition}_LIBRARY})
endfunction()

# unwinder_choose(WALK FILES): chooses libraries of WALK, the folder that walks stacks, and libraries of FILES, which reads ELF
# files.
function(unwinder_choose walk files)
	if(TSNAP_UNWINDER)
		target_compile_definitions(${walk} PRIVATE TSNAP_HAS_UNWINDER)
		target_link_libraries(${walk} PRIVATE dep_dw dep_elf)
		unwinder_optional(${files} TSNAP_HAS_LZMA lzma.h lzma)
		unwinder_optional(${files} TSNAP_HAS_DEMANGLE libiberty/demangle.h iberty)
	endif()
	target_link_libraries(${walk} PRIVATE Threads::Threads)
endfunction()
find_package(Threads REQUIRED)
