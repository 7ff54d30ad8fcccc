# Functions that make a program large: code, unwind tables, symbols. Nobody calls them.
.text
.macro one
.type namespace_of_a_large_program_with_long_names_of_functions_\@, %function
namespace_of_a_large_program_with_long_names_of_functions_\@:
.cfi_startproc
.skip 48
.cfi_adjust_cfa_offset 16
.skip 48
.cfi_adjust_cfa_offset 32
.skip 32
.cfi_endproc
.size namespace_of_a_large_program_with_long_names_of_functions_\@, . - namespace_of_a_large_program_with_long_names_of_functions_\@
.endm
.rept 390000
one
.endr
.section .note.GNU-stack, "", %progbits
