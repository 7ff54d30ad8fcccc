/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/usdt_operand.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

/* An argument that is read: characters from at to end. */
struct words {
	const char *at, *end;
};

static bool take(struct words *words, char character)
{
	if (words->at == words->end || *words->at != character)
		return false;
	words->at++;
	return true;
}

/* Length of the characters of a set. */
static size_t span(const struct words *words, const char *set)
{
	size_t length = 0;

	while (words->at + length < words->end && words->at[length] &&
	       strchr(set, words->at[length]))
		length++;
	return length;
}

/* Reads a decimal or hexadecimal number that may have a sign. */
static bool number_take(struct words *words, int64_t *number)
{
	const char *digits = words->at;
	unsigned long long value;
	bool negative = false;
	char *end;

	if (digits < words->end && (*digits == '-' || *digits == '+'))
		negative = *digits++ == '-';
	if (digits == words->end || *digits < '0' || *digits > '9')
		return false;
	errno = 0;
	value = strtoull(digits, &end, digits[0] == '0' && (digits[1] | 32) == 'x' ? 16 : 10);
	if (errno || end > words->end)
		return false;
	words->at = end;
	*number = (int64_t)(negative ? -value : value);
	return true;
}

/* --- x86-64 */

static bool x86_register_take(struct words *words, uint8_t *number, uint8_t *dropped)
{
	/* by DWARF's numbers; each in 64, 32, 16 and 8 bits */
	static const char names[][4][5] = {
		{"rax", "eax", "ax", "al"},
		{"rdx", "edx", "dx", "dl"},
		{"rcx", "ecx", "cx", "cl"},
		{"rbx", "ebx", "bx", "bl"},
		{"rsi", "esi", "si", "sil"},
		{"rdi", "edi", "di", "dil"},
		{"rbp", "ebp", "bp", "bpl"},
		{"rsp", "esp", "sp", "spl"},
		{"r8", "r8d", "r8w", "r8b"},
		{"r9", "r9d", "r9w", "r9b"},
		{"r10", "r10d", "r10w", "r10b"},
		{"r11", "r11d", "r11w", "r11b"},
		{"r12", "r12d", "r12w", "r12b"},
		{"r13", "r13d", "r13w", "r13b"},
		{"r14", "r14d", "r14w", "r14b"},
		{"r15", "r15d", "r15w", "r15b"},
		{"rip", "", "", ""},
	};
	static const char high[][3] = {"ah", "dh", "ch", "bh"}; /* bits 8 to 15 of the first four */
	size_t length;

	*dropped = 0;
	if (!take(words, '%'))
		return false;
	length = span(words, LETTERS DIGITS);
	for (uint8_t i = 0; length && i < sizeof(names) / sizeof(names[0]); i++)
		for (int width = 0; width < 4; width++)
			if (strlen(names[i][width]) == length &&
			    !memcmp(words->at, names[i][width], length)) {
				words->at += length;
				*number = i;
				return true;
			}
	for (uint8_t i = 0; length == 2 && i < 4; i++)
		if (!memcmp(words->at, high[i], length)) {
			words->at += length;
			*number = i;
			*dropped = 8;
			return true;
		}
	return false;
}

/* Reads name, name+8, 8+name or 8. */
static bool x86_distance_take(struct words *words, struct usdt_operand *operand,
			      char symbol[USDT_SYMBOL_SIZE])
{
	int64_t number;
	size_t length;

	while (words->at < words->end && *words->at != '(') {
		if (number_take(words, &number)) {
			operand->offset += number;
			continue;
		}
		if (*words->at == '+' && words->at + 1 < words->end)
			words->at++;
		length = span(words, LETTERS DIGITS ".$");
		if (!length || length >= USDT_SYMBOL_SIZE || *symbol)
			return false;
		memcpy(symbol, words->at, length);
		symbol[length] = '\0';
		words->at += length;
	}
	return true;
}

/* Reads 8(%rsp), (%rax,%rdx,4) or name(%rip). */
static bool x86_memory_take(struct words *words, struct usdt_operand *operand,
			    char symbol[USDT_SYMBOL_SIZE])
{
	uint8_t dropped = 0;
	int64_t factor = 1;

	operand->place = USDT_MEMORY;
	if (!x86_distance_take(words, operand, symbol) || !take(words, '('))
		return false;
	if (words->at < words->end && *words->at == '%' &&
	    !x86_register_take(words, &operand->base, &dropped))
		return false;
	if (take(words, ',') &&
	    (!x86_register_take(words, &operand->index, &dropped) ||
	     operand->index == USDT_X86_IP || (take(words, ',') && !number_take(words, &factor))))
		return false;
	if (!take(words, ')') || (factor != 1 && factor != 2 && factor != 4 && factor != 8))
		return false;
	while (factor >> operand->scale > 1)
		operand->scale++;
	/* a number alone before (%rip) is counted from the next instruction, which is not known */
	return (operand->base == USDT_X86_IP) == (*symbol != '\0') &&
	       (operand->base != USDT_NO_REGISTER || operand->index != USDT_NO_REGISTER);
}

static bool x86_take(struct words *words, struct usdt_operand *operand,
		     char symbol[USDT_SYMBOL_SIZE])
{
	if (take(words, '$')) {
		operand->place = USDT_CONSTANT;
		return number_take(words, &operand->offset);
	}
	if (words->at < words->end && *words->at == '%') {
		operand->place = USDT_REGISTER;
		return x86_register_take(words, &operand->base, &operand->dropped) &&
		       operand->base != USDT_X86_IP;
	}
	return x86_memory_take(words, operand, symbol);
}

/* --- arm64 */

/* Reads x0, w1 or sp; *zero: it is xzr or wzr. */
static bool arm_register_take(struct words *words, uint8_t *number, bool *zero)
{
	struct words from = *words;
	int64_t value;

	*zero = false;
	if (span(words, LETTERS) == 2 && !memcmp(words->at, "sp", 2)) {
		words->at += 2;
		*number = USDT_ARM_SP;
		return true;
	}
	if (!take(words, 'x') && !take(words, 'w'))
		return false;
	if (span(words, LETTERS) == 2 && !memcmp(words->at, "zr", 2)) {
		words->at += 2;
		*zero = true;
		return true;
	}
	if (span(words, DIGITS) && number_take(words, &value) && value >= 0 && value <= 30) {
		*number = (uint8_t)value;
		return true;
	}
	*words = from;
	return false;
}

/* Reads what follows [x0: ] or , 8] or , x1] or , x1, lsl 3]. */
static bool arm_memory_take(struct words *words, struct usdt_operand *operand)
{
	int64_t shift = 0;
	bool zero;

	operand->place = USDT_MEMORY;
	if (!arm_register_take(words, &operand->base, &zero) || zero)
		return false;
	if (take(words, ']'))
		return true;
	if (!take(words, ','))
		return false;
	words->at += span(words, " ");
	take(words, '#');
	if (number_take(words, &operand->offset))
		return take(words, ']');
	if (!arm_register_take(words, &operand->index, &zero) || zero)
		return false;
	if (take(words, ',')) {
		words->at += span(words, " ");
		if (span(words, LETTERS) != 3 || memcmp(words->at, "lsl", 3) != 0)
			return false;
		words->at += 3;
		words->at += span(words, " ");
		take(words, '#');
		if (!number_take(words, &shift) || shift < 0 || shift > 3)
			return false;
		operand->scale = (uint8_t)shift;
	}
	return take(words, ']');
}

static bool arm_take(struct words *words, struct usdt_operand *operand)
{
	bool zero = false;

	if (take(words, '['))
		return arm_memory_take(words, operand);
	operand->place = USDT_CONSTANT;
	take(words, '#');
	if (number_take(words, &operand->offset))
		return true;
	if (!arm_register_take(words, &operand->base, &zero))
		return false;
	if (!zero)
		operand->place = USDT_REGISTER;
	return true;
}

/* --- any machine */

static bool size_take(struct words *words, struct usdt_operand *operand)
{
	operand->is_signed = take(words, '-');
	if (words->end - words->at < 2 || !strchr("1248", *words->at) || words->at[1] != '@')
		return false;
	operand->bytes = (uint8_t)(*words->at - '0');
	words->at += 2;
	return true;
}

bool usdt_operand_next(const char **at, uint16_t machine, struct usdt_operand *operand,
		       char symbol[USDT_SYMBOL_SIZE])
{
	struct words words;
	bool known;

	*operand = (struct usdt_operand){.base = USDT_NO_REGISTER, .index = USDT_NO_REGISTER};
	*symbol = '\0';
	*at += strspn(*at, " \t");
	if (!**at)
		return false;
	/* spaces are between arguments, and within the brackets of arm64 */
	words.at = words.end = *at;
	for (bool within = false; *words.end && (within || !strchr(" \t", *words.end)); words.end++)
		within = *words.end == '[' || (within && *words.end != ']');
	*at = words.end + strspn(words.end, " \t");
	known = size_take(&words, operand) &&
		(machine == EM_X86_64	 ? x86_take(&words, operand, symbol)
		 : machine == EM_AARCH64 ? arm_take(&words, operand)
					 : false) &&
		words.at == words.end;
	if (!known) {
		operand->place = USDT_UNKNOWN;
		*symbol = '\0';
	}
	return true;
}

bool usdt_operand_is_valid(const struct usdt_operand *operand)
{
	const bool base = operand->base < USDT_REGISTERS, index = operand->index < USDT_REGISTERS;
	const bool no_base = operand->base == USDT_NO_REGISTER;
	const bool no_index = operand->index == USDT_NO_REGISTER;
	const uint8_t bytes = operand->bytes;

	if ((bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) || operand->scale > 3 ||
	    (operand->dropped != 0 && operand->dropped != 8))
		return false;
	switch (operand->place) {
	case USDT_CONSTANT:
		return true;
	case USDT_REGISTER:
		return base;
	case USDT_MEMORY:
		return (base || no_base) && (index || no_index) && (base || index);
	default:
		return false;
	}
}
