/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "apps/member_code.h"
#include "unwind/file_request.h"

#include <string.h>

#define WIDE 0x48 /* prefix of an instruction on 64 bits */
#define WORD 0x66 /* prefix that pads an instruction */
#define LOAD 0x8b
#define ADDRESS 0x8d
#define RETURN 0xc3
#define RAX 0
#define RDI 7

struct code {
	const uint8_t *bytes;
	unsigned int at;
};

/* Passes bytes, if they are those. */
static bool passes(struct code *code, const char *bytes, unsigned int count)
{
	if (count > FILE_SYMBOL_BYTES - code->at ||
	    memcmp(code->bytes + code->at, bytes, count) != 0)
		return false;
	code->at += count;
	return true;
}

/* Passes what a function may begin with: endbr64; push %rbp; mov %rsp,%rbp. */
static struct code begin(const uint8_t *bytes)
{
	struct code code = {.bytes = bytes};

	passes(&code, "\xf3\x0f\x1e\xfa", 4);
	passes(&code, "\x55\x48\x89\xe5", 4);
	return code;
}

/* Passes an instruction that loads a member of what a register points to, or makes its address,
 * into %rax or %eax. */
static bool member_take(struct code *code, unsigned int base, int64_t *at)
{
	const uint8_t *bytes = code->bytes + code->at;
	unsigned int left = FILE_SYMBOL_BYTES - code->at, wide = left && bytes[0] == WIDE;
	int32_t distance;

	/* at most: prefix, instruction, registers, 4 bytes */
	if (left < wide + 6 || (bytes[wide] != LOAD && (bytes[wide] != ADDRESS || !wide)))
		return false;
	bytes += wide + 1;
	code->at += wide + 2;
	if (*bytes == base) { /* no distance */
		*at = 0;
	} else if (*bytes == (0x40 | base)) { /* one byte */
		*at = bytes[1] < 0x80 ? bytes[1] : bytes[1] - 0x100;
		code->at++;
	} else if (*bytes == (0x80 | base)) {
		memcpy(&distance, bytes + 1, sizeof(distance));
		*at = distance;
		code->at += sizeof(distance);
	} else {
		return false;
	}
	return true;
}

bool member_of_argument(const uint8_t *bytes, int64_t *at)
{
	struct code code = begin(bytes);

	return member_take(&code, RDI, at);
}

bool member_behind(const uint8_t *bytes, int64_t *at)
{
	struct code code = begin(bytes);

	if (!member_take(&code, RDI, at))
		return false;
	/* test %rax,%rax; je: a jump over the load */
	if (passes(&code, "\x48\x85\xc0\x74", 4))
		code.at++;
	return member_take(&code, RAX, at);
}

bool member_of_thread(const uint8_t *bytes, int64_t *at)
{
	struct code code = begin(bytes);
	int32_t distance;

	while (code.at < FILE_SYMBOL_BYTES && bytes[code.at] == WORD)
		code.at++;
	/* mov %fs:distance,%rax */
	if (!passes(&code, "\x64\x48\x8b\x04\x25", 5) ||
	    FILE_SYMBOL_BYTES - code.at < sizeof(distance))
		return false;
	memcpy(&distance, bytes + code.at, sizeof(distance));
	code.at += sizeof(distance);
	passes(&code, "\x5d", 1); /* pop %rbp */
	*at = distance;
	if (distance) /* the variable itself */
		return code.at < FILE_SYMBOL_BYTES && bytes[code.at] == RETURN;
	return member_take(&code, RAX, at) && *at < 0;
}
