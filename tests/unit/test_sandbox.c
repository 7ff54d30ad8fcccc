/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sandbox: what a child process may still do in it. */
#include "unit.h"
#include "base/output.h"
#include "base/thread.h"
#include "sandbox/call_table.h"
#include "sandbox/capabilities.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALL_CAPABILITIES ~0ull

static void *other_thread(void *of)
{
	*(int *)of = syscall(SYS_mount, "", "", "", 0, NULL) ? errno : 0;
	return NULL;
}

static int error_of(long result)
{
	return result < 0 ? errno : 0;
}

/* Makes calls that are refused and reported in lines of standard error. */
static void refused_calls(void)
{
	char byte = 0, *const words[] = {"/bin/true", NULL};
	struct iovec here = {&byte, 1};
	int in_thread = 0;
	pthread_t thread;

	assert_int_equal(error_of(execv(words[0], words)), ENOSYS);
	assert_int_equal(error_of(execv(words[0], words)), ENOSYS);
	assert_int_equal(error_of(ptrace(PTRACE_TRACEME, 0, NULL, NULL)), ENOSYS);
	assert_int_equal(error_of(process_vm_writev(getpid(), &here, 1, &here, 1, 0)), ENOSYS);
	assert_int_equal(error_of(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)), ENOSYS);
	assert_int_equal(error_of(unshare(CLONE_NEWUSER)), ENOSYS);
	assert_int_equal(error_of(socket(AF_PACKET, SOCK_RAW, 0)), ENOSYS);
	assert_int_equal(error_of(syscall(SYS_setresuid, -1, 5, -1)), ENOSYS);
	assert_int_equal(error_of(syscall(SYS_init_module, NULL, 0, "")), ENOSYS);
	assert_int_equal(error_of(ioctl(0, TIOCSTI, "x")), ENOSYS);
	/* the kernel ignores the upper half, too */
	assert_int_equal(error_of(syscall(SYS_ioctl, 0, 1ul << 40 | TIOCSTI, "x")), ENOSYS);
	assert_int_equal(error_of(chmod("/", 0755)), ENOSYS);
	/* threads of tsnap block signals */
	assert_int_equal(thread_begin(&thread, other_thread, &in_thread), 0);
	pthread_join(thread, NULL);
	assert_int_equal(in_thread, ENOSYS);
}

static void allowed_calls(void)
{
	int status, fds[2];
	pid_t child;

	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	close(fds[1]);
	assert_true(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	assert_true(isatty(0) || errno == ENOTTY || errno == EINVAL);
	child = fork();
	if (!child)
		_exit(7);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void capabilities_are_bounded(void)
{
	uint64_t held;

	assert_int_equal(capabilities_held(&held), 0);
	assert_int_equal(held & ~sandbox_capabilities(SANDBOX_SAMPLES, ALL_CAPABILITIES), 0);
	assert_int_equal(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
	if (!geteuid())
		assert_int_equal(prctl(PR_CAPBSET_READ, CAP_SYS_MODULE, 0, 0, 0), 0);
}

static void sandbox_live(void)
{
	struct text reported = {0};

	assert_int_equal(sandbox_enter(SANDBOX_SAMPLES, &reported), 0);
	assert_non_null(strstr(text_string(&reported), "system calls bounded"));
	text_done(&reported);
	assert_int_equal(sandbox_enter(SANDBOX_SAMPLES, NULL), 0);
	capabilities_are_bounded();
	allowed_calls();
	refused_calls();
}

static void *thread_of_replay(void *of)
{
	*(bool *)of = true;
	return NULL;
}

/* Allows files and threads; no process, no socket, no other process' memory, no change of a file's
 * name. */
static void sandbox_replay(void)
{
	struct iovec here = {&(char){0}, 1};
	bool began = false;
	pthread_t thread;
	uint64_t held;

	assert_int_equal(sandbox_enter(SANDBOX_REPLAYS, NULL), 0);
	assert_int_equal(capabilities_held(&held), 0);
	assert_int_equal(held & ~(1ull << CAP_DAC_READ_SEARCH | 1ull << CAP_DAC_OVERRIDE), 0);
	assert_true(open("/dev/null", O_RDONLY) >= 0);
	assert_int_equal(thread_begin(&thread, thread_of_replay, &began), 0);
	pthread_join(thread, NULL);
	assert_true(began);
	assert_int_equal(error_of(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)), ENOSYS);
	assert_int_equal(error_of(socket(AF_UNIX, SOCK_STREAM, 0)), ENOSYS);
	assert_int_equal(error_of(socket(AF_INET, SOCK_STREAM, 0)), ENOSYS);
	assert_int_equal(error_of(process_vm_readv(getpid(), &here, 1, &here, 1, 0)), ENOSYS);
	assert_int_equal(error_of(syscall(SYS_renameat, AT_FDCWD, "/no", AT_FDCWD, "/such")),
			 ENOSYS);
	assert_int_equal(error_of(syscall(SYS_kill, getpid(), 0)), ENOSYS);
	assert_int_equal(error_of(syscall(SYS_bpf, 0, NULL, 0)), ENOSYS);
	assert_int_equal(error_of(execv("/bin/true", (char *const[]){"true", NULL})), ENOSYS);
}

/* Runs a function in a child process, whose standard error goes to `reported`. */
static int run_apart(void (*run)(void), char *reported, size_t size)
{
	int fds[2], status;
	ssize_t got, length = 0;
	pid_t child;

	assert_int_equal(pipe(fds), 0);
	child = fork();
	if (!child) {
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		run();
		_exit(0);
	}
	close(fds[1]);
	while ((got = read(fds[0], reported + length, size - 1 - (size_t)length)) > 0)
		length += got;
	reported[length] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void what_is_not_sampling_is_refused_and_named(void **state)
{
	static const char *const names[] = {"execve",  "ptrace", "process_vm_writev", "clone",
					    "unshare", "socket", "setresuid",	      "init_module",
					    "ioctl",   "mount"};
	char reported[8192];

	if (getenv("TSNAP_TEST_EMULATED"))
		skip(); /* the emulator has no seccomp(2) */
	assert_int_equal(run_apart(sandbox_live, reported, sizeof(reported)), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char words[64], *first;

		snprintf(words, sizeof(words), "refused the system call %s;", names[i]);
		first = strstr(reported, words);
		if (!first)
			fail_msg("%s is not named: %s", names[i], reported);
		assert_true(!first || !strstr(first + 1, words));
	}
}

static void replay_is_bounded_further(void **state)
{
	char reported[8192];

	if (getenv("TSNAP_TEST_EMULATED"))
		skip();
	assert_int_equal(run_apart(sandbox_replay, reported, sizeof(reported)), 0);
}

static void capabilities_follow_from_uses(void **state)
{
	const uint64_t admin = 1ull << CAP_SYS_ADMIN, override = 1ull << CAP_DAC_OVERRIDE;
	uint64_t kept = sandbox_capabilities(SANDBOX_SAMPLES, ALL_CAPABILITIES);
	struct text words = {0};

	assert_true(kept >> CAP_SYS_PTRACE & 1);
	assert_int_equal(kept & (admin | override | 1ull << CAP_SETUID | 1ull << CAP_KILL), 0);
	/* capabilities of a process without the narrower ones */
	assert_int_equal(sandbox_capabilities(SANDBOX_SAMPLES, admin), admin);
	assert_int_equal(sandbox_capabilities(SANDBOX_SAMPLES, override), override);
	assert_int_equal(sandbox_capabilities(SANDBOX_SAMPLES, kept | admin | override), kept);
	assert_int_equal(sandbox_capabilities(SANDBOX_STACKS, ALL_CAPABILITIES), admin);
	assert_true(sandbox_capabilities(SANDBOX_OLD_KERNEL, ALL_CAPABILITIES) & admin);
	assert_true(sandbox_capabilities(SANDBOX_WRITES, ALL_CAPABILITIES) & override);
	sandbox_capabilities_add(&words, 1ull << CAP_SYS_PTRACE | admin);
	assert_string_equal(text_string(&words), "CAP_SYS_PTRACE, CAP_SYS_ADMIN");
	text_clear(&words);
	sandbox_capabilities_add(&words, 0);
	assert_string_equal(text_string(&words), "none");
	text_done(&words);
}

/* Names of calls exist: a misspelt name would be a call that is refused. */
static void names_are_calls(void **state)
{
	for (size_t i = 0; i < call_row_count; i++)
		for (const char *at = call_rows[i].names; *at; at += strcspn(at, " ")) {
			char name[64];

			at += *at == ' ';
			snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, " "), at);
			if (seccomp_syscall_resolve_name(name) == __NR_SCMP_ERROR)
				assert_true(call_number(name) >= 0);
		}
	assert_int_equal(call_number("openat2"), 437);
	assert_int_equal(call_number("no_such_call"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_sampling_is_refused_and_named),
		cmocka_unit_test(replay_is_bounded_further),
		cmocka_unit_test(capabilities_follow_from_uses),
		cmocka_unit_test(names_are_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
