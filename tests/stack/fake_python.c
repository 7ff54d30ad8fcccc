/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fake_python THREADS NAP_MS: exports the symbols of a Python 3.11 interpreter, but its list of
 * threads and each thread's list of frames lead in circles. Threads sleep, wake up and sleep again.
 * Prints "ready TID" of its first thread and runs until standard input ends.
 *
 * Offsets of members: src/unwind/runtime/python_memory.c. If started by root, it gives up its
 * rights.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rights.h"

#define THREADS_MAX 1000
#define FRAMES 3 /* frames of a cycle */
#define STACK_BYTES (128 << 10)
#define STRING_ASCII (1u << 2 | 0x20 | 0x40)

typedef uint64_t object[32];

const uint64_t Py_Version = 0x030b02f0;
object _PyRuntime, PyCode_Type, PyUnicode_Type;

static object interpreter, states[THREADS_MAX], cframes[THREADS_MAX], frames[THREADS_MAX][FRAMES];
static object codes[FRAMES], strings[FRAMES];
static long thread_count, nap_ms;

static uint64_t address(const void *of)
{
	return (uintptr_t)of;
}

static void string_make(object string)
{
	uint32_t state = STRING_ASCII;

	string[1] = address(PyUnicode_Type);
	string[2] = 1 << 20; /* longer than the memory that follows */
	memcpy(&string[4], &state, sizeof(state));
	memset(&string[6], 'x', 26 * sizeof(string[0]));
}

static void code_make(object code, object string)
{
	string_make(string);
	code[1] = address(PyCode_Type);
	code[14] = code[16] = address(string); /* file, name */
	code[17] = address(string);	       /* lines */
}

static void frames_make(long thread)
{
	for (int i = 0; i < FRAMES; i++) {
		uint64_t *frame = frames[thread][i];

		frame[4] = address(codes[i]);
		frame[6] = address(frames[thread][(i + 1) % FRAMES]);
		frame[7] = address(codes[i]) + 190;
	}
	cframes[thread][1] = address(frames[thread][0]);
	states[thread][1] = address(states[(thread + 1) % thread_count]);
	states[thread][2] = address(interpreter);
	states[thread][7] = address(cframes[thread]);
}

static void *thread_run(void *of)
{
	const struct timespec nap = {nap_ms / 1000, nap_ms % 1000 * 1000000};
	uint64_t *state = of;

	state[20] = (uint64_t)syscall(SYS_gettid);
	for (;;)
		nanosleep(&nap, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t small;
	pthread_t thread;
	char byte;

	thread_count = argc > 2 ? atol(argv[1]) : 0;
	if (thread_count < 1 || thread_count > THREADS_MAX)
		return 2;
	nap_ms = atol(argv[2]);
	rights_drop();
	_PyRuntime[5] = address(interpreter);
	interpreter[2] = address(states[0]);
	for (int i = 0; i < FRAMES; i++)
		code_make(codes[i], strings[i]);
	for (long i = 0; i < thread_count; i++)
		frames_make(i);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	for (long i = 0; i < thread_count; i++)
		if (pthread_create(&thread, &small, thread_run, states[i]))
			return EXIT_FAILURE;
	printf("ready %ld\n", syscall(SYS_gettid));
	fflush(stdout);
	return read(STDIN_FILENO, &byte, 1) < 0;
}
