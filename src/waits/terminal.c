/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Terminals. Output to a pseudo terminal waits for the process that has the other side of it,
 * pty(7), or until output goes on that was stopped: by Ctrl-S, or tcflow(3). */
#include "proc/proc.h"
#include "proc/syscalls.h"
#include "waits/wait_object.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PTY_LINK "/dev/pts/"

static bool namespace_read(const char *root, int64_t pid, char *name, size_t size)
{
	return proc_link_read(root, 0, pid, "ns/mnt", name, size) > 0;
}

/* which: "tty-index:\t0\nmnt:[4026531841]", a line of fdinfo (4.15), and the mount namespace:
 * another one may have terminals with the same numbers. */
static bool master_is(const char *root, int64_t pid, int fd, const char *which)
{
	const char *line = strstr(proc_fdinfo_read(root, 0, pid, fd, NULL), "tty-index:"),
		   *there = strchr(which, '\n') + 1;
	char name[64];

	return line && !strncmp(line, which, (size_t)(there - which)) &&
	       namespace_read(root, pid, name, sizeof(name)) && !strcmp(name, there);
}

/* True if the process waits until it can read what is written to the terminal: nothing has been,
 * though a writer waits. */
static bool reads_master(const struct wait *wait, int64_t pid, const char *which)
{
	struct proc_syscall call;
	int fd;

	if (proc_syscall_read(wait->waits->root, 0, pid, &call) || call.running || call.nr < 0)
		return false;
	fd = syscall_fd(call.nr, false, (const int64_t *)call.arg);
	/* calls that read have no rule of their own: their file decides */
	return fd >= 0 && !wait_rule_of_call(syscall_name(call.nr, false)) &&
	       master_is(wait->waits->root, pid, fd, which);
}

static void terminal_describe(struct wait *wait)
{
	static const struct holder_file master = {"/ptmx", master_is};
	char which[96], name[64];
	const struct wait_rule *rule = wait->call ? wait_rule_of_call(wait->call) : NULL;
	int64_t pid;

	text_add_string(wait->text, wait->link);
	if (wait->numbers_only || !rule || !(rule->traits & WAIT_FOR_SPACE) ||
	    strncmp(wait->link, PTY_LINK, strlen(PTY_LINK)) != 0 ||
	    !namespace_read(wait->waits->root, wait->pid, name, sizeof(name)))
		return;
	snprintf(which, sizeof(which), "tty-index:\t%d\n%s", atoi(wait->link + strlen(PTY_LINK)),
		 name);
	pid = wait_find_file(wait, &master, which);
	if (pid && reads_master(wait, pid, which))
		text_add_string(wait->text, " stopped (Ctrl-S)");
	else
		wait_on_server(wait, " to ", pid);
}

const struct wait_object terminal_object = {
	.kind = WAIT_FILE,
	.links =
		(const struct wait_link[]){
			{PTY_LINK, NULL},
			{"/dev/tty", NULL},
			{0},
		},
	.describe = terminal_describe,
	.edge = server_edge,
	.searched = true,
};
