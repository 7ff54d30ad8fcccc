# Options of the compiler and the linker against exploits: checked writes of the C library, canaries and probes of the stack, jumps only to
# permitted targets, addresses that differ in each run, and tables that can't be written to. Each is used where the compiler has it. Options
# that packagers give in CFLAGS are kept. With sanitizers there is none of this, because they have checks of their own.
include(CheckCSourceCompiles)

# hardening_try(FLAG): adds the flag if the compiler takes it without a warning.
function(hardening_try flag)
	string(MAKE_C_IDENTIFIER "TSNAP_HAS${flag}" result)
	set(CMAKE_REQUIRED_FLAGS "-Werror ${flag}")
	check_c_source_compiles("int main(void) { return 0; }" ${result})
	if(${result})
		add_compile_options(${flag})
	endif()
endfunction()

# hardening_fortify(): sets _FORTIFY_SOURCE to the highest level that the C library knows; it has no effect without optimisation.
function(hardening_fortify)
	foreach(level 3 2)
		set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level}")
		check_c_source_compiles("#include <string.h>
			#if __USE_FORTIFY_LEVEL < ${level}
			#error
			#endif
			int main(void) { return 0; }" TSNAP_FORTIFY_${level})
		if(TSNAP_FORTIFY_${level})
			set(optimised $<OR:$<CONFIG:Release>,$<CONFIG:RelWithDebInfo>,$<CONFIG:MinSizeRel>>)
			add_compile_options($<${optimised}:-U_FORTIFY_SOURCE> $<${optimised}:-D_FORTIFY_SOURCE=${level}>)
			return()
		endif()
	endforeach()
endfunction()

if(NOT TSNAP_SANITIZE)
	hardening_fortify()
	# not CMAKE_POSITION_INDEPENDENT_CODE: our static libraries would get -fPIC, and no function of theirs would be inlined
	hardening_try(-fPIE)
	hardening_try(-fstack-protector-strong)
	hardening_try(-fstack-clash-protection)
	if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64")
		hardening_try(-fcf-protection)
	else()
		hardening_try(-mbranch-protection=standard)
	endif()
	set(CMAKE_EXE_LINKER_FLAGS "${CMAKE_EXE_LINKER_FLAGS} -pie -Wl,-z,relro,-z,now,-z,noexecstack")
endif()
