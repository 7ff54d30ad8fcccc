/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Perf samples, made here as perf_event_open(2) lays them out, whole and cut at every word. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "maps/cpu_sample.h"
#include "kernel/registers.h"
#include "unit.h"

#define TYPE \
	(CPU_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
#define KERNEL ((uint64_t)PERF_CONTEXT_KERNEL)
#define USER ((uint64_t)PERF_CONTEXT_USER)

struct record {
	uint64_t words[128];
	size_t count;
};

static void word_add(struct record *record, uint64_t word)
{
	record->words[record->count++] = word;
}

static void words_add(struct record *record, const uint64_t *words, size_t count)
{
	word_add(record, count);
	for (size_t i = 0; i < count; i++)
		word_add(record, words[i]);
}

static void head_add(struct record *record)
{
	uint32_t ids[2] = {4000, 4711};

	*record = (struct record){.count = 1};
	word_add(record, 0);
	memcpy(&record->words[1], ids, sizeof(ids));
	word_add(record, 123456789);
}

/* Adds registers, each with the value of its position in the sample, times 100. */
static void registers_add(struct record *record, uint64_t abi)
{
	word_add(record, abi);
	for (int i = 0; i < __builtin_popcountll(registers_sample_mask); i++)
		word_add(record, (uint64_t)i * 100);
}

static int parse(const struct record *record, uint64_t type, struct cpu_sample *sample)
{
	return cpu_sample_parse(record->words, record->count * 8, type, registers_sample_mask,
				sample);
}

static void record_make(struct record *record)
{
	static const uint64_t chain[] = {KERNEL, 11, 12, 13, USER, 21, 22};

	head_add(record);
	words_add(record, chain, 7);
	registers_add(record, PERF_SAMPLE_REGS_ABI_64);
	words_add(record, (const uint64_t[]){51, 52, 53, 54}, 4);
	record->words[record->count - 5] = 32; /* bytes */
	word_add(record, 24);		       /* number of bytes that the kernel could copy */
}

static void whole_one(void **state)
{
	struct cpu_sample sample;
	struct record record;
	uint64_t value;

	record_make(&record);
	assert_int_equal(parse(&record, TYPE, &sample), 0);
	assert_int_equal(sample.tid, 4711);
	assert_int_equal(sample.time_ns, 123456789);
	assert_int_equal(sample.kernel_count, 3);
	assert_int_equal(sample.kernel[0], 11);
	assert_int_equal(sample.user_count, 2);
	assert_int_equal(sample.user[1], 22);
	assert_true(sample.registers_known);
#if defined(__aarch64__)
	assert_int_equal(sample.registers.ip, 3200);
	assert_int_equal(sample.registers.sp, 3100);
	assert_true(user_register_get(&sample.registers, 29, &value));
	assert_int_equal(value, 2900);
#else
	assert_int_equal(sample.registers.ip, 800);
	assert_int_equal(sample.registers.sp, 700);
	assert_true(user_register_get(&sample.registers, 6, &value)); /* rbp */
	assert_int_equal(value, 600);
	assert_true(user_register_get(&sample.registers, 15, &value));
	assert_int_equal(value, 1600);
#endif
	assert_int_equal(sample.stack_bytes, 24);
	assert_memory_equal(sample.stack, ((uint64_t[]){51, 52, 53}), 24);
}

/* Raw bytes that a program adds lie between the call chain and the registers. */
static void raw_bytes(void **state)
{
	static const uint64_t chain[] = {KERNEL, 11};
	const uint64_t type = TYPE | PERF_SAMPLE_RAW;
	struct cpu_sample sample;
	struct record record;
	uint32_t raw[4] = {12, 1, 2, 3};

	head_add(&record);
	words_add(&record, chain, 2);
	memcpy(&record.words[record.count], raw, sizeof(raw));
	record.count += 2;
	registers_add(&record, PERF_SAMPLE_REGS_ABI_64);
	word_add(&record, 0);
	assert_int_equal(parse(&record, type, &sample), 0);
	assert_int_equal(sample.raw_bytes, 12);
	assert_memory_equal(sample.raw, &raw[1], 12);
	assert_true(sample.registers_known);
	for (size_t i = 0; i < record.count; i++)
		assert_int_equal(
			cpu_sample_parse(record.words, i * 8, type, registers_sample_mask, &sample),
			-EBADMSG);
	/* a size that is not a multiple of a word, and one that is longer than the record */
	raw[0] = 16;
	memcpy(&record.words[6], raw, sizeof(raw));
	assert_int_equal(parse(&record, type, &sample), -EBADMSG);
	raw[0] = UINT32_MAX - 3;
	memcpy(&record.words[6], raw, sizeof(raw));
	assert_int_equal(parse(&record, type, &sample), -EBADMSG);
}

static void cut_ones(void **state)
{
	struct cpu_sample sample;
	struct record record;
	size_t count;

	record_make(&record);
	count = record.count;
	for (size_t i = 0; i < count; i++) {
		/* allocated exactly: sanitizers see reads beyond the end */
		uint64_t *words = malloc(i * 8 + 1);

		assert_non_null(words);
		memcpy(words, record.words, i * 8);
		assert_int_equal(
			cpu_sample_parse(words, i * 8, TYPE, registers_sample_mask, &sample),
			-EBADMSG);
		free(words);
	}
}

static void lying_ones(void **state)
{
	struct cpu_sample sample;
	struct record record;

	record_make(&record);
	record.words[3] = UINT64_MAX; /* number of frames */
	assert_int_equal(parse(&record, TYPE, &sample), -EBADMSG);
	record_make(&record);
	record.words[record.count - 1] = 33; /* more of the stack than the record has */
	assert_int_equal(parse(&record, TYPE, &sample), -EBADMSG);
	record.words[record.count - 6] = UINT64_MAX;
	assert_int_equal(parse(&record, TYPE, &sample), -EBADMSG);
}

static void kernel_threads(void **state)
{
	static const uint64_t chain[] = {KERNEL, 11};
	struct cpu_sample sample;
	struct record record;

	head_add(&record);
	words_add(&record, chain, 2);
	word_add(&record, PERF_SAMPLE_REGS_ABI_NONE);
	word_add(&record, 0);
	assert_int_equal(parse(&record, TYPE, &sample), 0);
	assert_false(sample.registers_known);
	assert_int_equal(sample.kernel_count, 1);
	assert_int_equal(sample.user_count, 0);
	assert_int_equal(sample.stack_bytes, 0);
}

static void old_kernels_lack_registers(void **state)
{
#if !defined(__aarch64__)
	uint64_t words[17], value;
	struct user_registers registers;

	for (size_t i = 0; i < 17; i++)
		words[i] = i == 0 || i == 7 || i == 8 ? i : UINT64_MAX;
	registers_sampled(words, false, &registers);
	assert_false(user_register_get(&registers, 6, &value));
	assert_false(user_register_get(&registers, 3, &value));
	assert_true(user_register_get(&registers, 0, &value));
	/* a value that happens to be -1 is known, however */
	words[6] = 5;
	registers_sampled(words, false, &registers);
	assert_true(user_register_get(&registers, 3, &value));
#endif
}

/* Position of the raw bytes: after the header, the ids, the time, and the chain with its count come
 * their count and the bytes. */
static void where_raw_bytes_are(void **state)
{
	struct cpu_sample_head head = {.chain_count = 5};

	assert_int_equal(cpu_sample_raw_at(&head, CPU_SAMPLE_TYPE | PERF_SAMPLE_RAW), 24 + 4);
	assert_int_equal(cpu_sample_raw_at(&head, TYPE | PERF_SAMPLE_RAW), 24 + 8 + 5 * 8 + 4);
	head.chain_count = 8191;
	assert_int_equal(cpu_sample_raw_at(&head, TYPE), SIZE_MAX);
	head.chain_count = UINT64_MAX;
	assert_int_equal(cpu_sample_raw_at(&head, TYPE), SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_one),
		cmocka_unit_test(raw_bytes),
		cmocka_unit_test(cut_ones),
		cmocka_unit_test(lying_ones),
		cmocka_unit_test(kernel_threads),
		cmocka_unit_test(old_kernels_lack_registers),
		cmocka_unit_test(where_raw_bytes_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
