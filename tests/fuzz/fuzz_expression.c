/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text that users may type after --filter; also checks that an early verdict is the one given at
 * the end. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "sample/filter/expression.h"
#include "sample/sample.h"

#define NAMES_BYTES (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static struct sample sample_make(void)
{
	struct sample sample = *sample_absent();

	sample.scan.time_us = 1763671373500000;
	sample.thread.tid = 12;
	sample.thread.pid = 10;
	sample.now.state = STATE_DISK;
	sample.now.state_us = 10500;
	sample.thread.user = "root";
	sample.thread.comm = "worker-3";
	sample.file.name = "/var/lib/\xff\x01";
	sample.call.arg[0] = -1;
	return sample;
}

static void request(const struct expression *expression)
{
	struct sample sample = sample_make();
	enum verdict at_last = expression_eval(expression, &sample, ~0ull);

	must(at_last == VERDICT_ACCEPTED || at_last == VERDICT_REFUSED);
	for (unsigned int bit = 0; bit < 36; bit++) {
		enum verdict early = expression_eval(expression, &sample, 1ull << bit);

		must(early == VERDICT_OPEN || early == at_last);
		early = expression_eval(expression, &sample, (1ull << bit) - 1);
		must(early == VERDICT_OPEN || early == at_last);
	}
}

/* True if glibc needs too much time and memory, as for repeated repetitions: regcomp(3) is not
 * under test. */
static bool is_dear(const char *text)
{
	return strchr(text, '{') || strstr(text, "**") || strstr(text, "++") || strlen(text) > 500;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct expression expression = {0};
	struct error e = {0};

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	names_set_limit(NAMES_BYTES);
	if (!is_dear(text) && !expression_add(&expression, text, &e))
		request(&expression);
	else
		must(is_dear(text) || (e.exit_code == EXIT_USAGE && *e.line));
	expression_done(&expression);
	error_done(&e);
	free(text);
	names_clear();
	return 0;
}
