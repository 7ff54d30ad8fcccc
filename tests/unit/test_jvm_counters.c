/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The counters of a JVM: found in a mapping as HotSpot makes it, and in nothing else. */
#include "unit.h"
#include "proc/jvm_counters.h"

#define PROLOGUE 32
#define ENTRY 20

struct made {
	char bytes[2048];
	size_t length;
	int32_t count;
};

static void put(struct made *made, size_t at, const void *from, size_t size)
{
	memcpy(made->bytes + at, from, size);
}

/* Adds an entry with a name and a number, as perfData.cpp lays them out. */
static void entry_add(struct made *made, const char *name, char type, int64_t value)
{
	size_t name_bytes = strlen(name) + 1, data_at = (ENTRY + name_bytes + 7) / 8 * 8;
	int32_t length = (int32_t)(data_at + sizeof(value)), name_at = ENTRY, vector = 0,
		data = (int32_t)data_at;
	size_t at = made->length;

	put(made, at, &length, 4);
	put(made, at + 4, &name_at, 4);
	put(made, at + 8, &vector, 4);
	made->bytes[at + 12] = type;
	put(made, at + 16, &data, 4);
	put(made, at + ENTRY, name, name_bytes);
	put(made, at + data_at, &value, sizeof(value));
	made->length += (size_t)length;
	made->count++;
}

static struct made mapping_make(int64_t frequency)
{
	struct made made = {.length = PROLOGUE};
	int32_t first = PROLOGUE;

	entry_add(&made, "java.threads.live", 'J', 8);
	entry_add(&made, "sun.gc.collector.0.invocations", 'J', 138);
	entry_add(&made, "sun.gc.collector.0.name", 'B', 7);
	entry_add(&made, "sun.gc.collector.0.time", 'J', frequency / 5);
	entry_add(&made, "sun.gc.collector.1.invocations", 'J', 111);
	entry_add(&made, "sun.gc.collector.1.time", 'J', frequency * 2);
	entry_add(&made, "sun.gc.generation.1.space.0.used", 'J', 99);
	entry_add(&made, "sun.os.hrt.frequency", 'J', frequency);
	entry_add(&made, "sun.rt.safepointSyncTime", 'J', 77);
	entry_add(&made, "sun.rt.safepointTime", 'J', frequency * 5 / 2);
	put(&made, 0, "\xca\xfe\xc0\xc0\1\2\0\1", 8);
	put(&made, 24, &first, 4);
	put(&made, 28, &made.count, 4);
	return made;
}

static void times_are_in_microseconds(void **state)
{
	static const int64_t frequencies[] = {1000000000, 3579545, 10};

	for (size_t i = 0; i < 3; i++) {
		struct made made = mapping_make(frequencies[i]);
		struct jvm_counters counters;

		assert_true(jvm_counters_parse(made.bytes, made.length, &counters));
		assert_in_range(counters.stopped_us, 2499999, 2500000);
		assert_in_range(counters.gc_us, 2199999, 2200000);
		assert_int_equal(counters.collections, 249);
		assert_int_equal(counters.threads, 8);
	}
}

/* What ends early, or is no such mapping, has no counters; what is changed at one byte breaks
 * nothing. */
static void lies_are_survived(void **state)
{
	struct made made = mapping_make(1000000000), other;
	struct jvm_counters counters;

	for (size_t length = 0; length < made.length; length++) {
		char *exact = malloc(length + !length);

		memcpy(exact, made.bytes, length);
		assert_false(jvm_counters_parse(exact, length, &counters));
		free(exact);
	}
	for (size_t at = 0; at < made.length; at++)
		for (int bit = 0; bit < 8; bit++) {
			char *exact = malloc(made.length);

			memcpy(exact, made.bytes, made.length);
			exact[at] = (char)(exact[at] ^ 1 << bit);
			if (jvm_counters_parse(exact, made.length, &counters) && at < 4)
				fail_msg("byte %zu, bit %d", at, bit);
			free(exact);
		}
	other = made;
	put(&other, 4, "\0", 1); /* another byte order */
	assert_false(jvm_counters_parse(other.bytes, other.length, &counters));
	other = mapping_make(0);
	assert_false(jvm_counters_parse(other.bytes, other.length, &counters));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_in_microseconds),
		cmocka_unit_test(lies_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
