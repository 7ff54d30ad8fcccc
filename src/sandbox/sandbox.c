/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sandbox/sandbox.h"
#include "base/output.h"
#include "sandbox/call_table.h"

#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#define CALL_NAME_SIZE 64
#define NUMBERS 1024 /* limit above the numbers of all system calls */

/* Makes the comparisons of a row. An int is in the low half of its word, whatever the other half
 * holds. */
static size_t comparisons_make(const struct call_row *row, struct scmp_arg_cmp *to)
{
	size_t count = 0;

	for (size_t i = 0; i < CALL_ARGUMENTS; i++)
		if (row->arguments[i].mask)
			to[count++] = SCMP_CMP(row->arguments[i].number, SCMP_CMP_MASKED_EQ,
					       row->arguments[i].mask, row->arguments[i].value);
	return count;
}

static int call_find(const char *name)
{
	int number = seccomp_syscall_resolve_name(name);

	/* negative: a call of other architectures only */
	return number == __NR_SCMP_ERROR ? call_number(name) : number;
}

static int row_add(scmp_filter_ctx filter, const struct call_row *row)
{
	struct scmp_arg_cmp comparisons[CALL_ARGUMENTS];
	size_t count = comparisons_make(row, comparisons), length;
	int err = 0;

	for (const char *at = row->names; !err && *at; at += length + (at[length] == ' ')) {
		char name[CALL_NAME_SIZE];
		int number;

		length = strcspn(at, " ");
		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		number = call_find(name);
		if (number >= 0)
			err = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number,
						     (unsigned int)count, comparisons);
	}
	return err;
}

static int filter_fill(scmp_filter_ctx filter, unsigned int uses)
{
	int err = 0;

	for (size_t i = 0; !err && i < call_row_count; i++)
		if (call_rows[i].uses & uses || (!call_rows[i].uses && uses != SANDBOX_PARSES))
			err = row_add(filter, &call_rows[i]);
	/* flags of clone3 can't be filtered: it fails, and the C library takes clone */
	return err ? err
		   : seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(ENOSYS), call_find("clone3"), 0,
					    NULL);
}

static int filter_load(unsigned int uses)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
	int err;

	if (!filter)
		return -ENOMEM;
		/* no other program runs here, so that speculation does no harm: before 5.16 a
		 * filter turns it off otherwise */
#if SCMP_VER_MAJOR > 2 || SCMP_VER_MINOR >= 5
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
#endif
	err = filter_fill(filter, uses);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}

static void refused_say(int number)
{
	static _Atomic unsigned char said[NUMBERS];
	char line[256], *name;
	int length;

	if (number < 0 || number >= NUMBERS || said[number])
		return;
	said[number] = 1;
	/* this takes memory: no call of malloc itself is refused */
	name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
	/* calls newer than this library fail here as on an older kernel */
	if (!name)
		return;
	length = snprintf(line, sizeof(line),
			  "tsnap: its sandbox refused the system call %s; please report that "
			  "(--no-sandbox works without it)\n",
			  name);
	free(name);
	output_write(STDERR_FILENO, line, (size_t)length);
}

/* Handles SIGSYS: the refused call returns what the handler puts into its register. */
static void refused(int signal_number, siginfo_t *info, void *context)
{
	ucontext_t *of = context;
	int before = errno;

	(void)signal_number;
	refused_say(info->si_syscall);
#ifdef __x86_64__
	of->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
#elif defined(__aarch64__)
	of->uc_mcontext.regs[0] = (unsigned long long)-ENOSYS;
#endif
	errno = before;
}

/* what: the call that was refused. */
static int calls_bound(unsigned int uses, const char **what)
{
	struct sigaction action = {.sa_sigaction = refused, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigemptyset(&action.sa_mask);
	*what = "prctl";
	if (sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	*what = "seccomp";
	return filter_load(uses);
}

static int capabilities_bound(unsigned int uses, struct text *reported)
{
	uint64_t held;
	int err = capabilities_held(&held);

	if (!err)
		err = capabilities_keep(sandbox_capabilities(uses, held));
	if (!reported)
		return err;
	text_add_string(reported, "sandbox: capabilities ");
	if (err)
		text_add_format(reported, "can't be given up (capset: %s)", strerror(-err));
	else
		sandbox_capabilities_add(reported, sandbox_capabilities(uses, held));
	return err;
}

int sandbox_enter(unsigned int uses, struct text *reported)
{
	static bool entered;
	const char *what;
	int err, err_of_calls;

	if (entered)
		return 0;
	entered = true;
	err = capabilities_bound(uses, reported);
	err_of_calls = calls_bound(uses, &what);
	if (reported && err_of_calls)
		text_add_format(reported, "; system calls can't be bounded (%s: %s)\n", what,
				strerror(-err_of_calls));
	else if (reported)
		text_add_string(reported, "; no new ones, and system calls bounded\n");
	return err ? err : err_of_calls;
}

int sandbox_parse(void)
{
	const char *what;
	int err = capabilities_keep(0), err_of_calls = calls_bound(SANDBOX_PARSES, &what);

	return err ? err : err_of_calls;
}
