/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sample, column_table, filter */
#include "unit.h"
#include "base/names.h"
#include "sample/waits_on.h"
#include "sample/proc_values.h"
#include "sample/filter/filter.h"
#include "sample/needs_table.h"

static void states_are_complete(void **state)
{
	for (int64_t i = 0; i < STATE_COUNT; i++) {
		assert_non_null(state_row(i)->name);
		assert_true(*state_row(i)->name && *state_row(i)->help);
		assert_int_equal(state_of_name(state_row(i)->name), i);
		for (const char *letter = state_row(i)->proc; *letter; letter++)
			assert_int_equal(state_of_proc_letter(*letter), i);
	}
	assert_null(state_row(STATE_COUNT));
	assert_null(state_row(-1));
	assert_null(state_row(ABSENT));
	assert_int_equal(state_of_name("d"), ABSENT);
	assert_int_equal(state_of_name(""), ABSENT);
	assert_int_equal(state_of_proc_letter('\0'), ABSENT);
	assert_int_equal(state_of_proc_letter('R'), STATE_RQ);
	assert_int_equal(state_of_proc_letter('D'), STATE_DISK);
}

static void needs_close(void **state)
{
	uint64_t above = 0;

	assert_int_equal(sample_needs_close(0), 0);
	assert_int_equal(sample_needs_close(NEED_FILENAMESUM),
			 NEED_FILENAMESUM | NEED_FILE | NEED_SYSCALL);
	assert_int_equal(sample_needs_close(NEED_WAKER_COMM), NEED_WAKER_COMM | NEED_WAKER);
	assert_int_equal(sample_needs_close(NEED_COMMSUM), NEED_COMMSUM | NEED_COMM);
	assert_int_equal(sample_needs_close(NEED_STACK), NEED_STACK | NEED_USTACK | NEED_KSTACK);
	assert_int_equal(sample_needs_close(NEED_WAKER_PID), NEED_WAKER_PID | NEED_WAKER);
	assert_int_equal(sample_needs_close(NEED_CGROUP_NAMES), NEED_CGROUP_NAMES | NEED_CGROUP);
	assert_int_equal(sample_needs_close(NEED_CONTAINER_NAME),
			 NEED_CONTAINER_NAME | NEED_CGROUP);
	for (size_t i = 0; i < needs_row_count; i++) {
		uint64_t need = needs_rows[i].need, closed = sample_needs_close(need);

		assert_int_equal(needs_rows[i].implies & ~above, 0);
		assert_int_equal(above & need, 0);
		above |= need;
		assert_int_equal(closed & need, need);
		assert_int_equal(sample_needs_close(closed), closed);
	}
}

static void derives(void **state)
{
	struct sample sample = *sample_absent();

	sample_derive(&sample, ~0u);
	assert_null(sample.thread.commsum);
	assert_null(sample.file.namesum);
	sample.thread.comm = name_of_string("worker-17");
	sample.file.name = name_of_string("/var/log/a.1");
	sample_derive(&sample, 0);
	assert_null(sample.thread.commsum);
	sample_derive(&sample, NEED_COMMSUM);
	assert_ptr_equal(sample.thread.commsum, name_transient_string("worker-*"));
	assert_null(sample.file.namesum);
	sample_derive(&sample, NEED_FILENAMESUM);
	assert_ptr_equal(sample.file.namesum, name_transient_string("/var/log/a.*"));
}

/* Tells waits apart by the words of waits_on, for a name may contain all of them but the first. */
static void finds_traits_of_waits(void **state)
{
	static const struct {
		const char *waits_on;
		unsigned int traits;
	} rows[] = {
		{NULL, 0},
		{"frozen cgroup /a", WAITS_FOR_THAW},
		{"frozen file system (/srv)", WAITS_FOR_THAW},
		{"/srv/frozen file", 0},
		{"out of memory (memory.max of /a)", WAITS_FOR_MEMORY},
		{"reclaim (memory.high of /a)", WAITS_FOR_MEMORY},
		{"memory map lock", 0},
		{"tcp 10.0.0.1:5432", 0},
		{"tcp 10.0.0.1:5432 peer 77 postgres", WAITS_FOR_PEER},
		{"unix /run/s not accepted by 77 s", WAITS_FOR_ACCEPTANCE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(waits_on_traits(rows[i].waits_on), rows[i].traits);
}

static void shortens_waits(void **state)
{
	static const char *const rows[][2] = {
		{"1 fd: tcp 127.0.0.1:3306 peer 99 mariadbd", "tcp :3306 mariadbd 99"},
		{"mutex 0x7f21c3a0 held by 4711 a, b", "mutex of a 4711, b"},
		{"mutex * held by *", "mutex of several"},
		{"tcp 127.0.0.1:3306 peer * mariadbd", "tcp :3306 mariadbd"},
		{"tcp [::1]:80 not accepted by 7 web server",
		 "tcp :80 not accepted by web server 7"},
		{"GIL held by 12 py app.py:88", "GIL of py 12 app.py:88"},
		{"mmap_lock of 4711 java held by 4812 gc (D, mmap)",
		 "mmap_lock of 4711 java by gc 4812"},
		{"cgroup_mutex held by 88 runc (RQ)", "cgroup_mutex of runc 88"},
		{"rwlock 0x7f21c3a0 held by 3 readers", "rwlock of 3 readers"},
	};
	struct text text = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		text_clear(&text);
		waits_on_shorten(&text, rows[i][0]);
		assert_string_equal(text_string(&text), rows[i][1]);
	}
	text_done(&text);
}

/* Derives a summary of a lock with its holder, whatever the holder's name is; all other text is
 * kept. */
static void derives_from_waits(void **state)
{
	static const char *const rows[][2] = {
		{"mutex 0x7f21c3a0 held by 123 a, b", "mutex * held by *"},
		{"mutex 0x7f21c3a0 likely held by 123 a", "mutex * likely held by *"},
		{"monitor 0x7f21c3a0 held by 123 a", "monitor * held by *"},
		{"ReentrantLock 0x7f21c3a0 held by 123 a", "ReentrantLock * held by *"},
		{"ReentrantLock 0x7f21c3a0", "ReentrantLock *"},
		{"rwlock 0x7f21c3a0 held by 2 readers", "rwlock * held by *"},
		{"futex 0x7f21c3a0 for tcp 10.0.0.7:40211", "futex * for tcp 10.0.0.7:*"},
		{"lock on /run/x2.lock held by 88 apt and 1 more",
		 "lock on /run/x2.lock held by *"},
		{"end of thread 77 x2", "end of thread * x2"},
		{"pid 77 make2", "pid * make2"},
		/* a server stays what it is, and each other one differs from it */
		{"2 fds: eventfd count 0, tcp 10.0.0.9:5432",
		 "2 fds: eventfd count *, tcp 10.0.0.9:5432"},
		{"tcp 10.0.0.1:5432 peer 77 postgres", "tcp 10.0.0.1:5432 peer * postgres"},
		{"2 fds: tcp [fe80::1%2]:32767, udp [::1]:53",
		 "2 fds: tcp [fe80::1%2]:32767, udp [::1]:53"},
		{"tcp 0.0.0.0:50051 listen", "tcp 0.0.0.0:50051 listen"},
		/* a server's client */
		{"tcp 10.0.0.1:32768 peer 77 psql", "tcp 10.0.0.1:* peer * psql"},
		{"3 fds: tcp [::1]:60999, udp 0.0.0.0:43769", "3 fds: tcp [::1]:*, udp 0.0.0.0:*"},
		{"tcp ", "tcp "},
		{"tcp 40000", "tcp 40000"},
		{"udp :", "udp :"},
		{"unix /run/s.5432 peer 77 x", "unix /run/s.5432 peer * x"},
		{"unix @a40000", "unix @a40000"},
		{"pipe from 77 tar", "pipe from * tar"},
		{"pipe to one of 8", "pipe to one of 8"},
		{"timerfd 5s left", "timerfd *s left"},
		{"io_uring 3 in flight", "io_uring * in flight"},
		{"semaphores 5", "semaphores 5"},
		{"/data/table.17", "/data/table.17"},
		{"/held by hand 0x", "/held by hand 0x"},
		{"timer", "timer"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sample sample = *sample_absent();

		sample.wait.on = name_of_string(rows[i][0]);
		sample_derive(&sample, NEED_WAITS);
		assert_null(sample.wait.onsum);
		sample_derive(&sample, NEED_WAITS_ONSUM);
		assert_string_equal(sample.wait.onsum, rows[i][1]);
	}
}

static void derives_from_cgroup(void **state)
{
	struct sample sample = *sample_absent();

	sample.cgroup.path =
		name_of_string("/system.slice/docker-c8b38413c88eefe063b8cd3f01c16be5e3bda969"
			       "3a19a68a88807baca9feb937.scope");
	sample_derive(&sample, NEED_CGROUP);
	assert_null(sample.cgroup.container);
	sample_derive(&sample, NEED_CGROUP_NAMES);
	assert_ptr_equal(sample.cgroup.container, name_transient_string("c8b38413c88e"));
	assert_ptr_equal(sample.cgroup.container_runtime, name_transient_string("docker"));
	assert_null(sample.cgroup.pod);
	sample = *sample_absent();
	sample.cgroup.path = name_transient_string("/lxc.payload.web-server-of-a-long-name");
	sample_derive(&sample, NEED_CGROUP_NAMES);
	assert_ptr_equal(sample.cgroup.container,
			 name_transient_string("web-server-of-a-long-name"));
	assert_null(sample.cgroup.unit);
	/* a recording's own container is not replaced */
	sample.cgroup.container = name_of_string("recorded");
	sample_derive(&sample, NEED_CGROUP_NAMES);
	assert_ptr_equal(sample.cgroup.container, name_of_string("recorded"));
}

/* An account has the columns that a thread keeps, and exact times, and nothing of one sample. */
static void account_is_of_the_thread(void **state)
{
	struct sample sample = *sample_absent(), account;

	for (size_t i = 0; i < sample_column_count; i++)
		if (!column_is_proc_value(&sample_columns[i]))
			column_set(&sample_columns[i], &sample,
				   (union value){.number = 1000 + (int64_t)i});
	sample.thread.start_ns = 7;
	account = sample_account(&sample);
	assert_int_equal(account.thread.start_ns, 7);
	assert_int_equal(account.sums.forks, ABSENT);
	for (size_t i = 0; i < sample_column_count; i++) {
		const struct column *column = &sample_columns[i];
		bool kept = column_is_kept(column) || column->needs & (NEED_TOTALS | NEED_SLEEP);
		const struct sample *expected = kept ? &sample : sample_absent();

		if (!column_is_proc_value(column))
			assert_int_equal(column_read(column, &account).number,
					 column_read(column, expected).number);
	}
}

static void columns_are_sound(void **state)
{
	for (size_t i = 0; i < sample_column_count; i++) {
		const struct column *column = &sample_columns[i];

		assert_int_equal(strspn(column->name, "abcdefghijklmnopqrstuvwxyz_0123456789"),
				 strlen(column->name));
		assert_true(*column->help && *column->title);
		assert_true(column->width > 0 && column->width <= 40);
		assert_true(column->offset + 8 <= sizeof(struct sample_wide));
		assert_true(column->role != ROLE_MEASURE);
		assert_true(column->role == ROLE_KEY || column->kind == KIND_NUMBER);
		assert_ptr_equal(sample_column_find(column->name), column);
		assert_true(value_is_absent(column, sample_value(column, sample_absent())));
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(column->offset, sample_columns[j].offset);
	}
	assert_null(sample_column_find("Tid"));
}

#define AT(member) offsetof(struct sample, member)

/* Every member of a sample is a column, except those that say they are none. */
static void fields_are_columns(void **state)
{
	static const size_t others[] = {
		AT(scan.repeats),     AT(thread.start_ns),  AT(cgroup.others),
		AT(wait.open),	      AT(stack.names_open), AT(sums.forks),
		AT(sums.execs),	      AT(sums.exits),	    AT(sums.dead_cpu_us),
		AT(sums.new_threads), AT(makers.fork_pid),  AT(makers.thread_pid),
		AT(wait.before_us),   AT(proc_values),	    AT(sums.hardirq_us),
		AT(sums.softirq_us),  AT(sums.steal_us),    AT(event.sent),
		AT(event.received),   AT(event.connect_ns), AT(event.retransmits),
		AT(scan.alike),
	};

	for (size_t offset = 0; offset < sizeof(struct sample); offset += 8) {
		bool found = (offset >= AT(app.variables) &&
			      offset < AT(app.variables) +
					       sizeof(((struct sample *)0)->app.variables)) ||
			     (offset >= AT(held) &&
			      offset < AT(held) + sizeof(((struct sample *)0)->held));

		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			found |= others[i] == offset;
		for (size_t i = 0; i < sample_column_count; i++)
			found |= sample_columns[i].offset == offset;
		assert_true(found);
	}
}

static struct sample person(void)
{
	struct sample sample = *sample_absent();

	sample.thread.tid = 12;
	sample.thread.pid = 10;
	sample.thread.uid = 0;
	sample.thread.comm = "worker-3";
	sample.now.state = STATE_DISK;
	return sample;
}

static void filter_by_state(void **state)
{
	struct filter filter = {0};
	struct sample sample = person();

	assert_true(filter_accepts(&filter, &sample));
	sample.now.state = STATE_SLEEP;
	assert_false(filter_accepts(&filter, &sample));
	filter.all_states = true;
	assert_true(filter_accepts(&filter, &sample));
	filter.all_states = false;
	sample.now.state = ABSENT;
	assert_true(filter_accepts(&filter, &sample));
}

static void filter_by_cpu(void **state)
{
	static const struct {
		int64_t state;
		bool on, off;
	} rows[] = {{STATE_ON, true, false},
		    {STATE_RQ, false, true},
		    {STATE_DISK, false, true},
		    {STATE_SLEEP, false, true},
		    {ABSENT, false, false}};
	struct sample sample = person();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct filter filter = {.all_states = true, .on_cpu = true};

		sample.now.state = rows[i].state;
		assert_int_equal(filter_accepts(&filter, &sample), rows[i].on);
		filter.off_cpu = true;
		assert_true(filter_accepts(&filter, &sample));
		filter.on_cpu = false;
		assert_int_equal(filter_accepts(&filter, &sample), rows[i].off);
	}
}

static void filter_by_ids(void **state)
{
	struct filter filter = {0};
	struct sample sample = person();
	struct error e = {0};

	assert_int_equal(filter_set_process(&filter, "9,10", &e), 0);
	assert_true(filter_accepts(&filter, &sample));
	sample.thread.pid = 11;
	assert_false(filter_accepts(&filter, &sample));
	filter_add_pid(&filter, 11);
	assert_true(filter_accepts(&filter, &sample));
	assert_int_equal(filter_set_threads(&filter, "13", &e), 0);
	assert_false(filter_accepts(&filter, &sample));
	sample.thread.tid = 13;
	assert_true(filter_accepts(&filter, &sample));
	sample.thread.tid = ABSENT;
	assert_false(filter_accepts(&filter, &sample));
	filter_done(&filter);
}

static void filter_refuses_ids(void **state)
{
	static const char *const wrong[] = {"1,", ",1", "0", "1,,2", "99999999999", ","};
	struct error e = {0};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct filter filter = {0};

		assert_int_equal(filter_set_process(&filter, wrong[i], &e), -EINVAL);
		assert_int_equal(filter_set_threads(&filter, wrong[i], &e), -EINVAL);
		assert_int_equal(e.exit_code, EXIT_USAGE);
		filter_done(&filter);
	}
	assert_int_equal(filter_set_threads(&(struct filter){0}, "name", &e), -EINVAL);
	error_done(&e);
}

static void filter_by_pattern(void **state)
{
	struct filter filter = {0};
	struct sample sample = person();
	struct error e = {0};

	assert_int_equal(filter_set_process(&filter, "http*", &e), 0);
	assert_false(filter_accepts(&filter, &sample));
	sample.process.exe = "/usr/sbin/httpd";
	assert_true(filter_accepts(&filter, &sample));
	sample.process.exe = "/http/server";
	assert_false(filter_accepts(&filter, &sample));
	sample.thread.comm = "httpd-3";
	assert_true(filter_accepts(&filter, &sample));
	/* the live source has resolved the pattern to a pid */
	filter_add_pid(&filter, 99);
	assert_false(filter_accepts(&filter, &sample));
	filter_done(&filter);
}

static void filter_by_ids_and_names(void **state)
{
	static const char *const wrong[] = {"http,", ",http", "http,,1", "http,0",
					    "99999999999,http"};
	struct filter filter = {0};
	struct sample sample = person();
	struct error e = {0};

	assert_int_equal(filter_set_process(&filter, "http*,10,nginx", &e), 0);
	assert_int_equal(filter_needs(&filter), NEED_COMM | NEED_EXE | NEED_CMDLINE | NEED_SCRIPT |
							NEED_WAIT_CLASS | NEED_SYSCALL);
	assert_true(filter_accepts(&filter, &sample));	/* accepted by its id */
	assert_false(filter_excludes(&filter, 11, 11)); /* an id alone refuses none */
	sample.thread.pid = 11;
	assert_false(filter_accepts(&filter, &sample));
	sample.process.exe = "/usr/sbin/nginx"; /* accepted by one of the names */
	assert_true(filter_accepts(&filter, &sample));
	sample.process.exe = "/usr/sbin/httpd";
	assert_true(filter_accepts(&filter, &sample));
	filter_done(&filter);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(filter_set_process(&filter, wrong[i], &e), -EINVAL);
		assert_int_equal(e.exit_code, EXIT_USAGE);
		filter_done(&filter);
	}
	error_done(&e);
}

static void filter_by_comm(void **state)
{
	static const char *const patterns[] = {"orker", "orker*", "w*-[0-4]"};
	struct sample sample = person();

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		struct filter filter = {.all_states = true};

		filter_set_pattern(&filter, "comm", patterns[i]);
		assert_int_equal(filter_needs(&filter), NEED_COMM);
		assert_int_equal(filter_accepts(&filter, &sample), i != 1);
		sample.thread.comm = NULL;
		assert_false(filter_accepts(&filter, &sample));
		sample.thread.comm = "worker-3";
		filter_done(&filter);
	}
}

static void filter_by_user(void **state)
{
	struct filter filter = {0}, number = {0};
	struct sample sample = person();
	struct error e = {0};

	assert_int_equal(filter_set_user(&filter, "root", false, &e), 0);
	assert_int_equal(filter_set_user(&number, "0", false, &e), 0);
	assert_true(filter_accepts(&filter, &sample));
	assert_true(filter_accepts(&number, &sample));
	sample.thread.uid = 5;
	assert_false(filter_accepts(&filter, &sample));
	/* recorded elsewhere: the form that was typed decides */
	sample.thread.user = "root";
	assert_true(filter_accepts(&filter, &sample));
	assert_false(filter_accepts(&number, &sample));
	sample.thread.uid = ABSENT;
	assert_true(filter_accepts(&number, &sample));
	sample.thread.user = NULL;
	assert_false(filter_accepts(&filter, &sample));
	filter_done(&filter);
	assert_int_equal(filter_set_user(&filter, "no such:user", false, &e), -EINVAL);
	assert_int_equal(e.exit_code, EXIT_USAGE);
	assert_int_equal(filter_set_user(&filter, "no such:user", true, &e), 0);
	assert_false(filter_accepts(&filter, &sample));
	sample.thread.user = "no such:user";
	assert_true(filter_accepts(&filter, &sample));
	filter_done(&filter);
	filter_done(&number);
	error_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_are_complete),
		cmocka_unit_test(needs_close),

		cmocka_unit_test(derives),
		cmocka_unit_test(derives_from_waits),
		cmocka_unit_test(finds_traits_of_waits),
		cmocka_unit_test(shortens_waits),
		cmocka_unit_test(derives_from_cgroup),
		cmocka_unit_test(account_is_of_the_thread),
		cmocka_unit_test(columns_are_sound),

		cmocka_unit_test(fields_are_columns),
		cmocka_unit_test(filter_by_state),

		cmocka_unit_test(filter_by_cpu),
		cmocka_unit_test(filter_by_ids),
		cmocka_unit_test(filter_refuses_ids),

		cmocka_unit_test(filter_by_pattern),
		cmocka_unit_test(filter_by_ids_and_names),
		cmocka_unit_test(filter_by_comm),

		cmocka_unit_test(filter_by_user),

	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	names_clear();
	return failed;
}
