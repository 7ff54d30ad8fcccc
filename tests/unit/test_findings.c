/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of findings: for each a case that it takes, and one that looks alike and is no problem.
 */
#include "unit.h"
#include "base/clock.h"
#include "base/names.h"
#include "report/findings.h"
#include "report/status_since.h"
#include "render/renderer.h"
#include "report/value.h"
#include "sample/wait_rule.h"
#include "sample/waits_on.h"

#define SCANS 100
#define PERIOD_US 50000
#define SECOND_US US_PER_SECOND
#define CPUS 2

/* A thread that is seen in a number of scans. */
struct seen {
	int64_t tid, scans, state_us;
	const char *state, *comm, *syscall, *why, *waits_on, *device;
	int64_t io_us;
	/* chain: kind of the only link, the root and its facts; or the whole text */
	const char *kind, *sure, *root, *root_state, *root_why, *root_waits_on, *chain;
	int64_t depth, root_tid, before_us; /* before_us: it waited before it fell asleep */
	const char *file, *root_syscall;
	const char *neighbour;
};

#define OF_ITSELF (-1) /* depth of a thread that waits for itself */

#define ROOT_TID 900 /* of a root unless root_tid is given */

static struct sample sample_of(const struct seen *seen)
{
	struct sample sample = *sample_absent();
	char text[256];

	sample.scan.weight_us = PERIOD_US;
	sample.thread.tid = sample.thread.pid = seen->tid;
	sample.now.state = state_of_name(seen->state);
	sample.now.state_us = seen->state_us;
	sample.thread.comm = sample.thread.commsum = name_transient_string(seen->comm);
	sample.call.name = name_transient_string(seen->syscall);
	sample.file.name = name_transient_string(seen->file);
	sample.wait.why = name_transient_string(seen->why);
	sample.wait.on = sample.wait.onsum = name_transient_string(seen->waits_on);
	sample.io.dev = name_transient_string(seen->device);
	sample.blocker.neighbour = name_transient_string(seen->neighbour);
	sample.io.us = seen->io_us ? seen->io_us : ABSENT;
	if (seen->kind)
		sample.blocker.kind = name_transient_string(seen->kind);
	sample.blocker.sure = seen->sure;
	sample.wait.before_us = seen->before_us ? seen->before_us : ABSENT;
	if (seen->root) {
		sample.chain.root.comm = name_transient_string(seen->root);
		sample.chain.root.tid = sample.chain.root.pid =
			seen->root_tid ? seen->root_tid : ROOT_TID;
		sample.chain.root.state = state_of_name(seen->root_state);
		sample.chain.root.why = name_transient_string(seen->root_why);
		sample.chain.root.waits_on = name_transient_string(seen->root_waits_on);
		sample.chain.root.syscall = name_transient_string(seen->root_syscall);
		sample.chain.depth = seen->depth == OF_ITSELF ? 0 : seen->depth ? seen->depth : 1;
		sample.blocker.tid = sample.chain.root.tid;
		snprintf(text, sizeof(text), "%s %s> %s", seen->comm, seen->kind, seen->root);
		sample.chain.text = name_transient_string(seen->chain ? seen->chain : text);
	} else if (seen->chain) {
		sample.chain.depth = 0;
		sample.chain.text = name_transient_string(seen->chain);
	}
	return sample;
}

/* Of all devices, sdb alone has no rotating disks. */
static int64_t rotates(const struct source *source, const char *device)
{
	(void)source;
	return strcmp(device, "sdb") != 0;
}

/* Thread 20 has real-time priority, thread 30 is nice. */
static int64_t priority_of(const struct source *source, int64_t tid)
{
	(void)source;
	return tid == 20 ? -3 : tid == 30 ? 39 : 20;
}

static bool io_group_has(const struct source *source, int64_t tid, const char *path)
{
	(void)source;
	return tid != 11 || strcmp(path, "/web") != 0;
}

static const struct host_source flash_host = {
	.rotates = rotates, .priority = priority_of, .io_group_has = io_group_has};
static const struct source flash_source = {.host = &flash_host};

static void findings_of(struct findings *findings, const struct seen *seen, size_t count,
			struct source_status *status)
{
	struct tally tally = {.scans = SCANS, .elapsed_us = (int64_t)SCANS * PERIOD_US};

	status->cpus = CPUS;
	if (!status->busy_us)
		status->busy_us = ABSENT;
	findings_init(findings, NULL);
	for (size_t i = 0; i < count; i++) {
		struct sample sample = sample_of(&seen[i]);

		for (int64_t scan = 0; scan < seen[i].scans; scan++)
			findings_add(findings, &sample, EXACT_NOTE_NONE);
	}
	findings_fill(findings, &tally, status, &flash_source);
}

/* Sum of the time of all findings, of no problem and of what was not seen. */
static int64_t sum_of(const struct findings *findings)
{
	int64_t us = findings->none_us + findings->unseen_us;

	for (size_t i = 0; i < findings->count; i++)
		us += finding_at(findings, i)->weight_us;
	return us;
}

#define FULL                                         \
	{1, SCANS, 1000, "ON", .comm = "spin"},      \
	{                                            \
		2, SCANS, 1000, "ON", .comm = "spin" \
	}
#define BUSY_ROOT                                            \
	{                                                    \
		ROOT_TID, SCANS, 1000, "ON", .comm = "redis" \
	}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Each row has what it finds (NULL: nothing), and the threads. */
static const struct {
	const char *finding, *certainty;
	struct seen seen[4];
} cases[] = {
	/* clang-format off */
	{"deadlock", "certain", {{10, 4, 900000, "S", .comm = "a", .kind = "mutex", .sure = "certain", .root = "b", .root_state = "S",
		.root_why = "deadlock", .chain = "a mutex> b mutex> a DEADLOCK"}}},
	{"deadlock", "certain", {{10, 4, 900000, "S", .comm = "a", .kind = "mutex", .sure = "certain", .root = "a", .root_tid = 10,
		.root_state = "S", .root_why = "deadlock", .depth = OF_ITSELF, .chain = "a mutex> a DEADLOCK"}}},
	{NULL, NULL, {{10, 4, 9000, "S", .comm = "a", .kind = "mutex", .sure = "certain", .root = "b", .root_state = "S",
		.root_why = "deadlock", .chain = "a mutex> b mutex> a DEADLOCK"}}}, /* one ends later than it began */
	{NULL, NULL, {{10, SCANS, 9000, "S", .comm = "a", .kind = "pipe", .sure = "likely", .root = "b", .root_state = "S",
		.root_why = "cycle", .chain = "a pipe> b pipe> a cycle"}}},

	{"cycle", "likely", {{10, SCANS, 9 * SECOND_US, "S", .comm = "a", .kind = "file lock", .sure = "likely", .root = "b",
		.root_state = "S", .root_why = "cycle", .chain = "a file lock> b child> a cycle"}}},
	{NULL, NULL, {{10, SCANS, 90000, "S", .comm = "a", .kind = "file lock", .sure = "likely", .root = "b", .root_state = "S",
		.root_why = "cycle", .chain = "a file lock> b child> a cycle"}}}, /* it has just begun */

	{"stopped", "certain", {{10, SCANS, 4 * SECOND_US, "S", .comm = "a", .why = "lock", .kind = "file lock", .sure = "certain",
		.root = "b", .root_state = "T", .root_waits_on = "SIGCONT"}}},
	{NULL, NULL, {{10, SCANS, 900000, "S", .comm = "a", .why = "write", .kind = "pipe", .sure = "likely", .root = "b",
		.root_state = "T"}}}, /* a debugger's stop */
	{NULL, NULL, {{10, SCANS, 4 * SECOND_US, "T", .comm = "job"}}}, /* nobody waits for it */
	{NULL, NULL, {{10, 10, 4 * SECOND_US, "S", .comm = "a", .why = "lock", .kind = "file lock", .sure = "certain",
		.root = "b", .root_state = "T", .root_waits_on = "SIGCONT"}, FULL}}, /* strace stops it now and then */

	{NULL, NULL, {{10, SCANS, 90000, "RQ", .comm = "a", .kind = "quota", .sure = "likely",
		.chain = "a quota> /web"}}}, /* the kernel counts no throttling: see quotas_by_the_kernel */
	{"budget", "likely", {{10, SCANS, 90000, "RQ", .comm = "a", .kind = "quota", .sure = "likely",
		.chain = "a quota> real-time budget"}}},

	{"lost_lock", "likely", {{10, SCANS, 900000, "S", .comm = "a", .why = "lock", .kind = "mutex",
		.waits_on = "mutex 0x55d0 held by 9, a thread that has ended"}}},
	{NULL, NULL, {{10, SCANS, 900000, "S", .comm = "a", .why = "lock", .kind = "mutex",
		.waits_on = "mutex 0x55d0 held by 9 worker"}}}, /* its holder is known */
	{"lock", "certain", {{10, SCANS, 90000, "S", .comm = "a", .why = "lock", .kind = "mutex", .sure = "certain", .root = "b",
		.root_state = "ON"}}},
	{"lock", "likely", {{10, SCANS, 90000, "S", .comm = "a", .why = "lock", .kind = "socket", .sure = "likely", .root = "c",
		.root_state = "S", .depth = 2, .chain = "a socket> x mutex?> c"}}},
	{"lock", "certain", {{10, SCANS / 2, 4000, "S", .comm = "a", .why = "lock", .kind = "GIL", .sure = "certain", .root = "b",
		.root_state = "ON"}}}, /* short waits, much of the time */
	{NULL, NULL, {{10, 10, 4000, "S", .comm = "a", .why = "lock", .kind = "mutex", .sure = "certain", .root = "b",
		.root_state = "ON"}, FULL}}, /* short waits, some of the time */

	{NULL, NULL, {{10, SCANS, 9 * SECOND_US, "S", .comm = "httpd", .why = "lock", .kind = "mutex", .sure = "certain",
		.root = "httpd", .root_state = "S", .root_why = "loop"}}}, /* workers take turns with an event loop */
	{NULL, NULL, {{10, SCANS, 9 * SECOND_US, "S", .comm = "httpd", .why = "lock", .kind = "file lock", .sure = "certain",
		.root = "httpd", .root_state = "S", .root_why = "server", .root_syscall = "accept4"}}},
	{"lock", "certain", {{10, SCANS, 9 * SECOND_US, "S", .comm = "httpd", .why = "lock", .kind = "mutex", .sure = "certain",
		.root = "httpd", .root_state = "S", .root_why = "server", .root_syscall = "recvfrom"}}}, /* its client is slow */

	{"inversion", "certain", {{20, SCANS, 90000, "S", .comm = "a", .why = "lock", .kind = "mutex", .sure = "certain", .root = "b",
		.root_state = "RQ", .chain = "a mutex> b cpu> b"}}}, /* another b has the CPU */
	{"inversion", "likely", {{20, SCANS, 90000, "S", .comm = "a", .why = "lock", .kind = "mutex", .sure = "certain", .root = "b",
		.root_state = "RQ", .chain = "a mutex> b cpu> b"}, {21, SCANS, 90000, "S", .comm = "a", .why = "lock",
		.kind = "mutex", .sure = "certain", .root = "b", .root_state = "RQ", .chain = "a mutex> b cpu> b"}}}, /* of one */
	{"lock", "certain", {{20, SCANS, 90000, "S", .comm = "a", .why = "lock", .kind = "mutex", .sure = "certain", .root = "b",
		.root_state = "RQ", .chain = "a mutex> b cpu> b"}, {20, SCANS, 90000, "S", .comm = "a", .why = "lock", .kind = "mutex",
		.sure = "certain", .root = "c", .root_tid = ROOT_TID, .root_state = "RQ", .chain = "a mutex> c cpu> b"}}}, /* whose? */
	{"lock", "certain", {{20, SCANS, 90000, "S", .comm = "a", .why = "lock", .kind = "mutex", .sure = "certain", .root = "b",
		.root_state = "ON"}}}, /* the holder has a CPU */
	{"lock", "certain", {{10, SCANS, 90000, "S", .comm = "a", .why = "lock", .kind = "mutex", .sure = "certain", .root = "b",
		.root_state = "RQ", .chain = "a mutex> b cpu> c"}}}, /* no difference */

	{"memory", "certain", {{10, SCANS, 90000, "D", .comm = "a", .waits_on = "reclaim (memory.max of /web)"}}},
	{NULL, NULL, {{10, SCANS, 90000, "ON", .comm = "kswapd0"}}},

	{"slow_disk", "likely", {{10, SCANS, 40000, "D", .comm = "a", .syscall = "fsync", .device = "sda", .io_us = 40000,
		.kind = "io", .chain = "a io> sda"}}},
	{"disk", "likely", {{10, SCANS, 4000, "D", .comm = "a", .syscall = "fsync", .device = "sda", .io_us = 2000, .kind = "io",
		.chain = "a io> sda"}}},
	{"slow_disk", "likely", {{10, SCANS, 4000, "D", .comm = "a", .device = "sdb", .io_us = 4000, .kind = "io",
		.chain = "a io> sdb io> sda"}}}, /* sdb alone has no rotating disks */
	{"disk", "likely", {{10, SCANS, 4000, "D", .comm = "a", .device = "sda", .io_us = 4000, .kind = "io",
		.chain = "a io> sda"}}},
	{NULL, NULL, {{10, 3, 40000, "D", .comm = "a", .syscall = "read", .device = "sda", .io_us = 40000, .kind = "io",
		.chain = "a io> sda"}, FULL}}, /* a program that starts */

	{"stuck", "certain", {{10, 4, 3 * SECOND_US, "D", .comm = "a", .syscall = "fsync", .waits_on = "frozen file system"}, FULL}},
	{"stuck", "certain", {{10, SCANS, 3 * SECOND_US, "D", .comm = "a", .syscall = "write", .waits_on = "frozen file system",
		.device = "sda", .io_us = 40000, .chain = "a"}}}, /* its request of another call is in flight */
	{NULL, NULL, {{10, 3, 3 * SECOND_US, "D", .comm = "a"}, {11, 3, 1000, "D", .comm = "b"}}}, /* for different things */
	{"d_wait", "certain", {{10, SCANS, 90000, "D", .comm = "a", .syscall = "fsync"}}},
	{NULL, NULL, {{10, SCANS, 90000, "D", .comm = "sh", .syscall = "vfork"}}}, /* its child has begun */
	{NULL, NULL, {{10, SCANS, 90000, "D", .comm = "sh", .syscall = "clone3", .kind = "child", .chain = "sh ..."}}},
	{NULL, NULL, {{10, 4, 900000, "D", .comm = "a", .syscall = "fsync"}, FULL, {3, SCANS, 1000, "ON", .comm = "x"}}},

	{"file", "likely", {{10, SCANS, 90000, "S", .comm = "node", .syscall = "read", .why = "file", .waits_on = "/mnt/prices"}}},
	{NULL, NULL, {{10, SCANS, 9000, "S", .comm = "node", .syscall = "read", .why = "file", .waits_on = "/mnt/prices"}}},

	{"sleeper", "likely", {{10, SCANS, 90000, "S", .comm = "a", .why = "client", .kind = "socket", .sure = "likely", .root = "b",
		.root_state = "S", .root_why = "sleep", .root_waits_on = "timer"}}},
	{NULL, NULL, {{10, SCANS, 9000, "S", .comm = "a", .why = "client", .kind = "socket", .sure = "likely", .root = "b",
		.root_state = "S", .root_why = "sleep", .root_waits_on = "timer"}}}, /* nobody notices */

	{"cpus", "certain", {FULL, {10, SCANS, 9000, "RQ", .comm = "a", .kind = "cpu", .sure = "likely", .chain = "a cpu> spin"}}},
	{NULL, NULL, {FULL, {30, SCANS, 9000, "RQ", .comm = "a", .kind = "cpu", .sure = "likely", .chain = "a cpu> spin"}}}, /* patient */
	{"neighbour", "certain", {FULL, {10, SCANS, 9000, "RQ", .comm = "a", .kind = "cpu", .sure = "likely", .chain = "a cpu> spin",
		.neighbour = "/b"}}},
	{"cpus", "certain", {FULL, {10, SCANS, 9000, "RQ", .comm = "a", .kind = "cpu", .sure = "likely", .chain = "a cpu> spin",
		.neighbour = "/b"}, {11, SCANS, 9000, "RQ", .comm = "a", .kind = "cpu", .sure = "likely", .chain = "a cpu> spin",
		.neighbour = "/a"}}}, /* each waits for the other */
	{"cpus", "certain", {FULL, {10, SCANS, 9000, "RQ", .comm = "a", .kind = "cpu", .sure = "likely", .chain = "a cpu> spin",
		.neighbour = "/b"}, {11, SCANS, 9000, "RQ", .comm = "b", .kind = "cpu", .sure = "likely", .chain = "b cpu> spin"}}},
	{"uneven_cpus", "likely", {{1, SCANS, 1000, "ON", .comm = "spin"}, {10, SCANS, 50000, "RQ", .comm = "a", .kind = "cpu",
		.sure = "likely", .chain = "a cpu> spin"}}}, /* another CPU is idle */
	{NULL, NULL, {{1, SCANS, 1000, "ON", .comm = "spin"}, {10, SCANS, 9000, "RQ", .comm = "a", .kind = "cpu", .sure = "likely",
		.chain = "a cpu> spin"}}}, /* wake-ups that meet on one CPU */
	{NULL, NULL, {FULL, {10, 10, 9000, "RQ", .comm = "a", .kind = "cpu", .sure = "likely", .chain = "a cpu> spin"}}},

	{"busy_thread", "certain", {BUSY_ROOT, {10, SCANS, 900000, "S", .comm = "a", .why = "client", .kind = "socket",
		.sure = "certain", .root = "redis", .root_state = "ON"}}},
	{NULL, NULL, {{ROOT_TID, SCANS / 2, 1000, "ON", .comm = "redis"}, {10, SCANS, 900000, "S", .comm = "a", .why = "client",
		.kind = "socket", .sure = "certain", .root = "redis", .root_state = "ON"}}}, /* time to spare */
	{NULL, NULL, {BUSY_ROOT, {10, SCANS / 2, 5000, "S", .comm = "a", .why = "client", .kind = "socket", .sure = "certain",
		.root = "redis", .root_state = "ON"}}}, /* a client that gets its answers */

	{"server", "likely", {{10, SCANS, 19 * SECOND_US, "S", .comm = "curl", .why = "client", .kind = "socket", .sure = "likely",
		.root = "mariadbd", .root_state = "S", .root_why = "futex"}}},
	{"server", "likely", {{10, SCANS, 4 * SECOND_US, "S", .comm = "curl", .why = "client", .waits_on = "udp 10.0.0.2:53"}}},
	{NULL, NULL, {{10, SCANS, 4 * SECOND_US, "S", .comm = "curl", .why = "client",
		.waits_on = "tcp 127.0.0.1:80 peer 7 nginx"}}}, /* its chain is not found yet */
	{"server", "likely", {{10, SCANS, 900000, "S", .comm = "curl", .why = "client", .kind = "socket", .sure = "likely",
		.root = "mariadbd", .root_state = "S", .root_why = "futex", .before_us = 3 * SECOND_US}}}, /* it polls each second */
	{NULL, NULL, {{10, SCANS, 900000, "S", .comm = "curl", .why = "client", .kind = "socket", .sure = "likely",
		.root = "mariadbd", .root_state = "S", .root_why = "futex"}}}, /* it is answered */
	{NULL, NULL, {{10, SCANS, 3600 * SECOND_US, "S", .comm = "redis-cli", .why = "client", .kind = "socket", .sure = "likely",
		.root = "redis", .root_state = "S", .root_why = "poll"}}}, /* waits for news */
	{NULL, NULL, {{10, SCANS, 9 * SECOND_US, "S", .comm = "redis-cli", .why = "client", .kind = "socket", .sure = "likely",
		.root = "redis", .root_state = "S", .root_why = "loop"}}}, /* the server waits for its clients, too */
	{"server", "likely", {{10, SCANS, 9 * SECOND_US, "S", .comm = "curl", .why = "client",
		.waits_on = "tcp 10.0.0.2:80" WAITS_ON_UNACCEPTED, .kind = "socket", .sure = "likely", .root = "http",
		.root_state = "S", .root_why = "loop"}}}, /* it does not accept it */
	{"server", "likely", {{10, SCANS, 9 * SECOND_US, "S", .comm = "curl", .why = "dns",
		.waits_on = "1 fd: udp 127.0.0.77:53 peer 7 named", .kind = "socket", .sure = "likely", .root = "named",
		.root_state = "S", .root_why = "loop"}}}, /* it did not answer, or the datagram is lost */

	{"kernel", "certain", {{1, SCANS, 1000, "ON", .comm = "dd", .syscall = "read"}, {2, SCANS, 1000, "ON", .comm = "dd", .syscall = "write"}}},
	{NULL, NULL, {{1, SCANS, 1000, "ON", .comm = "dd", .syscall = "read"}}}, /* one of two CPUs */
	{NULL, NULL, {{1, SCANS, 1000, "ON", .comm = "qemu", .syscall = "ioctl", .file = "anon_inode:kvm-vcpu:0"},
		{2, SCANS, 1000, "ON", .comm = "qemu", .syscall = "ioctl", .file = "anon_inode:kvm-vcpu:1"}}}, /* guests */
	{NULL, NULL, {FULL}},
	/* clang-format on */
};

/* Each case has its finding and no other, and the sums close. */
static void cases_and_look_alikes(void **state)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct source_status status = {0};
		struct findings findings;
		size_t count = 0;

		while (count < COUNT(cases[i].seen) && cases[i].seen[count].comm)
			count++;
		findings_of(&findings, cases[i].seen, count, &status);
		if (findings.count != (cases[i].finding ? 1 : 0))
			fail_msg("case %zu, %s: %zu findings, first: %s", i, cases[i].finding,
				 findings.count,
				 findings.count ? finding_at(&findings, 0)->row->name : "-");
		if (findings.count) {
			assert_string_equal(finding_at(&findings, 0)->row->name, cases[i].finding);
			assert_string_equal(finding_certainty(finding_at(&findings, 0)),
					    cases[i].certainty);
		}
		assert_int_equal(sum_of(&findings), findings.total_us);
		findings_done(&findings);
	}
}

/* Each row that takes cases has one above. */
static void rows_have_cases(void **state)
{
	for (size_t i = 0; i < finding_row_count; i++) {
		size_t at = 0;

		if (!finding_rows[i].key || !strcmp(finding_rows[i].name, "io_limit") ||
		    !strcmp(finding_rows[i].name, "quota"))
			continue;
		while (at < COUNT(cases) &&
		       (!cases[at].finding || strcmp(cases[at].finding, finding_rows[i].name) != 0))
			at++;
		if (at == COUNT(cases))
			fail_msg("no case of %s", finding_rows[i].name);
	}
}

/* Waits for a quota are certain if the kernel counts the group as throttled for nearly all the time
 * on each CPU where a thread of it may wait: one CPU for one thread. */
static void quotas_by_the_kernel(void **state)
{
	static const struct {
		int64_t throttled_us;
		const char *certainty;
	} rows[] = {{4100000, "certain"}, {3900000, "likely"}};
	static const struct seen seen = {10,
					 SCANS,
					 90000,
					 "RQ",
					 .comm = "a",
					 .kind = "quota",
					 .sure = "likely",
					 .chain = "a quota> /web"};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct source_status status = {.quota_count = 1};
		struct findings findings;

		status.quotas[0] = (struct source_quota){
			.path = "/web", .periods = 50, .throttled_us = rows[i].throttled_us};
		findings_of(&findings, &seen, 1, &status);
		assert_int_equal(findings.count, 1);
		assert_string_equal(finding_at(&findings, 0)->row->name, "quota");
		assert_string_equal(finding_certainty(finding_at(&findings, 0)), rows[i].certainty);
		findings_done(&findings);
	}
}

/* A thread that waits for a disk all the time. */
static const struct seen seen_at_sda = {10,
					SCANS,
					40000,
					"D",
					.comm = "a",
					.device = "sda",
					.io_us = 40000,
					.kind = "io",
					.chain = "a io> sda"};

/* A device whose I/O limit a group has used up is held back by that; one whose limit is not used up
 * is not. */
static void limits_of_devices(void **state)
{
	static const struct seen early = {10, SCANS, 40000, "D", .comm = "a", .syscall = "read"};
	struct source_status status = {.io_limit_count = 1};
	struct seen other = early;
	struct findings findings;

	status.io_limits[0] = (struct source_io_limit){
		.path = "/web", .device = "sda", .word = "wbps", .limit = 1000, .used = 5000};
	findings_of(&findings, &seen_at_sda, 1, &status);
	assert_int_equal(findings.count, 1);
	assert_string_equal(finding_at(&findings, 0)->row->name, "io_limit");
	assert_string_equal(finding_at(&findings, 0)->limit->path, "/web");
	findings_done(&findings);
	status.io_limits[0].used = 1000;
	status.devices[0] = (struct source_device){.name = "sdb", .requests = 9};
	status.devices[1] = (struct source_device){.name = "sda", .requests = 7};
	status.device_count = 2;
	findings_of(&findings, &seen_at_sda, 1, &status);
	assert_string_equal(finding_at(&findings, 0)->row->name, "slow_disk");
	assert_int_equal(finding_at(&findings, 0)->device->requests, 7);
	assert_string_equal(finding_certainty(finding_at(&findings, 0)), "likely");
	findings_done(&findings);
	/* a request that waits for the limit is not at the device yet */
	status.io_limits[0].used = 5000;
	findings_of(&findings, &early, 1, &status);
	assert_string_equal(finding_at(&findings, 0)->row->name, "io_limit");
	assert_string_equal(finding_certainty(finding_at(&findings, 0)), "likely");
	findings_done(&findings);
	/* a thread of another group is not held back */
	other.tid = 11;
	findings_of(&findings, &other, 1, &status);
	assert_string_equal(finding_at(&findings, 0)->row->name, "d_wait");
	assert_string_equal(finding_certainty(finding_at(&findings, 0)), "certain");
	findings_done(&findings);
	/* without events of requests nobody knows whether it has one */
	status.absent[0].needs = NEED_BLOCK;
	status.absent_count = 1;
	findings_of(&findings, &other, 1, &status);
	assert_string_equal(finding_certainty(finding_at(&findings, 0)), "likely");
	findings_done(&findings);
}

/* Of a thread in D whose wait was over before anything was read of it there are some words. */
static void things_of_waits_in_d(void **state)
{
	static const struct seen faults = {10, SCANS, 90000, "D", .comm = "a"};
	static const struct seen known = {10,  SCANS,	    90000,
					  "D", .comm = "a", .waits_on = "page fault"};
	struct source_status status = {0};
	struct findings findings;

	findings_of(&findings, &faults, 1, &status);
	assert_string_equal(finding_first(finding_at(&findings, 0), PARTY_THINGS)->name,
			    "no known system call");
	findings_done(&findings);
	findings_of(&findings, &known, 1, &status);
	assert_string_equal(finding_first(finding_at(&findings, 0), PARTY_THINGS)->name,
			    "page fault");
	findings_done(&findings);
}

/* Clients of a server that waits for a CPU are a symptom of too few CPUs; the wait of a lock's
 * holder is one of the lock, as far as others waited for it meanwhile. */
static void symptoms(void **state)
{
	static const struct seen queued[] = {
		FULL,
		{ROOT_TID, SCANS, 9000, "RQ", .comm = "db", .kind = "cpu", .chain = "db cpu> spin"},
		{10, SCANS, 90000, "S", .comm = "client", .why = "client", .kind = "socket",
		 .sure = "certain", .root = "db", .root_state = "RQ"},
	};
	static const struct seen held[] = {
		FULL,
		{ROOT_TID, SCANS, 9000, "RQ", .comm = "holder", .kind = "cpu",
		 .chain = "holder cpu> spin"},
		{10, SCANS / 2, 30000, "S", .comm = "waiter", .why = "lock", .kind = "mutex",
		 .sure = "certain", .root = "holder", .root_state = "RQ"},
	};
	struct source_status status = {0};
	struct findings findings;
	const struct finding *first;

	findings_of(&findings, queued, COUNT(queued), &status);
	assert_int_equal(findings.count, 1);
	first = finding_at(&findings, 0);
	assert_string_equal(first->row->name, "cpus");
	assert_int_equal(first->weight_us, 2ll * SCANS * PERIOD_US);
	assert_int_equal(first->symptom_us, (int64_t)SCANS * PERIOD_US);
	assert_int_equal(first->longest_us, 9000);		  /* and not that of the client */
	assert_string_equal(finding_certainty(first), "certain"); /* of those in the queue */
	assert_int_equal(sum_of(&findings), findings.total_us);
	findings_done(&findings);

	findings_of(&findings, held, COUNT(held), &status);
	assert_int_equal(findings.count, 2);
	first = finding_at(&findings, 0);
	assert_string_equal(first->row->name, "lock");
	assert_int_equal(first->weight_us, (int64_t)SCANS * PERIOD_US);
	assert_int_equal(first->symptom_us, (int64_t)SCANS / 2 * PERIOD_US);
	assert_string_equal(finding_at(&findings, 1)->row->name, "cpus");
	assert_int_equal(finding_at(&findings, 1)->weight_us, (int64_t)SCANS / 2 * PERIOD_US);
	assert_int_equal(sum_of(&findings), findings.total_us);
	findings_done(&findings);
}

/* CPUs that others fill are not busy with the system calls of the threads that were selected. */
static void kernel_of_a_few(void **state)
{
	static const struct seen seen = {1,    SCANS * 9 / 10, 1000,
					 "ON", .comm = "dd",   .syscall = "read"};
	struct source_status status = {.busy_us = 2ll * SCANS * PERIOD_US};
	struct findings findings;

	findings_of(&findings, &seen, 1, &status);
	assert_int_equal(findings.count, 0);
	findings_done(&findings);
}

/* Servers that have a process for each client are one finding, in the plural. */
static void server_of_many(void **state)
{
	static const struct seen seen[] = {
		{10, SCANS, 3 * SECOND_US, "S", .comm = "psql", .why = "client", .kind = "socket",
		 .sure = "likely", .root = "postgres", .root_state = "S", .root_why = "poll"},
		{11, SCANS, 3 * SECOND_US, "S", .comm = "psql", .why = "client", .kind = "socket",
		 .sure = "likely", .root = "postgres", .root_state = "S", .root_why = "poll",
		 .root_tid = 901},
	};
	struct source_status status = {0};
	struct text out = {0};
	struct findings findings;
	struct interval interval = {.status = &status};

	findings_of(&findings, seen, COUNT(seen), &status);
	assert_int_equal(findings.count, 1);
	interval_add_findings(&out, &interval, &findings, 0);
	if (!strstr(out.bytes, "2.0 psql (2) wait for postgres (2), which have not answered for "
			       "3.0 s; they sleep"))
		fail_msg("%s", out.bytes);
	text_done(&out);
	findings_done(&findings);
}

/* Clients of an event loop wait for what chains of others lead on to from a thread of its name,
 * unless these lead to several ends. */
/* What a holder does for less than half of the time is not told. */
static void holder_of_many_calls(void **state)
{
#define HOLDER(scans_, call_)                                                              \
	{                                                                                  \
		10, scans_, 90000, "S", .comm = "a", .why = "lock", .kind = "mutex",       \
					.sure = "certain", .root = "b", .root_state = "S", \
					.root_syscall = call_                              \
	}
	static const struct seen seen[] = {HOLDER(40, "read"), HOLDER(35, "write"),
					   HOLDER(25, "fsync")};
	struct source_status status = {0};
	struct text out = {0};
	struct findings findings;
	struct interval interval = {.status = &status};

	for (size_t count = 1; count <= COUNT(seen); count += 2) {
		findings_of(&findings, seen, count, &status);
		text_clear(&out);
		interval_add_findings(&out, &interval, &findings, 0);
		if (!strstr(out.bytes, count == 1 ? "which sleeps in read;" : "which sleeps;"))
			fail_msg("%s", out.bytes);
		findings_done(&findings);
	}
	text_done(&out);
}

static void open_ends(void **state)
{
#define CLIENT(tid, root_, root_tid_, chain_, depth_)                                        \
	{                                                                                    \
		tid, SCANS, 4 * SECOND_US, "S",                                              \
			.comm = "curl", .why = "client", .kind = "socket", .sure = "likely", \
			.root = root_, .root_state = "S", .root_why = "poll",                \
			.root_tid = root_tid_, .depth = depth_, .chain = chain_              \
	}
	static const struct seen seen[] = {
		CLIENT(10, "db", ROOT_TID, "curl socket> nginx socket> db", 2),
		CLIENT(11, "nginx", 901, "curl socket> nginx", 1),
		CLIENT(12, "nginx", 901, "curl socket> nginx", 1),
		CLIENT(13, "app", 902, "curl socket> nginx socket> app", 2),
	};
	struct source_status status = {0};
	struct findings findings;

	findings_of(&findings, seen, 3, &status);
	assert_int_equal(findings.count, 1);
	assert_string_equal(finding_first(finding_at(&findings, 0), PARTY_CULPRITS)->name, "db");
	assert_int_equal(finding_at(&findings, 0)->weight_us, 3ll * SCANS * PERIOD_US);
	assert_int_equal(finding_at(&findings, 0)->symptom_us, 2ll * SCANS * PERIOD_US);
	assert_int_equal(sum_of(&findings), findings.total_us);
	findings_done(&findings);
	findings_of(&findings, seen, 4, &status);
	assert_int_equal(findings.count, 3);
	findings_done(&findings);
}

/* A server whose thread is not known sleeps if its process was awake for none of the time: then it
 * has no account, unless a filter has left it out. */
static void unknown_threads(void **state)
{
	static const struct seen seen = {10,
					 SCANS,
					 4 * SECOND_US,
					 "S",
					 .comm = "app",
					 .why = "client",
					 .kind = "socket",
					 .sure = "process",
					 .root = "db",
					 .root_state = "?",
					 .root_tid = ABSENT};
	struct tally tally = {.scans = SCANS, .elapsed_us = (int64_t)SCANS * PERIOD_US};
	struct source_status status = {.cpus = CPUS, .busy_us = ABSENT};
	struct sample sample, account = *sample_absent();
	struct findings findings;

	for (int awake = -2; awake <= 1; awake++) {
		findings_init(&findings, NULL);
		findings.of_all = awake > -2;
		sample = sample_of(&seen);
		sample.chain.root.pid = account.thread.pid = ROOT_TID;
		for (int64_t scan = 0; scan < SCANS; scan++)
			findings_add(&findings, &sample, EXACT_NOTE_NONE);
		account.sums.cpu_us = awake ? SECOND_US : SECOND_US / 50;
		if (awake >= 0)
			findings_add_account(&findings, &account);
		findings_fill(&findings, &tally, &status, NULL);
		assert_int_equal(findings.count, 1);
		assert_int_equal(finding_doing(finding_at(&findings, 0)),
				 awake == 1 || awake == -2 ? STATE_COUNT : STATE_SLEEP);
		findings_done(&findings);
	}
}

/* A thread whose name looks like links of a chain makes no lock out of a socket. */
static void names_like_links(void **state)
{
	static const struct seen seen = {10,
					 SCANS,
					 4 * SECOND_US,
					 "S",
					 .comm = "a mutex> b",
					 .why = "client",
					 .kind = "socket",
					 .sure = "likely",
					 .root = "x mutex> b",
					 .root_state = "S",
					 .root_why = "poll",
					 .depth = 2,
					 .chain = "a mutex> b socket> y socket> x mutex> b"};
	struct source_status status = {0};
	struct findings findings;

	findings_of(&findings, &seen, 1, &status);
	assert_int_equal(findings.count, 1);
	assert_string_equal(finding_at(&findings, 0)->row->name, "server");
	findings_done(&findings);
}

/* A listener that drops many attempts to connect is a finding; one of which one was dropped is
 * none, and what was dropped before does not count. */
static void full_queues(void **state)
{
	struct source_status before = {.busy_us = ABSENT,
				       .listener_count = 2,
				       .listeners = {{.inode = 7, .dropped = 100, .port = 80},
						     {.inode = 8, .dropped = 5, .port = 443}}};
	struct source_status status = {
		.cpus = CPUS,
		.busy_us = ABSENT,
		.listener_count = 3,
		.listeners = {{.inode = 7, .dropped = 145, .port = 80},
			      {.inode = 8, .dropped = 5, .port = 443},
			      {.inode = 9, .dropped = 1, .port = 8080}},
	};
	struct tally tally = {.scans = SCANS, .elapsed_us = 5 * SECOND_US};
	struct findings findings;

	status_subtract(&status, &before);
	assert_int_equal(status.listener_count, 2);
	findings_init(&findings, NULL);
	findings_fill(&findings, &tally, &status, NULL);
	assert_int_equal(findings.count, 1);
	assert_string_equal(finding_at(&findings, 0)->row->name, "accept_queue");
	assert_int_equal(finding_at(&findings, 0)->samples, 45);
	assert_string_equal(finding_first(finding_at(&findings, 0), PARTY_THINGS)->name, "tcp :80");
	findings_done(&findings);
}

/* Findings by counts: forks by who forks, growth of threads that is no burst, time not seen. */
static void counts(void **state)
{
	struct tally tally = {.scans = SCANS, .elapsed_us = 5 * SECOND_US, .forks = 1500};
	struct sample account = *sample_absent();
	struct source_status status = {.cpus = CPUS, .busy_us = ABSENT};
	struct findings findings;

	findings_init(&findings, NULL);
	account.thread.comm = name_transient_string("bomb");
	account.thread.uid = 7;
	account.sums.forks = 1490;
	account.makers.fork_pid = 4711;
	account.sums.new_threads = 9000;
	findings_add_account(&findings, &account);
	account.sums.new_threads = ABSENT;
	account.thread.comm = name_transient_string("sh");
	account.sums.forks = 10;
	account.makers.fork_pid = 4712;
	account.sums.vcsw = 900000;
	account.sums.cpu_us = 3 * SECOND_US;
	findings_add_account(&findings, &account);
	for (int64_t scan = 0; scan < SCANS; scan++)
		findings_end_scan(&findings, 100 + scan);
	account.thread.comm = name_transient_string("leak");
	account.thread.pid = 77;
	account.sums.forks = account.sums.new_threads = ABSENT;
	account.sums.cpu_us = 0;
	account.thread.start_ns = INT64_MAX;
	for (account.thread.tid = 78; account.thread.tid < 78 + SCANS / 2; account.thread.tid++)
		findings_add_account(&findings, &account);
	tally.shared_us = 10 * SECOND_US;
	findings_fill(&findings, &tally, &status, NULL);
	assert_int_equal(findings.count, 4);
	assert_string_equal(finding_at(&findings, 0)->row->name, "unseen");
	assert_int_equal(finding_at(&findings, 0)->weight_us, 7 * SECOND_US);
	assert_string_equal(finding_at(&findings, 1)->row->name, "forks");
	assert_int_equal(finding_at(&findings, 1)->weight_us, 3 * SECOND_US);
	assert_int_equal(finding_at(&findings, 1)->rate, 300 * 100);
	assert_string_equal(finding_first(finding_at(&findings, 1), PARTY_CULPRITS)->name, "bomb");
	assert_int_equal(finding_first(finding_at(&findings, 1), PARTY_CULPRITS)->pid, 4711);
	assert_string_equal(finding_at(&findings, 2)->row->name, "new_threads");
	assert_int_equal(finding_at(&findings, 2)->rate, 1800 * 100);
	assert_int_equal(finding_at(&findings, 2)->weight_us, 0); /* it is that of the forks */
	assert_string_equal(finding_at(&findings, 3)->row->name, "threads");
	assert_int_equal(finding_first(finding_at(&findings, 3), PARTY_CULPRITS)->pid, 77);
	assert_int_equal(sum_of(&findings), findings.total_us);
	/* threads that end unseen, with few forks */
	findings.of_all = true;
	findings_clear(&findings);
	assert_true(findings.of_all); /* of the report, not of the interval */
	findings.of_all = false;
	account.thread.tid = account.thread.start_ns = ABSENT;
	account.sums.new_threads = 9000;
	account.sums.cpu_us = 3 * SECOND_US;
	findings_add_account(&findings, &account);
	findings_end_scan(&findings, 100);
	findings_fill(&findings, &tally, &status, NULL);
	assert_string_equal(finding_at(&findings, 1)->row->name, "new_threads");
	assert_int_equal(finding_at(&findings, 1)->weight_us, 3 * SECOND_US);
	account.sums.new_threads = ABSENT;
	account.sums.cpu_us = 0;
	/* a start that takes a second, and what two programs make alike */
	findings_clear(&findings);
	tally.shared_us = 0;
	for (int64_t scan = 0; scan < SCANS; scan++)
		findings_end_scan(&findings, 100 + (scan < SCANS / 5 ? scan : SCANS / 5) * 5);
	account.thread.tid = ABSENT;
	account.sums.forks = 1000;
	for (account.thread.uid = 8; account.thread.uid < 11; account.thread.uid++)
		findings_add_account(&findings, &account);
	findings_fill(&findings, &tally, &status, NULL);
	assert_int_equal(findings.count, 1);
	assert_string_equal(finding_at(&findings, 0)->row->name, "forks");
	assert_null(finding_first(finding_at(&findings, 0), PARTY_CULPRITS));
	/* a burst, few forks, and little that was not seen */
	findings_clear(&findings);
	tally.forks = 500;
	tally.shared_us = 0;
	for (int64_t scan = 0; scan < SCANS; scan++)
		findings_end_scan(&findings, scan < SCANS / 2 ? 100 : 200);
	findings_fill(&findings, &tally, &status, NULL);
	assert_int_equal(findings.count, 0);
	/* growth of which no process makes the most */
	findings_clear(&findings);
	for (int64_t scan = 0; scan < SCANS; scan++)
		findings_end_scan(&findings, 100 + scan);
	findings_fill(&findings, &tally, &status, &flash_source);
	assert_int_equal(findings.count, 0);
	findings_done(&findings);
}

/* Programs that wake each other so often that the CPUs are full: these are a symptom of it, if they
 * are most of those that wait for a CPU. */
static void storms(void **state)
{
	static const struct seen seen[] = {
		{1, SCANS, 1000, "ON", .comm = "ping", .syscall = "read"},
		{2, SCANS, 1000, "ON", .comm = "ping", .syscall = "write"},
		{3, SCANS, 9000, "RQ", .comm = "ping", .kind = "cpu", .sure = "likely",
		 .chain = "ping cpu> ping"},
		{4, SCANS / 2, 9000, "RQ", .comm = "make", .kind = "cpu", .sure = "likely",
		 .chain = "make cpu> ping"},
	};
	static const char *const names[] = {"switches", "forks"};
	struct tally tally = {.scans = SCANS, .elapsed_us = 5 * SECOND_US};

	for (size_t i = 0; i < COUNT(names); i++) {
		struct source_status status = {.cpus = CPUS, .busy_us = ABSENT};
		struct sample account = *sample_absent();
		struct findings findings;

		findings_init(&findings, NULL);
		for (size_t at = 0; at < COUNT(seen); at++) {
			struct sample sample = sample_of(&seen[at]);

			for (int64_t scan = 0; scan < seen[at].scans; scan++)
				findings_add(&findings, &sample, EXACT_NOTE_NONE);
		}
		account.thread.comm = i ? name_transient_string("cron") : seen[0].comm;
		account.thread.pid = 10;
		account.sums.vcsw = i ? ABSENT : 600000;
		account.sums.forks = i ? 2000 : ABSENT;
		findings_add_account(&findings, &account);
		findings_fill(&findings, &tally, &status, NULL);
		/* what cron forks does not explain who waits */
		assert_int_equal(findings.count, i ? 3 : 1);
		assert_string_equal(finding_at(&findings, findings.count - 1)->row->name, names[i]);
		assert_string_equal(finding_certainty(finding_at(&findings, findings.count - 1)),
				    i ? "certain" : "likely");
		assert_int_equal(sum_of(&findings), findings.total_us);
		findings_done(&findings);
	}
}

/* Waits for a CPU are a symptom of interrupts that take a good part of the CPUs; of full ones less
 * than half of one CPU is no explanation, and where nobody waits nothing is wrong. */
static void interrupts(void **state)
{
	static const struct seen seen[] = {
		{1, SCANS, 1000, "ON", .comm = "spin"},
		{2, SCANS, 1000, "ON", .comm = "spin"},
		{3, SCANS, 9000, "RQ", .comm = "web", .kind = "cpu", .sure = "likely",
		 .chain = "web cpu> spin"},
		{4, SCANS, 90000, "RQ", .comm = "web", .kind = "cpu", .sure = "likely",
		 .chain = "web cpu> spin"},
	};
	static const struct {
		size_t from, count;
		int64_t busy_us, softirq_us, steal_us;
		const char *finding;
	} rows[] = {
		{0, 3, 5 * CPUS * SECOND_US, 15 * SECOND_US / 10, SECOND_US, "interrupts"},
		{0, 3, 5 * CPUS * SECOND_US, 15 * SECOND_US / 10, 0, "cpus"},
		{1, 3, CPUS * SECOND_US, 26 * SECOND_US / 10, 0, "interrupts"}, /* of one CPU */
		{1, 3, CPUS * SECOND_US, 24 * SECOND_US / 10, 0, "uneven_cpus"},
		{0, 2, 5 * CPUS * SECOND_US, 4 * SECOND_US, SECOND_US, NULL},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct source_status status = {.cpus = CPUS, .busy_us = rows[i].busy_us};
		struct findings findings;

		status.taken_count = 2;
		status.taken[1].cpu = 1;
		status.taken[1].taken_us[CPU_USE_SOFTIRQ] = rows[i].softirq_us;
		status.taken[0].taken_us[CPU_USE_STEAL] = rows[i].steal_us;
		findings_of(&findings, seen + rows[i].from, rows[i].count, &status);
		assert_int_equal(findings.count, rows[i].finding != NULL);
		if (rows[i].finding)
			assert_string_equal(finding_at(&findings, 0)->row->name, rows[i].finding);
		assert_int_equal(sum_of(&findings), findings.total_us);
		findings_done(&findings);
	}
}

/* Half of the waiting time is for requests that are that old, to a quarter. */
static void ages_of_requests(void **state)
{
	static const struct seen seen[] = {
		{10, 60, 40000, "D", .comm = "a", .device = "sda", .io_us = 40000,
		 .chain = "a io> sda"},
		{11, 40, 40000, "D", .comm = "b", .device = "sda", .io_us = 900,
		 .chain = "b io> sda"},
	};
	struct source_status status = {0};
	struct findings findings;

	findings_of(&findings, seen, COUNT(seen), &status);
	assert_int_equal(findings.count, 1);
	assert_int_equal(finding_age_us(finding_at(&findings, 0)), 32768);
	findings_done(&findings);
}

#define LONG_WAIT "reclaim (memory.max of /a/long/path/of/a/group/kubepods/burstable/pod123456789)"

#define UNREAD(pid_, threads_, comm_, ...)                                                 \
	{                                                                                  \
		.port = 8080, .pid = pid_, .threads = threads_, .comm = comm_, __VA_ARGS__ \
	}
#define IN_CALL(tid_, comm_, state_, why_)                                                       \
	{                                                                                        \
		tid_, SCANS, 9 * SECOND_US, state_, .comm = comm_, .syscall = "recvfrom",        \
						    .why = why_, .waits_on = "tcp 10.0.0.3:3306" \
	}

/* Requests that nobody reads are a finding if they are late, and where they are accepted if the
 * process does something else. */
static void unread_requests(void **state)
{
	static const struct seen client = IN_CALL(10, "nginx", "S", "client"),
				 of_another = IN_CALL(11, "nginx", "S", "client"),
				 idle = IN_CALL(10, "nginx", "S", "loop");
	static const struct {
		struct source_unread unread;
		const struct seen *seen;
		const char *words; /* NULL: no finding */
	} rows[] = {
		{UNREAD(10, 2, "nginx", .requests = 37, .late = 30, .oldest_us = 1200000), &client,
		 "37 requests wait unread at tcp :8080 of nginx 10, the oldest for 1.2 s or "
		 "longer; "
		 "1.0 of its 2 threads works or waits: it sleeps in recvfrom: tcp 10.0.0.3:3306"},
		{UNREAD(10, 1, "nginx", .requests = 1, .late = 1, .oldest_us = 1200000), &client,
		 "1 request waits unread at tcp :8080 of nginx 10, for 1.2 s or longer; its thread "
		 "sleeps in recvfrom: "},
		{UNREAD(10, 2, "nginx", .requests = 4, .late = 4, .oldest_us = 150000), &client,
		 "4 requests wait"},
		/* they have just come */
		{UNREAD(10, 2, "nginx", .requests = 9, .late = 3, .oldest_us = 150000), &client,
		 NULL},
		/* the process has nothing to do */
		{UNREAD(10, 2, "nginx", .requests = 37, .late = 30, .oldest_us = 1200000), &idle,
		 NULL},
		{UNREAD(10, 2, "nginx", .requests = 37, .late = 30, .oldest_us = 1200000),
		 &of_another, NULL},
		/* a process that accepts nobody is late, whatever it does */
		{UNREAD(10, 2, "nginx", .unaccepted = 5, .limit = 128, .late = 5,
			.late_unaccepted = 5, .oldest_us = 12000000),
		 &idle,
		 "5 connections wait to be accepted at tcp :8080 of nginx 10, the oldest for 12 s "
		 "or "
		 "longer; 5 of 128 places in its accept queue taken\n"},
		/* one of several processes: those of its name */
		{UNREAD(ABSENT, ABSENT, "nginx", .requests = 37, .late = 30, .oldest_us = 1200000),
		 &of_another,
		 "37 requests wait unread at tcp :8080 of nginx, the oldest for 1.2 s or longer; "
		 "1.0 thread works or waits: it sleeps in recvfrom"},
		/* nobody is known to have it */
		{UNREAD(ABSENT, ABSENT, "", .requests = 37, .late = 30, .oldest_us = 1200000),
		 &client, NULL},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct source_status status = {.unread_count = 1, .unread = {rows[i].unread}};
		struct findings findings;
		struct text out = {0};
		struct interval interval = {.status = &status};
		struct tally tally = {.scans = SCANS, .elapsed_us = (int64_t)SCANS * PERIOD_US};
		struct sample sample = sample_of(rows[i].seen);
		bool found;

		status.cpus = CPUS;
		status.busy_us = ABSENT;
		findings_init(&findings, NULL);
		findings.of_all = true;
		for (int64_t scan = 0; scan < SCANS; scan++)
			findings_add(&findings, &sample, EXACT_NOTE_NONE);
		findings_fill(&findings, &tally, &status, &flash_source);
		interval_add_findings(&out, &interval, &findings, 0);
		found = strstr(out.bytes, " at tcp :8080") != NULL;
		if (found != (rows[i].words != NULL) ||
		    (rows[i].words && !strstr(out.bytes, rows[i].words)))
			fail_msg("%zu: %s", i, out.bytes);
		text_done(&out);
		findings_done(&findings);
	}
}

#define RUNTIME(...)                                                          \
	{                                                                     \
		.pid = 10, .comm = "server", .known_us = 5000000, __VA_ARGS__ \
	}
#define GO(...) RUNTIME(.is_go = true, .threads = 9, .seconds = 5, __VA_ARGS__)

/* Runtimes that stop their threads to collect garbage; Go programs whose goroutines get more in
 * most seconds, which a burst of them does not do, nor those that end, whose places are used again.
 */
static void counts_of_runtimes(void **state)
{
	static const struct {
		struct source_runtime runtime;
		const char *words; /* NULL: no finding */
	} rows[] = {
		{RUNTIME(.threads = 20, .stopped_us = 1000000, .gc_us = 900000, .collections = 90),
		 "Collection of garbage stops the 20 threads of server 10 18 % of the time: 90 "
		 "collections of 10.00 ms on average"},
		{RUNTIME(.threads = 20, .stopped_us = 900000, .gc_us = 400000, .collections = 90),
		 NULL},
		{GO(.stopped_us = 1000000, .gc_us = 1000000, .collections = 50, .goroutines = 30),
		 "Collection of garbage stops the 9 threads of server 10 20 % of the time: 50 "
		 "collections of 20.00 ms on average"},
		{GO(.stopped_us = 10000, .gc_us = 10000, .collections = 500, .goroutines = 30),
		 NULL},
		{GO(.goroutines = 7000, .grown = 5000, .grown_seconds = 5),
		 "1000 more goroutines a second are begun than end in server 10, 7000 by now"},
		{GO(.goroutines = 7000, .grown = 5000, .grown_seconds = 4),
		 "1000 more goroutines a second are begun than end in server 10, 7000 by now"},
		/* at a start, or once in a while */
		{GO(.goroutines = 7000, .grown = 5000, .grown_seconds = 3), NULL},
		{GO(.goroutines = 7000), NULL},
		/* as many as clients that come */
		{GO(.goroutines = 70, .grown = 20, .grown_seconds = 5), NULL},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct source_status status = {.runtime_count = 1,
					       .runtimes = {rows[i].runtime},
					       .cpus = CPUS,
					       .busy_us = ABSENT};
		struct findings findings;
		struct text out = {0};
		struct interval interval = {.status = &status};
		struct tally tally = {.scans = SCANS, .elapsed_us = (int64_t)SCANS * PERIOD_US};

		findings_init(&findings, NULL);
		findings.of_all = true;
		findings_fill(&findings, &tally, &status, &flash_source);
		interval_add_findings(&out, &interval, &findings, 0);
		if (findings.count != (rows[i].words != NULL) ||
		    (rows[i].words && !strstr(out.bytes, rows[i].words)))
			fail_msg("%zu: %s", i, out.bytes);
		findings_done(&findings);
		/* of a process that was left out */
		findings_init(&findings, NULL);
		findings_fill(&findings, &tally, &status, &flash_source);
		assert_int_equal(findings.count, 0);
		text_done(&out);
		findings_done(&findings);
	}
}

/* A device's line says what the kernel counted in 5 s of it: requests that ended, their mean time,
 * and those that have not; also where none has ended. */
static void lines_of_devices(void **state)
{
	static const struct {
		struct source_device device;
		const char *line;
	} lines[] = {
		{{.name = "sda", .requests = 4060, .taken_us = 70000000, .in_flight = 12},
		 "   sda: 812 requests a second, 17.24 ms each on average, 14.0 at once, 12 now; "
		 "P50, P99: --trace block\n"},
		{{.name = "sda", .requests = 4, .taken_us = 9000000},
		 "   sda: 0.8 requests a second, 2250.00 ms each on average, 1.8 at once, 0 now; "},
		{{.name = "sda", .in_flight = 3}, "   sda: no request has ended, 3 now; "},
		/* half of 4000 below 8.4 ms, the rest between 33.6 and 67.1 ms */
		{{.name = "sda",
		  .requests = 4060,
		  .taken_us = 70000000,
		  .timed_ns = 1,
		  .times = {[17] = 2000, [20] = 2000}},
		 " 0 now; P50 8.38 ms, P99 66.43 ms\n"},
		{{.name = "sda",
		  .requests = 1,
		  .taken_us = 41000,
		  .timed_ns = 1,
		  .times = {[20] = 1}},
		 " 0 now; P50 42.00 ms, P99 42.00 ms\n"},
		/* few of them were seen, or none, and what other programs counted */
		{{.name = "sda",
		  .requests = 4060,
		  .taken_us = 70000000,
		  .timed_ns = 1,
		  .times = {[17] = 2000}},
		 "P50, P99: --trace block\n"},
		{{.name = "sda", .requests = 4060, .taken_us = 70000000, .times = {[17] = 4060}},
		 "P50, P99: --trace block\n"},
		{{.name = "sdb", .requests = 3}, NULL},
		{{.name = "sda"}, NULL},
	};

	for (size_t i = 0; i < COUNT(lines); i++) {
		struct source_status status = {.device_count = 1, .devices = {lines[i].device}};
		struct text out = {0};
		struct findings findings;
		struct interval interval = {.status = &status};

		findings_of(&findings, &seen_at_sda, 1, &status);
		interval_add_findings(&out, &interval, &findings, 0);
		if (lines[i].line ? !strstr(out.bytes, lines[i].line)
				  : strstr(out.bytes, "   sda: ") != NULL)
			fail_msg("%zu: %s", i, out.bytes);
		text_done(&out);
		findings_done(&findings);
	}
}

/* In a window of 80 columns a finding has two lines that fit, cut with a sign, and its command. */
static void lines_fit(void **state)
{
	static const struct seen seen[] = {
		{10, SCANS, 19 * SECOND_US, "S", .comm = "a-long-name-1", .why = "client",
		 .kind = "socket", .sure = "likely", .root = "a-server-name", .root_state = "S",
		 .root_why = "poll", .root_waits_on = "tcp 10.200.200.200:12345 far away",
		 .depth = 3,
		 .chain = "a-long-name-1 socket> a-proxy-name-22 socket> a-proxy-name-33 "
			  "socket> a-server-name"},
		{12, SCANS, 90000, "D", .comm = "a-second-long-n", .waits_on = LONG_WAIT},
		{13, SCANS, 90000, "D", .comm = "a-third-long-na", .waits_on = LONG_WAIT},
		{11, SCANS, 90000, "D", .comm = "a-fourth-long-n", .waits_on = LONG_WAIT},
	};
	struct source_status status = {0};
	struct text out = {0};
	struct findings findings;
	struct interval interval = {.status = &status, .width = 80};
	size_t count = 0;

	findings_of(&findings, seen, COUNT(seen), &status);
	assert_int_equal(findings.count, 2);
	interval_add_findings(&out, &interval, &findings, 0);
	for (char *line = strtok(out.bytes, "\n"); line && count < 4; line = strtok(NULL, "\n")) {
		if (text_width(line) > 80)
			fail_msg("%s", line);
		if (!count && !strstr(line, " wait for memory"))
			fail_msg("%s", line);
		if (++count == 4 && !strstr(line, "... tsnap 900"))
			fail_msg("%s", line);
	}
	assert_int_equal(count, 4);
	text_done(&out);
	findings_done(&findings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cases_and_look_alikes),
		cmocka_unit_test(rows_have_cases),
		cmocka_unit_test(quotas_by_the_kernel),
		cmocka_unit_test(limits_of_devices),
		cmocka_unit_test(things_of_waits_in_d),
		cmocka_unit_test(symptoms),
		cmocka_unit_test(kernel_of_a_few),
		cmocka_unit_test(server_of_many),
		cmocka_unit_test(open_ends),
		cmocka_unit_test(unknown_threads),
		cmocka_unit_test(holder_of_many_calls),
		cmocka_unit_test(names_like_links),
		cmocka_unit_test(full_queues),
		cmocka_unit_test(counts),
		cmocka_unit_test(storms),
		cmocka_unit_test(interrupts),
		cmocka_unit_test(ages_of_requests),
		cmocka_unit_test(unread_requests),
		cmocka_unit_test(counts_of_runtimes),
		cmocka_unit_test(lines_of_devices),
		cmocka_unit_test(lines_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
