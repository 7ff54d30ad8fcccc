/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arguments of USDT probes, which notes of a file have as texts. */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/usdt_operand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void arguments_try(const char *text, size_t size, uint16_t machine)
{
	char symbol[USDT_SYMBOL_SIZE];
	struct usdt_operand operand;
	const char *at = text, *before = text;

	while (usdt_operand_next(&at, machine, &operand, symbol)) {
		if (at <= before || at > text + size ||
		    strnlen(symbol, sizeof(symbol)) == sizeof(symbol))
			abort();
		if (usdt_operand_is_valid(&operand) != (operand.place != USDT_UNKNOWN))
			abort();
		before = at;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		abort();
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	arguments_try(text, size, EM_X86_64);
	arguments_try(text, size, EM_AARCH64);
	free(text);
	return 0;
}
