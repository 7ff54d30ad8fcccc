/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Publishes OpenTelemetry's process and thread context (OTEP 4719 and 4947), from threads in known
 * states, so that what a reader should see of each is known.
 *
 * context [LIBRARY [COUNT [COMPUTING]]]: LIBRARY has the variable, and is loaded when the program
 * runs; "-": the program is linked with it, or has it itself. COUNT: threads that change their
 * context all the time; COMPUTING: those that do so and never wait. Prints "ready TID:KIND ...",
 * and ends with its input. Each line of input publishes the process context anew.
 *
 * steady: trace 16 digits of the tid, twice, span the tid + 1, attributes method=GET and
 * route=/tid/TID, of which an earlier value is there, too. silent: the thread has never used the
 * variable. cleared: it is NULL. invalid: the record is not valid, or has another value that
 * readers must not take. pointer, record: the thread changes its variable, or one record: it waits
 * for a futex with its number as the value expected, the trace has tid and number, the span the
 * number; where the number is a multiple of 7, the thread waits without a valid context. computes:
 * as record, but the thread has its number as the third argument of getpriority, again and again.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RECORD_BYTES 128
/* linux/futex.h is not among musl's headers */
#define FUTEX_WAIT 0
#define FUTEX_WAIT_PRIVATE 128
#define FENCE() atomic_signal_fence(memory_order_seq_cst)

struct record {
	uint8_t trace[16], span[8], valid, flags;
	uint16_t bytes;
	uint8_t attributes[RECORD_BYTES];
};

struct header {
	char signature[8];
	uint32_t version, payload_bytes;
	_Atomic uint64_t published_ns;
	uint64_t payload;
};

/* variables for --context */
uint32_t context_number = 4711;
int8_t context_small = -3;
char context_text[16] = "hello é";
static struct inner {
	int64_t before;
	const char *name;
} inner = {1, "Mary"};
static struct outer {
	int64_t before[2];
	struct inner *inner;
} outer = {{1, 2}, &inner};
struct outer *context_outer = &outer;
__thread uint64_t context_tid;

#ifndef LOADED
struct record *volatile *context_variable(void);
#endif
static struct record *volatile *(*variable_find)(void);
static struct header *header;
static int generation;
static int nobody_writes[2];

/* --- the process context */

static size_t tag_put(uint8_t *to, unsigned int field, const void *bytes, size_t count)
{
	size_t at = 0;

	to[at++] = (uint8_t)(field << 3 | 2);
	while (count >> (7 * (at - 1)) >> 7) {
		to[at] = (uint8_t)(count >> (7 * (at - 1)) | 0x80);
		at++;
	}
	to[at] = (uint8_t)(count >> (7 * (at - 1)));
	memcpy(to + at + 1, bytes, count);
	return at + 1 + count;
}

static size_t text_put(uint8_t *to, unsigned int field, const char *key, const char *value)
{
	uint8_t inner[512], text[256];
	size_t count = tag_put(inner, 1, key, strlen(key));

	count += tag_put(inner + count, 2, text, tag_put(text, 1, value, strlen(value)));
	return tag_put(to, field, inner, count);
}

static size_t keys_put(uint8_t *to, const char *const *keys)
{
	static const char name[] = "threadlocal.attribute_key_map";
	uint8_t list[512], array[600], inner[700], value[128];
	size_t count = 0, length;

	for (; *keys; keys++) {
		length = tag_put(value, 1, *keys, strlen(*keys));
		count += tag_put(list + count, 1, value, length);
	}
	length = tag_put(array, 5, list, count);
	count = tag_put(inner, 1, name, strlen(name));
	count += tag_put(inner + count, 2, array, length);
	return tag_put(to, 2, inner, count);
}

static void process_publish(void)
{
	static const char *const keys[] = {"method", "route", NULL}, *const more[] = {"method",
										      "route",
										      "late", NULL};
	uint8_t resource[1024], *payload = malloc(4096);
	char instance[64];
	size_t count = 0, length;
	struct timespec now;

	snprintf(instance, sizeof(instance), "instance-%d-%d", getpid(), generation);
	length = text_put(resource, 1, "service.name", "shop é");
	length += text_put(resource + length, 1, "service.instance.id", instance);
	count += tag_put(payload + count, 1, resource, length);
	count += text_put(payload + count, 2, "threadlocal.schema_version",
			  generation % 2 ? "tls_v1" : "tlsdesc_v1_dev");
	count += keys_put(payload + count, generation ? more : keys);
	generation++;
	clock_gettime(CLOCK_BOOTTIME, &now);
	atomic_store(&header->published_ns, 0);
	memcpy(header->signature, "OTEL_CTX", 8);
	header->version = 2;
	header->payload_bytes = (uint32_t)count;
	header->payload = (uintptr_t)payload; /* the one before is never freed */
	atomic_store(&header->published_ns,
		     (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
}

static void process_begin(void)
{
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, 4096))
		_exit(1);
	header = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (header == MAP_FAILED)
		_exit(1);
	close(fd);
	madvise(header, 4096, MADV_DONTFORK);
	process_publish();
}

/* --- threads */

static void number_put(uint8_t *to, uint64_t number)
{
	for (int i = 0; i < 8; i++)
		to[i] = (uint8_t)(number >> (56 - 8 * i));
}

static void attribute_put(struct record *record, uint8_t key, const char *value)
{
	size_t length = strlen(value);

	record->attributes[record->bytes] = key;
	record->attributes[record->bytes + 1] = (uint8_t)length;
	memcpy(record->attributes + record->bytes + 2, value, length);
	FENCE();
	record->bytes = (uint16_t)(record->bytes + 2 + length);
}

static void record_fill(struct record *record, uint64_t high, uint64_t low, uint64_t span,
			const char *route)
{
	volatile uint8_t *valid = &record->valid;

	*valid = 0;
	FENCE();
	number_put(record->trace, high);
	number_put(record->trace + 8, low);
	number_put(record->span, span);
	record->bytes = 0;
	attribute_put(record, 1, "/before");
	attribute_put(record, 0, "GET");
	attribute_put(record, 1, route);
	attribute_put(record, 2, "yes"); /* the first process context has no such key */
	FENCE();
	*valid = 1;
	FENCE();
}

static void sleep_once(unsigned int how)
{
	static int word;
	const struct timespec nap = {1000, 0};
	char byte;

	switch (how % 4) {
	case 0:
		nanosleep(&nap, NULL);
		break;
	case 1:
		syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
		break;
	case 2:
		poll(NULL, 0, -1);
		break;
	default:
		if (read(nobody_writes[0], &byte, 1) < 0)
			return;
	}
}

static const char *const kinds[] = {"steady", "steady",	 "steady", "steady",
				    "silent", "cleared", "invalid"};
static const char *const changing_kinds[] = {"", "pointer", "record", "computes"};
#define COMPUTES 3
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct subject {
	pthread_t thread;
	_Atomic int tid;
	unsigned int number, changes; /* changes: 0, or how */
	const char *kind;
};

static void steady_run(struct subject *subject)
{
	uint64_t tid = (uint64_t)syscall(SYS_gettid);
	static __thread struct record record;
	struct record *volatile *variable;
	char route[64];

	if (strcmp(subject->kind, "silent") != 0) {
		context_tid = tid;
		variable = variable_find();
		snprintf(route, sizeof(route), "/tid/%d", (int)tid);
		record_fill(&record, tid, tid, tid + 1, route);
		*variable = &record;
		if (!strcmp(subject->kind, "cleared"))
			*variable = NULL;
		if (!strcmp(subject->kind, "invalid"))
			record.valid = 2;
	}
	subject->tid = (int)tid;
	for (;;)
		sleep_once(subject->number);
}

static void changing_run(struct subject *subject)
{
	uint64_t tid = (uint64_t)syscall(SYS_gettid);
	struct record *volatile *variable = variable_find();
	static __thread struct record records[2];
	char route[64];
	uint32_t word = 0;

	subject->tid = (int)tid;
	for (uint32_t i = 1;; i++) {
		const struct timespec limit = {0, (5 + (long)(i * 2654435761u % 40)) * 1000000};
		struct record *record = &records[subject->changes == 1 ? i % 2 : 0];

		if (subject->changes == 1) {
			*variable = NULL;
			FENCE();
		}
		snprintf(route, sizeof(route), "/n/%u", i);
		if (i % 7)
			record_fill(record, tid, i, i, route);
		else if (subject->changes != 1)
			record->valid = 0;
		FENCE();
		if (i % 7 || subject->changes != 1)
			*variable = record;
		FENCE();
		word = i;
		for (int calls = 0; subject->changes == COMPUTES && calls < 20000; calls++)
			syscall(SYS_getpriority, 0, 0, i);
		if (subject->changes != COMPUTES)
			syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, i, &limit, NULL, 0);
	}
}

static void *subject_run(void *arg)
{
	struct subject *subject = arg;

	if (subject->changes)
		changing_run(subject);
	else
		steady_run(subject);
	return NULL;
}

#ifdef LOADED
static void *library;

/* The thread's own variable, of a library that has no code for that. */
static struct record *volatile *variable_named(void)
{
	return dlsym(library, "otel_thread_ctx_v1");
}
#endif

int main(int argc, char **argv)
{
	unsigned int changing = argc > 2 ? (unsigned int)atoi(argv[2]) : 4,
		     computing = argc > 3 ? (unsigned int)atoi(argv[3]) : 0,
		     count = 4 * KINDS + changing + computing;
	struct subject *subjects = calloc(count, sizeof(*subjects));
	pthread_attr_t small;
	char line[64];

#ifdef LOADED
	library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&variable_find = dlsym(library, "context_variable");
	if (!variable_find)
		variable_find = variable_named;
#else
	variable_find = context_variable;
#endif
	if (pipe(nobody_writes))
		return 1;
	process_begin();
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	for (unsigned int i = 0; i < count; i++) {
		struct subject *subject = &subjects[i];

		subject->number = i;
		subject->changes = i < 4 * KINDS	       ? 0
				   : i >= 4 * KINDS + changing ? COMPUTES
							       : 1 + i % 2;
		subject->kind = subject->changes ? changing_kinds[subject->changes] : kinds[i / 4];
		if (pthread_create(&subject->thread, &small, subject_run, subject))
			return 1;
	}
	printf("ready");
	for (unsigned int i = 0; i < count; i++) {
		while (!subjects[i].tid)
			usleep(1000);
		printf(" %d:%s", subjects[i].tid, subjects[i].kind);
	}
	printf("\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		process_publish();
	return 0;
}
