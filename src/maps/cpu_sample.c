/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/cpu_sample.h"
#include "kernel/registers.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

/* The words of a record that are not read yet. */
struct words {
	const uint64_t *at;
	size_t count;
};

/* Takes the next count words. NULL: fewer are left. */
static const uint64_t *words_take(struct words *words, uint64_t count)
{
	const uint64_t *taken = words->at;

	if (count > words->count)
		return NULL;
	words->at += count;
	words->count -= count;
	return taken;
}

/* Returns the part of the chain after the mark of its context, PERF_CONTEXT_KERNEL or _USER; marks
 * are numbers that no address can be. */
static const uint64_t *chain_part(const uint64_t *chain, uint64_t count, uint64_t mark,
				  uint32_t *part_count)
{
	uint64_t first = 0, end;

	while (first < count && chain[first] != mark)
		first++;
	first += first < count;
	for (end = first; end < count && chain[end] < (uint64_t)PERF_CONTEXT_MAX;)
		end++;
	*part_count = (uint32_t)(end - first);
	return chain + first;
}

static bool chain_take(struct words *words, struct cpu_sample *sample)
{
	const uint64_t *count = words_take(words, 1), *chain;

	chain = count ? words_take(words, *count) : NULL;
	if (!chain)
		return false;
	sample->kernel =
		chain_part(chain, *count, (uint64_t)PERF_CONTEXT_KERNEL, &sample->kernel_count);
	sample->user = chain_part(chain, *count, (uint64_t)PERF_CONTEXT_USER, &sample->user_count);
	return true;
}

/* Raw data is a 32-bit size and that many bytes, which end where a word does. */
static bool raw_take(struct words *words, struct cpu_sample *sample)
{
	const uint64_t *raw = words->at;
	uint32_t bytes;

	if (!words->count)
		return false;
	memcpy(&bytes, raw, sizeof(bytes));
	if (bytes % 8 != 4 || !words_take(words, (bytes + 4ull) / 8))
		return false;
	sample->raw = (const char *)raw + sizeof(bytes);
	sample->raw_bytes = bytes;
	return true;
}

static bool registers_take(struct words *words, uint64_t mask, struct cpu_sample *sample)
{
	const uint64_t *abi = words_take(words, 1), *values;

	if (!abi || *abi == PERF_SAMPLE_REGS_ABI_NONE) /* a kernel thread */
		return abi;
	values = words_take(words, (uint64_t)__builtin_popcountll(mask));
	if (!values)
		return false;
	registers_sampled(values, *abi == PERF_SAMPLE_REGS_ABI_32, &sample->registers);
	sample->registers_known = sample->registers.sp; /* workers of io_uring never were there */
	return true;
}

static bool stack_take(struct words *words, struct cpu_sample *sample)
{
	const uint64_t *bytes = words_take(words, 1), *stack, *copied;

	if (!bytes || !*bytes)
		return bytes;
	stack = words_take(words, *bytes / 8);
	copied = stack ? words_take(words, 1) : NULL;
	if (!copied || *copied > *bytes / 8 * 8)
		return false;
	sample->stack = stack;
	sample->stack_bytes = (size_t)*copied;
	return true;
}

int cpu_sample_parse(const void *record, size_t bytes, uint64_t sample_type,
		     uint64_t registers_mask, struct cpu_sample *sample)
{
	struct words words = {record, bytes / 8};
	struct perf_event_header header;
	const uint64_t *head;
	uint32_t ids[2];

	*sample = (struct cpu_sample){.time_ns = 0};
	head = words_take(&words, 3); /* perf_event_header; pid and tid; time */
	if (!head)
		return -EBADMSG;
	memcpy(&header, head, sizeof(header));
	sample->in_kernel =
		(header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	memcpy(ids, &head[1], sizeof(ids));
	sample->tid = ids[1];
	sample->time_ns = (int64_t)head[2];
	if ((sample_type & PERF_SAMPLE_CALLCHAIN && !chain_take(&words, sample)) ||
	    (sample_type & PERF_SAMPLE_RAW && !raw_take(&words, sample)) ||
	    (sample_type & PERF_SAMPLE_REGS_USER &&
	     !registers_take(&words, registers_mask, sample)) ||
	    (sample_type & PERF_SAMPLE_STACK_USER && !stack_take(&words, sample)))
		return -EBADMSG;
	return 0;
}

size_t cpu_sample_raw_at(const struct cpu_sample_head *head, uint64_t sample_type)
{
	size_t at = offsetof(struct cpu_sample_head, chain_count) + sizeof(uint32_t);

	if (!(sample_type & PERF_SAMPLE_CALLCHAIN))
		return at;
	return head->chain_count < UINT16_MAX / sizeof(uint64_t)
		       ? at + (1 + head->chain_count) * sizeof(uint64_t)
		       : SIZE_MAX;
}
