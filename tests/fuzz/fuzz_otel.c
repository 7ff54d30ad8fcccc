/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of OpenTelemetry's process context, as a process has them in its memory, and statements
 * of SQL: nothing is read beyond the end, and a folded statement is not longer than before. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apps/otel.h"
#include "sample/query_fold.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void message_try(const uint8_t *data, size_t size)
{
	static _Alignas(8) char answer[PARSER_MESSAGE_MAX];
	const uint32_t kind = PARSER_OTEL;
	/* a copy of the exact size, so that a read beyond the end is found */
	char *bytes = malloc(sizeof(kind) + size);
	struct parser_request request = {.bytes = bytes, .count = sizeof(kind) + size};

	must(bytes);
	memcpy(bytes, &kind, sizeof(kind));
	if (size)
		memcpy(bytes + sizeof(kind), data, size);
	must(otel_service(&request, answer) <= sizeof(answer));
	free(bytes);
}

static void statement_try(const uint8_t *data, size_t size)
{
	char *query = malloc(size + 1);
	struct text folded = {0};

	must(query);
	if (size)
		memcpy(query, data, size);
	query[size] = '\0';
	query_fold(&folded, query);
	must(folded.length <= strlen(query));
	text_done(&folded);
	free(query);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	message_try(data, size);
	statement_try(data, size);
	return 0;
}
