/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/sample.h"
#include "base/names.h"
#include "base/text.h"
#include "sample/cgroup_names.h"
#include "sample/waits_fold.h"

#include <string.h>

static const struct state_row state_table[DOING_COUNT] = {
	[DOING_ON] = {"ON", "on a CPU", "", true},
	[DOING_RQ] = {"RQ", "runnable, waiting for a CPU", "R", true},
	[DOING_DISK] = {"D", "uninterruptible sleep: disk, or a kernel lock", "D", true},
	[DOING_SLEEP] = {"S", "interruptible sleep", "S", false},
	[DOING_STOPPED] = {"T", "stopped by a signal or a tracer", "Tt", false},
	[DOING_IDLE] = {"I", "idle kernel thread", "I", false},
	[DOING_ZOMBIE] = {"Z", "dead, not yet waited for", "ZXx", false},
	[DOING_PARKED] = {"P", "parked kernel thread", "P", false},
};

const struct state_row *state_row(int64_t doing)
{
	return doing >= 0 && doing < DOING_COUNT ? &state_table[doing] : NULL;
}

int64_t state_of_name(const char *name)
{
	for (int i = 0; i < DOING_COUNT; i++)
		if (!strcmp(state_table[i].name, name))
			return i;
	return ABSENT;
}

int64_t state_of_proc_letter(char letter)
{
	for (int i = 0; letter && i < DOING_COUNT; i++)
		if (strchr(state_table[i].proc, letter))
			return i;
	return ABSENT;
}

const struct sample sample_absent = {
	.time_us = ABSENT,
	.weight_us = ABSENT,
	.tid = ABSENT,
	.pid = ABSENT,
	.ppid = ABSENT,
	.uid = ABSENT,
	.start_ns = ABSENT,
	.kthread = ABSENT,
	.state = ABSENT,
	.state_us = ABSENT,
	.cpu = ABSENT,
	.syscall_nr = ABSENT,
	.syscall_us = ABSENT,
	.arg = {ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT},
	.fd = ABSENT,
	.waits_on_pid = ABSENT,
	.inflight = ABSENT,
	.pid_ns = ABSENT,
	.ns_pid = ABSENT,
	.ns_tid = ABSENT,
	.waker_tid = ABSENT,
	.waker_pid = ABSENT,
	.ustack = ABSENT,
	.kstack = ABSENT,
	.waker_ustack = ABSENT,
	.waker_kstack = ABSENT,
	.io_bytes = ABSENT,
	.io_us = ABSENT,
	.blocker_tid = ABSENT,
	.blocker_pid = ABSENT,
	.depth = ABSENT,
	.root_tid = ABSENT,
	.root_pid = ABSENT,
	.root_state = ABSENT,
	.path_depth = ABSENT,
	.path_of_tid = ABSENT,
	.cpu_us = ABSENT,
	.runq_us = ABSENT,
	.dwait_us = ABSENT,
	.sleep_us = ABSENT,
	.vcsw = ABSENT,
	.ivcsw = ABSENT,
	.forks = ABSENT,
	.execs = ABSENT,
	.exits = ABSENT,
	.dead_cpu_us = ABSENT,
};

struct sample sample_account(const struct sample *sample)
{
	struct sample account = sample_absent;

	account.tid = sample->tid;
	account.pid = sample->pid;
	account.ppid = sample->ppid;
	account.uid = sample->uid;
	account.start_ns = sample->start_ns;
	account.kthread = sample->kthread;
	account.user = sample->user;
	account.comm = sample->comm;
	account.commsum = sample->commsum;
	account.cmdline = sample->cmdline;
	account.exe = sample->exe;
	account.cgroup = sample->cgroup;
	account.container = sample->container;
	account.container_runtime = sample->container_runtime;
	account.container_name = sample->container_name;
	account.pod = sample->pod;
	account.pod_name = sample->pod_name;
	account.unit = sample->unit;
	account.pid_ns = sample->pid_ns;
	account.ns_pid = sample->ns_pid;
	account.ns_tid = sample->ns_tid;
	account.cpu_us = sample->cpu_us;
	account.runq_us = sample->runq_us;
	account.dwait_us = sample->dwait_us;
	account.sleep_us = sample->sleep_us;
	account.vcsw = sample->vcsw;
	account.ivcsw = sample->ivcsw;
	return account;
}

uint64_t sample_needs_close(uint64_t needs)
{
	if (needs & NEED_PATH)
		needs |= NEED_COMM | NEED_WHY;
	if (needs & NEED_CHAIN)
		needs |= NEED_BLOCKER | NEED_WHY;
	if (needs & NEED_BLOCKER)
		needs |= NEED_COMM | NEED_WAITS;
	if (needs & (NEED_COMMSUM | NEED_PROCESSES | NEED_RUNQ_WHY))
		needs |= NEED_COMM;
	if (needs & NEED_SLEEP)
		needs |= NEED_TOTALS;
	if (needs & NEED_WAITS_ONSUM)
		needs |= NEED_WAITS;
	if (needs & (NEED_FILENAMESUM | NEED_CONNECTION | NEED_FILETYPE | NEED_WAITS))
		needs |= NEED_FILE;
	if (needs & (NEED_FILE | NEED_WHY | NEED_CALL_TIME))
		needs |= NEED_SYSCALL;
	if (needs & (NEED_WAKER_COMM | NEED_WAKER_PID))
		needs |= NEED_WAKER;
	if (needs & (NEED_CGROUP_NAMES | NEED_CONTAINER_NAME))
		needs |= NEED_CGROUP;
	if (needs & NEED_WAKER_STACK)
		needs |= NEED_WAKER | NEED_USTACK | NEED_KSTACK;
	if (needs & NEED_STACK)
		needs |= NEED_USTACK | NEED_KSTACK;
	if (needs & NEED_UFILES)
		needs |= NEED_USTACK;
	return needs;
}

static const char *digits_folded(const char *string, struct text *room)
{
	if (!strpbrk(string, "0123456789"))
		return name_lent_string(string);
	text_clear(room);
	text_add_digits_folded(room, string);
	return name_lent(room->bytes, room->length);
}

static const char *waits_folded(const char *waits_on, struct text *room)
{
	text_clear(room);
	waits_fold(room, waits_on);
	return name_lent(room->bytes, room->length);
}

static void text_put(const char **field, const char *text, size_t length)
{
	if (!*field && text && *text)
		*field = name_lent(text, length);
}

static void cgroup_derive(struct sample *sample)
{
	struct cgroup_names names;
	bool hexadecimal;

	cgroup_names_find(sample->cgroup, &names);
	hexadecimal = strspn(names.container, "0123456789abcdef") == CONTAINER_ID_LENGTH;
	text_put(&sample->container, names.container,
		 hexadecimal ? CONTAINER_ID_SHORT : CGROUP_NAME_SIZE);
	text_put(&sample->container_runtime, names.runtime, CGROUP_NAME_SIZE);
	text_put(&sample->pod, names.pod, CGROUP_NAME_SIZE);
	text_put(&sample->unit, names.unit, CGROUP_NAME_SIZE);
}

void sample_derive(struct sample *sample, uint64_t needs)
{
	static struct text room;

	if ((needs & NEED_COMMSUM) && sample->comm)
		sample->commsum = digits_folded(sample->comm, &room);
	if ((needs & NEED_FILENAMESUM) && sample->filename)
		sample->filenamesum = digits_folded(sample->filename, &room);
	if ((needs & NEED_WAITS_ONSUM) && sample->waits_on && *sample->waits_on)
		sample->waits_onsum = waits_folded(sample->waits_on, &room);
	if ((needs & NEED_CGROUP_NAMES) && sample->cgroup)
		cgroup_derive(sample);
}
