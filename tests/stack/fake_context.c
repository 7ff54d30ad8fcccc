/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fake_context THREADS NAP_MS: processes that publish OpenTelemetry's contexts which lie, each in
 * its own way, with that many threads in each. Threads sleep, wake up and sleep again. Prints
 * "ready TID" of its first thread and runs until standard input ends.
 *
 * The process context: a message without end, one of a size that is not there, one at an address
 * that is not there, in memory of a file that has been cut, one of nothing but keys, one in which
 * each field has no length, and one whose time changes all the time. Records: attributes without a
 * length, as many as fit, beyond the end of the mapping, at the address of the variable itself, in
 * memory without access, in a file that has been cut, and at every address. If started by root, it
 * gives up its rights.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rights.h"

#define STACK_BYTES (128 << 10)
#define MESSAGE_BYTES 32768
#define LIES 8
#define RECORDS 8

struct header {
	char signature[8];
	uint32_t version, payload_bytes;
	volatile uint64_t published_ns;
	uint64_t payload;
};

__attribute__((visibility("default"))) __thread void *volatile otel_thread_ctx_v1;

static struct header *header;
static uint8_t *cut, *closed, *end;
static long nap_ms;

/* Two pages of a file that has one byte. */
static uint8_t *cut_map(void)
{
	int fd = memfd_create("cut", 0);
	uint8_t *made;

	if (fd < 0 || ftruncate(fd, 8192))
		_exit(1);
	made = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	made[0] = made[4096] = 1;
	if (ftruncate(fd, 1))
		_exit(1);
	return made;
}

/* A message that the schema is known by, and keys behind it, of no bytes. */
static uint8_t *message_make(unsigned int keys)
{
	static const char schema[] =
		"\x12\x26\x0a\x1athreadlocal.schema_version\x12\x08\x0a\x06tls_v1";
	uint8_t *made = calloc(1, MESSAGE_BYTES);
	size_t at = sizeof(schema) - 1;

	memcpy(made, schema, at);
	while (keys-- && at + 4 <= MESSAGE_BYTES) {
		made[at++] = 0x12; /* an attribute of two bytes: a key without bytes */
		made[at++] = 2;
		made[at++] = 0x0a;
		made[at++] = 0;
	}
	return made;
}

static void header_make(int lie)
{
	int fd = memfd_create("OTEL_CTX", 0);

	if (fd < 0 || ftruncate(fd, 4096))
		_exit(1);
	header = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	memcpy(header->signature, "OTEL_CTX", 8);
	header->version = 2;
	header->payload = (uintptr_t)message_make(lie == 4 ? 8000 : 0);
	header->payload_bytes = lie == 4 ? MESSAGE_BYTES : 40;
	if (lie == 0) {
		memset((void *)(uintptr_t)header->payload, 0xff, MESSAGE_BYTES);
		header->payload_bytes = MESSAGE_BYTES;
	}
	if (lie == 1)
		header->payload_bytes = UINT32_MAX;
	if (lie == 2)
		header->payload = UINT64_MAX - 16;
	if (lie == 3)
		header->payload = (uintptr_t)cut + 4096;
	if (lie == 5) {
		memset((void *)(uintptr_t)header->payload, 0x12, MESSAGE_BYTES);
		header->payload_bytes = MESSAGE_BYTES;
	}
	header->published_ns = 1;
}

static void *records_make(unsigned int way)
{
	uint8_t *made = calloc(1, 65536 + 64);

	switch (way % RECORDS) {
	case 1:
		made = end - 28;
		break;
	case 2:
		return (void *)&otel_thread_ctx_v1;
	case 3:
		return closed;
	case 4:
		return cut + 4090;
	case 5:
		return (void *)(UINTPTR_MAX - 4);
	case 6:
		memset(made, 0xff, 65536 + 64);
		break;
	default:
		break;
	}
	made[24] = 1;
	made[26] = made[27] = 0xff;
	return made;
}

static void *thread_run(void *arg)
{
	const struct timespec nap = {nap_ms / 1000, nap_ms % 1000 * 1000000};

	otel_thread_ctx_v1 = records_make((unsigned int)(uintptr_t)arg);
	for (;;)
		nanosleep(&nap, NULL);
	return NULL;
}

static void child_run(int lie, long threads)
{
	pthread_attr_t small;
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	cut = cut_map();
	closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	end = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(end + 4096, 4096);
	end += 4096;
	header_make(lie);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&thread, &small, thread_run, (void *)(uintptr_t)i))
			_exit(1);
	for (;;) {
		if (lie == 6) {
			header->published_ns++;
			usleep(20);
		} else {
			pause();
		}
	}
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 1;
	char byte;

	nap_ms = argc > 2 ? atol(argv[2]) : 100;
	rights_drop();
	for (int lie = 0; lie < LIES; lie++)
		if (!fork())
			child_run(lie, threads);
	usleep(300000);
	printf("ready %ld\n", syscall(SYS_gettid));
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
