/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attaching to tracepoints before 4.15, which run one program each: tracepoint_attach() is
 * simulated. */
#include "unit.h"
#include "kernel/probe_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char *taken_event; /* event that another program is attached to */
static int opened;		/* number of open links */

int __wrap_tracepoint_attach(const char *event, int program);
int __wrap_tracepoint_attach(const char *event, int program)
{
	if (taken_event && !strcmp(event, taken_event))
		return -EEXIST;
	opened++;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void plan_of_tracepoints(struct probe_plan *plan)
{
	memset(plan, 0, sizeof(*plan));
	for (size_t i = 0; i < probe_row_count; i++)
		if (probe_rows[i].kind == PROBE_TRACEPOINT && !plan->chosen[probe_rows[i].gives])
			plan->chosen[probe_rows[i].gives] = &probe_rows[i];
}

static int attach(const char *taken, struct probe_links *links, struct error *e)
{
	const int programs[GROUP_COUNT] = {0};
	struct probe_plan plan;
	char left[1024];

	taken_event = taken;
	opened = 0;
	plan_of_tracepoints(&plan);
	return probe_attach(&plan, programs, 10, links, left, sizeof(left), e);
}

static void taken_tracepoints_end_it(void **state)
{
	static const char *const events[] = {"sched:sched_switch", "sched:sched_process_exec"};
	struct probe_links links;
	struct error e = {0};

	assert_int_equal(attach(NULL, &links, &e), 0);
	assert_true(opened > 3 && links.count == (size_t)opened && !links.taken);
	probe_detach(&links);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(attach(events[i], &links, &e), -EEXIST);
		/* the caller can use another kind of probe for all of them */
		assert_true(links.taken && !links.count);
		assert_non_null(strstr(e.line, events[i]));
		assert_non_null(strstr(e.line, "another program is attached to it"));
		error_done(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken_tracepoints_end_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
