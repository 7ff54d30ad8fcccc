/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A perf sample from a ring: the first byte selects the fields that it should have, the rest is the
 * record. Fields that are found lie within the record. */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "maps/cpu_sample.h"
#include "fuzz_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REGISTERS 0xff0fffull /* x86-64 registers, as requested */

static const uint64_t parts[] = {PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_RAW, PERF_SAMPLE_REGS_USER,
				 PERF_SAMPLE_STACK_USER};

static void read_all(const void *from, size_t bytes)
{
	const volatile unsigned char *at = from;

	while (bytes--)
		(void)*at++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t type = CPU_SAMPLE_TYPE, *record;
	struct cpu_sample sample;
	size_t bytes = (size ? size - 1 : 0) / 8 * 8;

	if (!size)
		return 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		type |= data[0] >> i & 1 ? parts[i] : 0;
	record = malloc(bytes ? bytes : 1); /* the exact size: reads beyond the end are found */
	must(record != NULL);
	memcpy(record, data + 1, bytes);
	if (!cpu_sample_parse(record, bytes, type, REGISTERS, &sample)) {
		read_all(sample.kernel, sample.kernel_count * sizeof(*sample.kernel));
		read_all(sample.user, sample.user_count * sizeof(*sample.user));
		read_all(sample.stack, sample.stack_bytes);
		read_all(sample.raw, sample.raw_bytes);
	}
	free(record);
	return 0;
}
