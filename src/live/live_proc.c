/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/live_proc.h"
#include "base/memory.h"
#include "live/threads/proc_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Facts that only programs see. */
#define NEEDS_OF_BPF                                                                      \
	(NEED_BLOCK | NEED_IRQ | NEED_CALL_TIME | NEED_PATH | NEED_USTACK | NEED_UFILES | \
	 NEED_WAKER_STACK)

#define MISSING                                                                             \
	"who woke a thread, times in D and asleep, durations of system calls, requests to " \
	"disks, stacks of programs and of threads on a CPU, forks and execs, and threads "  \
	"that begin and end between two scans"

static bool is_source(const struct live *live, const char *name)
{
	const char *source = live->context.config.source;

	return source && !strcmp(source, name);
}

/* The option that only programs can serve; NULL: there is none. */
static const char *option_refused(const struct live_config *config)
{
	return config->needs_bpf			  ? config->needs_bpf
	       : config->own				  ? "--probe"
	       : config->traces & ~config->traces_unasked ? "--trace"
							  : NULL;
}

/* Says why /proc is sampled, and what is missing for that. why: NULL: it was asked for. */
static void remark_add(struct live *live, const char *why)
{
	const struct host *host = &live->context.kernel.host;
	struct text *to = &live->remarks;

	if (why)
		text_add_format(to, "no BPF program can be loaded: %s; /proc is sampled instead",
				why);
	else
		text_add_string(to, "/proc is sampled (--source proc)");
	text_add_string(to, "; missing are " MISSING);
	if (!host->cap_ptrace || !host->cap_read)
		text_add_string(to, "; of other users' threads also system calls, files, waits, "
				    "programs and stacks");
	text_add_char(to, '\n');
}

static int proc_begin(struct live *live, const struct kernel_options *options, const char *why,
		      struct error *e)
{
	struct live_context *context = &live->context;
	const char *option = option_refused(&context->config), *lacks = proc_records_lack();
	int err;

	if (option)
		return error_set(e, ENOTSUP, EXIT_HOST_CANNOT,
				 "%s needs BPF programs, which --source proc does without", option);
	if (lacks)
		return error_set(e, ENOTSUP, EXIT_HOST_CANNOT, "/proc can't be sampled: %s", lacks);
	err = kernel_open_without(&context->kernel, options, proc_record_lasts, e);
	if (err)
		return err;
	context->proc = memory_get(sizeof(*context->proc));
	context->proc->counts_switches = context->wants.needs & NEED_TOTALS;
	context->proc->reads_calls = context->wants.needs & NEED_SYSCALL;
	context->totals.lacks_sleeps = true;
	context->wants.lacking_needs = context->wants.needs & NEEDS_OF_BPF;
	context->wants.needs &= ~NEEDS_OF_BPF;
	context->wants.probe_needs = 0;
	live->stacks.needs &= ~NEEDS_OF_BPF;
	remark_add(live, why);
	return 0;
}

int live_kernel_begin(struct live *live, const struct kernel_options *options, struct error *e)
{
	const struct live_config *config = &live->context.config;
	struct error refused = {0}, unsaid = {0};
	int err;

	if (is_source(live, SOURCE_PROC))
		return proc_begin(live, options, NULL, e);
	err = kernel_open(&live->context.kernel, options, &refused);
	if (!err || refused.exit_code != EXIT_HOST_CANNOT || is_source(live, SOURCE_BPF) ||
	    option_refused(config)) {
		*e = refused;
		return err;
	}
	kernel_close(&live->context.kernel);
	if (!proc_begin(live, options, refused.line, &unsaid)) {
		error_done(&refused);
		return 0;
	}
	/* the reason why there is no BPF says more */
	error_done(&unsaid);
	*e = refused;
	return err;
}

void live_kernel_end(struct live *live)
{
	if (!live->context.proc)
		return;
	proc_records_done(live->context.proc);
	free(live->context.proc);
	live->context.proc = NULL;
}
