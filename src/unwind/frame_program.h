/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits of the programs in unwind tables, which say where a function's registers are saved. libdw
 * runs them, and takes memory for the highest register number that one names and for each state
 * that it remembers; so it is never given one that breaks these limits.
 */
#ifndef TSNAP_UNWIND_FRAME_PROGRAM_H
#define TSNAP_UNWIND_FRAME_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_PROGRAM_REGISTERS 128u /* arm64's vector registers end at 127 */
#define FRAME_PROGRAM_STATES 16u     /* states remembered at once; those programs remember 1 */
#define FRAME_PROGRAM_BYTES 65536u   /* the largest of 1700 programs and libraries has 22171 */
#define FRAME_PROGRAM_EXPRESSION_BYTES 1024u

/* Reads a number of DWARF's (LEB128), signed or not; *at is after it then. False: the number does
 * not end before end, or within 10 bytes. */
bool leb128_take(const uint8_t **at, const uint8_t *end, uint64_t *value);

/* True if a program of call frame instructions is whole and within the limits. */
bool frame_program_fits(const uint8_t *at, const uint8_t *end);

#endif
