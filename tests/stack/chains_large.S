/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a program large: so many functions, each with a name and a row of the unwind table. */
	.text
	.macro function
	.type large_\@, @function
large_\@:
	.cfi_startproc
	nop
	.cfi_endproc
	.size large_\@, 1
	.endm
	.rept 200000
	function
	.endr
	.section .note.GNU-stack, "", @progbits
