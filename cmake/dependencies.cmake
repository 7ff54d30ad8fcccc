# Finds the libraries that tsnap links; for a missing one the message names the package to install.
function(tsnap_find target header library debian redhat)
	find_path(${target}_INCLUDE ${header})
	find_library(${target}_LIBRARY ${library})
	if(NOT ${target}_INCLUDE OR NOT ${target}_LIBRARY)
		message(FATAL_ERROR "tsnap needs ${header} and lib${library}: install ${debian} "
			"(Debian, Ubuntu) or ${redhat} (RHEL, SUSE, Amazon), "
			"or run packaging/install-deps build")
	endif()
	add_library(${target} UNKNOWN IMPORTED GLOBAL)
	set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${${target}_LIBRARY}
		INTERFACE_INCLUDE_DIRECTORIES ${${target}_INCLUDE})
endfunction()

tsnap_find(dep_bcc bcc/bcc_common.h bcc_bpf libbpfcc-dev bcc-devel)
tsnap_find(dep_seccomp seccomp.h seccomp libseccomp-dev libseccomp-devel)
tsnap_find(dep_zstd zstd.h zstd libzstd-dev libzstd-devel)
# Profiles for pprof are packed with gzip.
tsnap_find(dep_z zlib.h z zlib1g-dev zlib-devel)
# ncurses with wide characters: on some distributions the header is ncursesw/curses.h, and terminfo a library of its own.
tsnap_find(dep_ncurses curses.h ncursesw libncurses-dev ncurses-devel)
find_library(TINFO_LIBRARY NAMES tinfow tinfo)
if(TINFO_LIBRARY)
	set_property(TARGET dep_ncurses APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${TINFO_LIBRARY})
endif()
