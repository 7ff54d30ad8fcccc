/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pipes and FIFOs, and the process at the other end. */
#include "waits/wait_object.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define PIPE_LINK "pipe:["

/* True if the descriptor itself is open for reading. */
static bool is_read(const struct wait *wait)
{
	int64_t flags = wait_fdinfo_number(wait, "flags:", 8);

	return flags == ABSENT || (flags & O_ACCMODE) == O_RDONLY;
}

static bool has_both_ends(const struct wait *wait, enum holder_mode other)
{
	return holders_own(wait->waits->root, wait->pid, wait->tid, wait->fd, wait->link, other);
}

static bool pipe_is_own(const struct wait *wait)
{
	return has_both_ends(wait, is_read(wait) ? HOLDER_WRITES : HOLDER_READS);
}

static void pipe_describe(struct wait *wait)
{
	enum holder_mode mode;
	uint32_t count = 1;
	bool reads;
	int64_t pid, tid;

	if (wait->numbers_only)
		return;
	/* open(2) of a FIFO waits for a process that opens its other end: the kernel function shows
	 * it, as a look at the path could wait for a file system's server */
	if (wait->fd < 0) {
		if (wait->link)
			text_add_string(wait->text, wait->link);
		return;
	}
	reads = is_read(wait);
	mode = reads ? HOLDER_WRITES : HOLDER_READS;
	/* children may have inherited it */
	if (has_both_ends(wait, mode))
		pid = wait->pid;
	else
		pid = holders_find(&wait->waits->holders, wait->link, mode, wait->pid, wait->now_ns,
				   &count, &wait->pending);
	text_add_string(wait->text, *wait->link == '/' ? wait->link : "pipe");
	if (!pid)
		return;
	if (count > 1) {
		text_add_format(wait->text, " %s one of %u", reads ? "from" : "to", count);
		return;
	}
	wait->facts.pid = pid;
	tid = holders_thread(&wait->waits->holders, wait->link, mode, pid);
	if (tid)
		wait->facts.tid = tid;
	if (!strncmp(wait->link, PIPE_LINK, strlen(PIPE_LINK)))
		wait->facts.inode = strtoll(wait->link + strlen(PIPE_LINK), NULL, 10);
	wait_add_thread(wait, reads ? " from " : " to ", tid ? tid : pid);
}

static void pipe_edge(const struct wait_facts *facts, const struct sample *sample,
		      struct edge *edge)
{
	/* beside what signals and the process itself make ready */
	if (facts->count <= 1)
		edge_to_end(EDGE_PIPE, facts, sample, edge);
}

const struct wait_object pipe_object = {
	.kind = WAIT_PIPE,
	.functions = (const char *const[]){"wait_for_partner", "fifo_open", NULL},
	.links = (const struct wait_link[]){{PIPE_LINK, "pipe"}, {0}},
	.file_type = "fifo",
	.describe = pipe_describe,
	.is_own = pipe_is_own,
	.edge = pipe_edge,
	.ends = EDGE_PIPE,
	.searched = true,
};
