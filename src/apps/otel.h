/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What programs publish for OpenTelemetry: of a process, which service it is (OTEP 4719, process
 * context, version 2), and of each thread, the trace and span that it works for, and attributes of
 * them (OTEP 4947, thread context; both in oteps/profiles of the specification).
 *
 * The process context is a header in a mapping with a name, which leads to a message of protobuf
 * that a parser reads. It holds if its time is the same before and after, and not 0. A thread's
 * context is a record that the thread-local variable otel_thread_ctx_v1 points to; a thread that
 * does not run is what its readers have to have, and that is what is given here. The record means
 * something only to readers that know the schema which the process context names.
 */
#ifndef TSNAP_APPS_OTEL_H
#define TSNAP_APPS_OTEL_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/app_program.h"
#include "apps/tls.h"
#include "parser/parser_message.h"

#define OTEL_VARIABLE "otel_thread_ctx_v1"
#define OTEL_KEYS_MAX 256

/* What is known of a process. */
struct otel {
	uint64_t header; /* address; 0: the process publishes nothing */
	uint64_t published_ns;
	int64_t checked_ns;		/* scan in which it was found to be this one */
	const char *service, *instance; /* names that are transient; NULL: none */
	bool schema_known;
	unsigned int key_count;
	const char *keys[OTEL_KEYS_MAX];
	struct tls_place place;
};

/* True if a mapping of that path, as maps has it, may have the header. */
bool otel_is_header(const char *path);
/* Reads the process context, if it is another one since; what was known stays while it is being
 * changed. False: there is none, or it can't be read. */
bool otel_read(struct app_reader *reader, struct otel *otel);
/* True if it has to be read again, although nothing else has. */
bool otel_due(const struct otel *otel, int64_t now_ns);
/* Fills what needs name. pointer: of the thread's storage; 0: not known. False: what the process
 * publishes can't be read. */
bool otel_fill(struct app_reader *reader, struct otel *otel, uint64_t needs, uint64_t pointer,
	       struct sample_app *facts);

/* Fills what needs name of a thread's record, of which that many bytes have been read. */
void otel_take(struct app_reader *reader, struct otel *otel, uint64_t needs, const void *record,
	       size_t bytes, struct sample_app *facts);

/* Answers requests of otel_read(), in a parser. */
parser_service otel_service;

#endif
