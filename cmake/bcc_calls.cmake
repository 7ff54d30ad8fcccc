# libbcc's calls changed over time; which form this one has is found by compiling, here and nowhere else.
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_INCLUDES ${dep_bcc_INCLUDE})
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
# 0.25 added attach_type
check_c_source_compiles("
#include <bcc/bcc_common.h>
struct bpf_insn;
int f(void *m, struct bpf_insn *i, char *log);
int f(void *m, struct bpf_insn *i, char *log) {
	return bcc_func_load(m, 0, \"n\", i, 0, \"GPL\", 0, 0, log, 0, 0, -1);
}" TSNAP_BCC_LOAD_HAS_ATTACH_TYPE)
unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
unset(CMAKE_REQUIRED_INCLUDES)
if(TSNAP_BCC_LOAD_HAS_ATTACH_TYPE)
	add_compile_definitions(TSNAP_BCC_LOAD_HAS_ATTACH_TYPE)
endif()
