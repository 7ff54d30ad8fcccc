/* SPDX-License-Identifier: GPL-2.0-or-later */
/* probe PID|TID [ROUNDS]: stops a thread by ptrace, walks its user stack and prints the functions,
 * innermost first; with ROUNDS it walks so often and prints what a walk took: the first one, and
 * the median of the rest. The last line: the walk's end, as a number of enum walk_end (0: whole).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "stack/stack_table.h"
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

		unwinder_walk(unwinder, thread, registers, walk);
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

int main(int argc, char **argv)
{
	pid_t tid = argc > 1 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1, status;
	static struct module_table modules;
	static struct unwinder unwinder;
	static struct stack_walk walk;
	struct user_registers registers;
	struct stack_names *names;
	struct stack_thread thread = {tid, tid, 1, clock_monotonic_ns()};

	if (tid <= 0 || rounds < 1) {
		fprintf(stderr, "usage: probe TID [ROUNDS]\n");
		return 2;
	}
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0) ||
	    waitpid(tid, &status, __WALL) != tid || thread_registers_get(tid, &registers)) {
		fprintf(stderr, "probe: %d: %s\n", tid, strerror(errno));
		return 1;
	}
	module_table_init(&modules);
	unwinder_init(&unwinder, "/proc", &modules, STACK_COPY_BYTES);
	names = stack_names_new("/proc", &modules);
	measure(&unwinder, &thread, &registers, &walk, rounds);
	if (rounds == 1)
		unwinder_walk(&unwinder, &thread, &registers, &walk);
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < walk.count; i++) {
			struct frame_view view =
				stack_names_get(names, stack_names_frame(names, &walk.frames[i]));

			if (pass)
				printf("%s\n", view.name);
		}
		stack_names_wait(names, clock_monotonic_ns() + 10 * NS_PER_SECOND);
	}
	printf("%d\n", walk.end);
	ptrace(PTRACE_DETACH, tid, 0, 0);
	stack_names_free(names);
	unwinder_done(&unwinder);
	module_table_clear(&modules);
	return 0;
}
