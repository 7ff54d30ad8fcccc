/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text that users may type after --probe, and after --context. None of its words may become part of
 * the BPF text: that has identifiers of tsnap's own, numbers and the signs of C only. */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/own_probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* True for an identifier that the text may have. */
static bool is_own(const char *word, size_t length)
{
	static const char *const words[] = {"int",
					    "struct",
					    "pt_regs",
					    "ctx",
					    "bpf_raw_tracepoint_args",
					    "__u64",
					    "__s64",
					    "__s32",
					    "now_ns",
					    "bpf_ktime_get_ns",
					    "call",
					    "if",
					    "return",
					    "probe_call",
					    "probe_begins",
					    "began_ns",
					    "probe_ns",
					    "probe_ends",
					    "PROBE_STACK",
					    "PROBE_STACK_RETURNED",
					    "PROBE_KEPT",
					    "PROBE_ARGUMENT",
					    "PROBE_RAW_ARGUMENT",
					    "PROBE_RESULT",
					    "probe_count",
					    "probe_each",
					    "probe_text",
					    "probe_hold",
					    "PROBE_REGISTER",
					    "PROBE_READ",
					    "PROBE_PLACE",
					    "at",
					    "else",
					    "__u8",
					    "__s8",
					    "__u16",
					    "__s16",
					    "__u32",
					    "probe_0_entry",
					    "probe_0_return",
					    "probe_time",
					    "probe_amount"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == length && !memcmp(words[i], word, length))
			return true;
	for (size_t i = 1; i < length; i++)
		if (!isdigit((unsigned char)word[i]))
			return false;
	return *word == 'v' && length > 1;
}

static void text_check(const char *text)
{
	while (*text) {
		size_t length = 0;

		while (isalnum((unsigned char)text[length]) || text[length] == '_')
			length++;
		if (length && !isdigit((unsigned char)*text))
			must(is_own(text, length));
		must(length || strchr(" \t\n(){};,.*&|!=<>-+", *text));
		text += length ? length : 1;
	}
}

/* Fills sites whose operands have the bytes of the input, as far as those are valid. */
static void target_fill(struct own_target *target, const uint8_t *data, size_t size)
{
	struct usdt_operand operand;

	memset(target, 0, sizeof(*target));
	while (target->site_count < 3) {
		struct own_site *site = &target->sites[target->site_count++];

		for (size_t i = 0; i < OWN_PROBE_FIELDS; i++) {
			operand = (struct usdt_operand){.place = USDT_REGISTER, .bytes = 8};
			if (size >= sizeof(operand) * target->site_count)
				memcpy(&operand, data + i % (size - sizeof(operand) + 1),
				       sizeof(operand));
			operand.place &= 3;
			operand.bytes = (uint8_t)(1 << (operand.bytes & 3));
			operand.base %= USDT_REGISTERS;
			operand.index %= USDT_REGISTERS;
			operand.scale &= 3;
			operand.dropped &= 8;
			operand.is_signed = size & 1;
			must(!operand.place || usdt_operand_is_valid(&operand));
			site->operands[i] = operand;
			site->offset = size + target->site_count;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct own_item *item = calloc(1, sizeof(*item));
	struct own_probe *probe = item ? &item->probe : NULL;
	char *text = malloc(size + 1);
	struct text written = {0};
	struct error e = {0};

	if (!text || !probe)
		abort();
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	if (own_context_is(text) ? !own_context_parse(text, item, &e)
				 : !own_probe_parse(text, probe, &e)) {
		must(own_probe_enters(probe) || own_probe_returns(probe));
		must(*probe->name && *probe->point && probe->field_count <= OWN_PROBE_FIELDS);
		must(probe->result != OWN_HELD || (*item->ends[0].point && probe->field_count));
		target_fill(&item->target, data, size);
		own_item_text_write(item, 0, &written);
		text_check(text_string(&written));
	} else {
		must(e.exit_code == EXIT_USAGE && *e.line);
	}
	text_done(&written);
	error_done(&e);
	free(item);
	free(text);
	return 0;
}
