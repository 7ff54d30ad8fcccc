/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/live_irq.h"
#include "base/host_file.h"
#include "base/index.h"
#include "base/names.h"
#include "base/text.h"
#include "kernel/record.h"
#include "unwind/kernel_stack.h"

#include <stdio.h>
#include <string.h>

/* By number, as enum of include/linux/interrupt.h: none has changed since 3.6. */
static const char *const softirqs[] = {"HI",	   "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
				       "IRQ_POLL", "TASKLET", "SCHED",	"HRTIMER", "RCU"};

/* Adds what the owners of an interrupt call it, from /sys (4.9). */
static void actions_add(uint32_t number, struct text *to)
{
	char path[64], words[128];
	ssize_t length;

	snprintf(path, sizeof(path), "/sys/kernel/irq/%u/actions", number);
	length = host_file_read(path, words, sizeof(words));
	if (length <= 0 || words[0] == '\n')
		return;
	words[strcspn(words, "\n")] = '\0';
	text_add_char(to, ' ');
	text_add_printable(to, words);
}

static void function_add(uint64_t handler, struct text *to)
{
	static struct kernel_symbols symbols;
	static bool tried;
	const char *function;

	if (!tried)
		kernel_symbols_read(&symbols, "/proc/kallsyms");
	tried = true;
	function = kernel_symbol_find(&symbols, handler);
	if (function)
		text_add_format(to, " (%.*s)", (int)strcspn(function, "+"), function);
}

const char *live_irq_name(uint32_t number, uint64_t handler)
{
	static struct index names;
	uint64_t *known = index_put(&names, hash_u64(handler + number), NULL);
	const uint32_t vector = number & ~IRQ_SOFT;
	struct text words = {0};

	if (*known)
		return (const char *)(uintptr_t)*known;
	if (!(number & IRQ_SOFT)) {
		text_add_format(&words, "hardirq %u", number);
		actions_add(number, &words);
		if (handler)
			function_add(handler, &words);
	} else if (vector < sizeof(softirqs) / sizeof(softirqs[0])) {
		text_add_format(&words, "softirq %s", softirqs[vector]);
	} else {
		text_add_format(&words, "softirq %u", vector);
	}
	*known = (uintptr_t)name_of_string(text_string(&words));
	text_done(&words);
	return (const char *)(uintptr_t)*known;
}
