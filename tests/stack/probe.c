/* SPDX-License-Identifier: GPL-2.0-or-later */
/* probe TID [ROUNDS]: stops a thread by ptrace, walks its user stack and prints the functions,
 * innermost first; with ROUNDS it walks so often and prints the time of a walk: of the first one,
 * the median of the rest, and then of its names. The last line: the walk's end, as a number of enum
 * walk_end (0: whole).
 *
 * probe --addresses TID: the same in numbers, each line an address as in the file and the file's
 * path; the last line has the stack's hash after the end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "unwind/runtime/runtime_service.h"
#include "unwind/stack_table.h"
#include "thread_registers.h"

static int64_t compare_ns(const void *a, const void *b)
{
	return *(const int64_t *)a - *(const int64_t *)b;
}

static int compare(const void *a, const void *b)
{
	int64_t difference = compare_ns(a, b);

	return (difference > 0) - (difference < 0);
}

static void measure(struct unwinder *unwinder, const struct stack_thread *thread,
		    const struct user_registers *registers, struct stack_walk *walk, int rounds)
{
	int64_t *took_ns = calloc((size_t)rounds, sizeof(*took_ns));

	for (int i = 0; took_ns && i < rounds; i++) {
		int64_t start_ns = clock_monotonic_ns();

		unwinder_walk(unwinder, thread, registers, NULL, walk);
		took_ns[i] = clock_monotonic_ns() - start_ns;
	}
	if (took_ns && rounds > 1) {
		int64_t first_ns = took_ns[0];

		qsort(took_ns + 1, (size_t)rounds - 1, sizeof(*took_ns), compare);
		printf("# %u frames, first %lld ns, then %lld ns\n", walk->count,
		       (long long)first_ns, (long long)took_ns[rounds / 2]);
	}
	free(took_ns);
}

/* Prints functions. timed: also the time that the names took. */
static void functions_print(struct stack_names *names, const struct stack_walk *walk, bool timed)
{
	int64_t start_ns = clock_monotonic_ns();

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < walk->count; i++) {
			struct frame_view view =
				stack_names_get(names, stack_names_frame(names, &walk->frames[i]));

			if (pass)
				printf("%s\n", view.name);
		}
		stack_names_wait(names, clock_monotonic_ns() + 10 * NS_PER_SECOND);
		if (!pass && timed)
			printf("# names %lld ns\n", (long long)(clock_monotonic_ns() - start_ns));
	}
	printf("%d\n", walk->end);
}

static void addresses_print(struct module_table *modules, struct stack_names *names,
			    const struct stack_walk *walk)
{
	struct stack_table table;
	uint32_t stack;

	stack_table_init(&table, modules, names);
	stack = stack_of_walk(&table, walk);
	for (uint32_t i = 0; i < walk->count; i++) {
		const struct frame *frame = &walk->frames[i];

		printf("%#llx %s\n", (unsigned long long)frame->address,
		       frame->module >= MODULES_KNOWN_MAX ? "-"
							  : modules->modules[frame->module]->path);
	}
	printf("%d %#llx\n", walk->end,
	       stack == STACK_NONE ? 0 : (unsigned long long)table.stacks[stack].hash);
	stack_table_clear(&table);
}

/* Process of the thread, which identifies code that is in no file. */
static int64_t process_of(pid_t tid)
{
	char path[64], line[256];
	long long pid = tid;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	status = fopen(path, "r");
	while (status && fgets(line, sizeof(line), status) && sscanf(line, "Tgid: %lld", &pid) != 1)
		;
	if (status)
		fclose(status);
	return pid;
}

int main(int argc, char **argv)
{
	bool addresses = argc > 1 && !strcmp(argv[1], "--addresses");
	pid_t tid = argc > 1 + addresses ? (pid_t)strtol(argv[1 + addresses], NULL, 10) : 0;
	int rounds = argc > 2 && !addresses ? (int)strtol(argv[2], NULL, 10) : 1, status;
	static struct module_table modules;
	static struct unwinder unwinder;
	static struct stack_walk walk;
	struct user_registers registers;
	struct stack_names *names;
	struct parsers *parsers;
	struct stack_thread thread = {process_of(tid), tid, 1, clock_monotonic_ns(), 0};

	if (tid <= 0 || rounds < 1) {
		fprintf(stderr, "usage: probe TID [ROUNDS], or probe --addresses TID\n");
		return 2;
	}
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0) ||
	    waitpid(tid, &status, __WALL) != tid || thread_registers_get(tid, &registers)) {
		fprintf(stderr, "probe: %d: %s\n", tid, strerror(errno));
		return 1;
	}
	parsers = parsers_begin(runtime_service, false, PARSERS_ALL);
	module_table_init(&modules, parsers ? &parsers->parser[PARSER_TABLES] : NULL);
	unwinder_init(&unwinder, "/proc", &modules,
		      parsers ? &parsers->parser[PARSER_MEMORY] : NULL, STACK_COPY_BYTES);
	names = stack_names_new("/proc", &modules, parsers ? &parsers->parser[PARSER_NAMES] : NULL);
	measure(&unwinder, &thread, &registers, &walk, rounds);
	if (rounds == 1)
		unwinder_walk(&unwinder, &thread, &registers, NULL, &walk);
	if (addresses)
		addresses_print(&modules, names, &walk);
	else
		functions_print(names, &walk, rounds > 1);
	ptrace(PTRACE_DETACH, tid, 0, 0);
	stack_names_free(names);
	unwinder_done(&unwinder);
	module_table_clear(&modules);
	parsers_end(parsers);
	return 0;
}
