# TSNAP_BUNDLE (packaging/package bundle): builds tsnap as one static program with libbcc, LLVM and all other libraries in it. Such a program
# needs nothing of a host but its kernel: no C library, no loader, no files. The libraries are those of the distribution that builds it.

# bundle_begin(): has libraries be found as archives, and programs be linked without any other.
macro(bundle_begin)
	set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
	string(REPLACE "-pie" "-static-pie" CMAKE_EXE_LINKER_FLAGS "${CMAKE_EXE_LINKER_FLAGS}")
	add_compile_options(-ffunction-sections -fdata-sections)
	add_compile_definitions(TSNAP_BUNDLE)
endmacro()

# bundle_llvm(FOLDER): sets FOLDER to that of the LLVM that libbcc was built with, because another release has other functions.
function(bundle_llvm folder)
	get_filename_component(libraries ${dep_bcc_LIBRARY} DIRECTORY)
	execute_process(COMMAND ${CMAKE_READELF} -d ${libraries}/libbcc.so OUTPUT_VARIABLE needed)
	if(NOT needed MATCHES "libLLVM(-|[.]so[.])([0-9]+)")
		message(FATAL_ERROR "${libraries}/libbcc.so needs no libLLVM: nothing says which LLVM libbcc.a was built with")
	endif()
	set(found /usr/lib/llvm-${CMAKE_MATCH_2}/lib)
	foreach(name clangFrontend LLVMBPFCodeGen)
		if(NOT EXISTS ${found}/lib${name}.a)
			message(FATAL_ERROR "a bundle needs ${found}/lib${name}.a: run packaging/install-deps bundle")
		endif()
	endforeach()
	set(${folder} ${found} PARENT_SCOPE)
endfunction()

# bundle_finish(PROGRAM KERNEL): adds libbcc, LLVM and packaging/bundle to the program; KERNEL, the folder that loads libbcc elsewhere, calls
# the linked one.
function(bundle_finish program kernel)
	set(here ${PROJECT_SOURCE_DIR}/packaging/bundle)
	set(made ${CMAKE_BINARY_DIR}/bundle)
	bundle_llvm(llvm)
	file(GLOB compiler ${llvm}/libclang*.a ${llvm}/libLLVM*.a)
	set(archives)
	foreach(name bcc bpf dw elf bz2 lzma zstd z seccomp ncursesw tinfo iberty)
		find_library(BUNDLE_${name} ${name})
		if(NOT BUNDLE_${name})
			message(FATAL_ERROR "a bundle needs lib${name}.a: run packaging/install-deps bundle")
		endif()
		list(APPEND archives ${BUNDLE_${name}})
	endforeach()

	# what the program says of its parts, and the terminals that it knows
	file(MAKE_DIRECTORY ${made})
	execute_process(COMMAND ${here}/contents ${made} ${archives} ${llvm}/libclangFrontend.a ${llvm}/libLLVMCore.a RESULT_VARIABLE failed)
	if(failed)
		message(FATAL_ERROR "packaging/bundle/contents failed, see above")
	endif()

	get_target_property(sources ${kernel} SOURCES)
	list(FILTER sources EXCLUDE REGEX "/bcc_library[.]c$")
	list(APPEND sources ${here}/bcc_library.c)
	set_target_properties(${kernel} PROPERTIES SOURCES "${sources}")
	target_sources(${program} PRIVATE ${here}/accounts.c ${here}/terminals.c ${here}/parts.c)
	target_include_directories(${program} PRIVATE ${made})
	target_compile_definitions(${program} PRIVATE BUNDLE_FOLDER="${made}")

	# a linker script in place of a library, because the archives need each other; it comes after all that needs any of them
	add_library(bundle_missing STATIC ${here}/missing.c)
	set_target_properties(bundle_missing PROPERTIES ARCHIVE_OUTPUT_DIRECTORY ${made})
	add_dependencies(${program} bundle_missing)
	list(APPEND archives ${compiler} ${made}/libbundle_missing.a)
	string(REPLACE ";" "\n\t" lines "${archives}")
	file(WRITE ${made}/libraries.ld "GROUP(\n\t${lines}\n)\n")
	foreach(library dep_bcc dep_seccomp dep_zstd dep_z dep_ncurses dep_dw dep_elf)
		if(TARGET ${library})
			set_property(TARGET ${library} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${made}/libraries.ld stdc++ m gcc_eh)
		endif()
	endforeach()
	# muldefs: bcc_procutils_each_ksym() of packaging/bundle/bcc_library.c comes before libbcc's
	target_link_libraries(${program} PRIVATE -Wl,--gc-sections -Wl,-z,muldefs -Wl,-z,pack-relative-relocs -Wl,-z,separate-code -Wl,--wrap=setupterm -Wl,-T,${here}/compiler.ld)
	add_executable(bundle-pack ${here}/pack.c)
	target_link_libraries(bundle-pack PRIVATE dep_zstd)
	set_property(TARGET ${program} APPEND PROPERTY LINK_DEPENDS ${here}/compiler.ld)
endfunction()
