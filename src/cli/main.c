/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tsnap: parse, run a mode, print one error, exit code. */
#include "cli/hosts.h"
#include "cli/bundle_parts.h"
#include "cli/config.h"
#include "cli/diff.h"
#include "keeper/keeper.h"
#include "kernel/task_query.h"
#include "live/live.h"
#include "live/context/live_limits.h"
#include "goroutine_rows.h"
#include "cli/run.h"
#include "live/trace_table.h"
#include "base/memory.h"
#include "top.h"
#include "base/output.h"
#include "base/sanitized.h"
#include "base/progress.h"
#include "base/signals.h"
#include "base/required_calls.h"
#include "recording/recording.h"
#include "recording/retention.h"
#include "report/findings.h"
#include "render/render_rows.h"
#include "report/column_list.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define STACK_LIMIT_WANTED (8 << 20)
#define STACK_LIMIT_MIN (1 << 20)

/* Opens standard files that are closed: a file or socket opened later must not become standard
 * output by its number. Output to a standard output that was closed is lost, so that writing must
 * fail. */
static void standard_files_open(void)
{
	static const char words[] = "tsnap: standard input or output is closed, and /dev/null "
				    "can't be opened instead\n";

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
		    open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) != fd) {
			output_write(STDERR_FILENO, words, sizeof(words) - 1);
			_exit(EXIT_FAILED);
		}
}

/* Raises the limit of the stack: LLVM, in the child that compiles, needs the default one. The limit
 * counts when the stack grows, so that it can still be raised; the hard limit only with
 * CAP_SYS_RESOURCE. */
static int stack_limit_raise(struct error *e)
{
	struct rlimit limit, more;

	if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= STACK_LIMIT_WANTED)
		return 0;
	more = limit;
	more.rlim_cur = STACK_LIMIT_WANTED;
	if (more.rlim_max < more.rlim_cur)
		more.rlim_max = more.rlim_cur;
	if (!setrlimit(RLIMIT_STACK, &more))
		return 0;
	more = (struct rlimit){limit.rlim_max, limit.rlim_max};
	if (!setrlimit(RLIMIT_STACK, &more) && more.rlim_cur >= STACK_LIMIT_MIN)
		return 0;
	return error_set(e, ENOMEM, EXIT_FAILED,
			 "the stack limit is %llu KB (ulimit -s): tsnap needs at least %d",
			 (unsigned long long)limit.rlim_max / 1024, STACK_LIMIT_MIN / 1024);
}

/* Enters the sandbox for a replay, before the first byte is read: a recording may come from
 * anybody. */
static void replay_bound(const struct config *config)
{
	unsigned int uses = SANDBOX_REPLAYS;

	/* the sides of a comparison have no output of their own */
	if (config->output || config->snapshot || config->diff)
		uses |= SANDBOX_WRITES;
	if (config->mode == MODE_TOP)
		uses |= SANDBOX_WRITES | SANDBOX_NAMES;
	if (!config->live.no_sandbox && !SANITIZED)
		sandbox_enter(uses, NULL);
}

static int live_source_open(const struct config *config, struct filter *filter, uint64_t needs,
			    struct source **source, struct error *e)
{
	return live_open(&config->live, filter, needs, source, e);
}

static int replay_open(const struct config *config, struct filter *filter, uint64_t needs,
		       struct source **source, struct error *e)
{
	const char **paths = config_replay_paths(config);
	int err;

	replay_bound(config);
	err = recording_open(paths, &config->part, filter, needs, source, e);

	free(paths);
	if (err || !config->stack_dict)
		return err;
	err = recording_stacks(*source, config->stack_dict, e);
	if (err) {
		(*source)->close(*source);
		*source = NULL;
	}
	return err;
}

/* Reports on a recording, or on those of several hosts. */
static int replay_run(const struct config *config, struct error *e)
{
	struct replayed_hosts hosts = {0};
	struct config several = *config;
	int err = 0;

	if (config->report.chains || hosts_have_findings(config)) {
		replay_bound(config);
		err = hosts_find(config, &hosts, e);
	}
	if (err)
		return err;
	if (hosts.count < 2)
		return run(config, replay_open, output_complain, e);
	/* those know of one host: its stacks by thread, its events */
	if (config->report.stacks || config->live.traces)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "%s is for the recording of one host: these are of %zu",
				 config->report.stacks ? "--stacks" : "--trace", hosts.count);
	several.hosts = &hosts;
	err = hosts_run(&several, replay_open, output_complain, e);
	hosts_done(&hosts);
	return err;
}

static int snapshot_make(const struct config *config, struct error *e)
{
	const char **paths = config_replay_paths(config);
	int err;

	replay_bound(config);
	err = recording_snapshot(paths, &config->part, config->snapshot, e);

	free(paths);
	return err;
}

/* Prints the text of a mode without samples. */
static int words_print(const struct text *words, struct error *e)
{
	int err = output_write(STDOUT_FILENO, text_string(words), words->length);

	if (!err || err == -EPIPE)
		return 0;
	return error_set(e, -err, EXIT_FAILED, "standard output: %s", strerror(-err));
}

/* Keeps the rows that have the word, and the titles of those: --list WORD. */
static int rows_keep(struct text *words, const char *word, struct error *e)
{
	struct text kept = {0}, title = {0}, line = {0};

	for (const char *at = text_string(words); *at; at += strcspn(at, "\n") + 1) {
		text_clear(&line);
		text_add(&line, at, strcspn(at, "\n") + 1);
		if (*at != ' ') {
			text_add(&title, text_string(&line), line.length);
			if (*at == '\n')
				text_clear(&title);
		} else if (strcasestr(text_string(&line), word)) {
			text_add_format(&kept, "%s%s%s", title.length && kept.length ? "\n" : "",
					text_string(&title), text_string(&line));
			text_clear(&title);
		}
	}
	text_done(&title);
	text_done(&line);
	text_done(words);
	*words = kept;
	return kept.length
		       ? 0
		       : error_set(e, ENOENT, EXIT_USAGE,
				   "--list %s: no column, state or kind of trace has that in its "
				   "name or help; tsnap --list prints all",
				   word);
}

/* True if the mode looks at other processes. */
static bool mode_looks(const struct config *config)
{
	return !config->replay && !config->diff &&
	       (config->mode <= MODE_RECORD || config->mode == MODE_TOP ||
		config->mode == MODE_GOROUTINES);
}

static int mode_run(const struct config *config, struct error *e)
{
	const struct trace_kind *kinds[TRACE_KINDS_MAX];
	struct text words = {0};
	struct error unprinted = {0};
	int err = 0;

	switch (config->mode) {
	case MODE_REPORT:
	case MODE_FORMAT:
	case MODE_RECORD:
		if (config->diff)
			return diff(config, replay_open, output_complain, e);
		return config->replay ? replay_run(config, e)
				      : run(config, live_source_open, output_complain, e);
	case MODE_TOP:
		return top(config, config->replay ? replay_open : live_source_open, output_complain,
			   e);
	case MODE_LIST:
		columns_describe(&words);
		findings_describe(&words);
		trace_kinds_describe(&words);
		if (config->list_word)
			err = rows_keep(&words, config->list_word, e);
		break;
	case MODE_LIST_JSON:
		list_json_add(&words, kinds, trace_kinds_list(~0u, kinds));
		break;
	case MODE_CHECK:
		err = live_check(&config->live, &words, e);
		if (!err && config->record)
			err = recording_rate_describe(config->record, &config->retention, &words,
						      e);
		break;
	case MODE_GOROUTINES:
		if (config->format)
			return routine_rows_print(config, output_complain, e);
		err = routines_read(config, NULL, NULL, &words, e);
		break;
	case MODE_SNAPSHOT:
		return snapshot_make(config, e);
	case MODE_WRITE_OFFSETS:
		return live_write_offsets(&config->live, e);
	case MODE_VERSION:
		text_add_string(&words, "tsnap " TSNAP_VERSION "\n");
#ifdef TSNAP_BUNDLE
		text_add_string(&words, bundle_parts);
		if (config->report.verbose)
			text_add_string(&words, bundle_licences);
#endif
		break;
	case MODE_HELP:
		options_describe(&words, config->help_all);
		break;
	}
	if (words_print(&words, &unprinted) && !err) {
		err = -EIO;
		*e = unprinted;
	}
	text_done(&words);
	return err;
}

/* Adds the limits that may be why it failed: these are the same whatever failed. */
static void limits_report(struct error *e, int err)
{
	struct text words = {0};

	text_add_string(&words, "; ");
	live_limits_explain(-err, &words);
	if (words.length > strlen("; "))
		error_add(e, text_string(&words));
	text_done(&words);
}

int main(int argc, char **argv)
{
	struct config config = {0};
	struct error e = {0};
	enum exit_code code;
	int err;

	standard_files_open();
	live_limits_begin();
	signals_set();
	signal(SIGPIPE, SIG_IGN); /* write() fails with EPIPE instead, */
	signal(SIGXFSZ, SIG_IGN); /* write() fails with EFBIG instead (ulimit -f) */
	err = stack_limit_raise(&e);
	if (!err)
		err = config_parse(&config, argc, argv, &e);
	if (!err)
		err = required_calls_try(&e);
	if (!err && mode_looks(&config)) {
		if (!config.live.source || strcmp(config.live.source, SOURCE_PROC) != 0)
			task_query_begin();
		config.live.kept = keeper_begin(live_limits_explain);
	}
	if (!err)
		err = mode_run(&config, &e);
	if (keeper_is_lost())
		output_complain("the keeper process was killed: tsnap has ended properly, as after "
				"SIGTERM");
	code = err > 0 ? EXIT_FOUND : error_end(&e, err);
	if (code && code != EXIT_FOUND) {
		bool more = e.detail && !config.report.verbose && !strstr(e.line, "-v ");

		if (code != EXIT_USAGE && !strstr(e.line, "(seccomp)"))
			limits_report(&e, err);
		if (more)
			error_add(&e, " (-v says more)");
		output_complain(e.line);
		if (config.report.verbose && e.detail)
			output_complain(e.detail);
	}
	error_done(&e);
	keeper_progress()->exit_code = 1 + (int)code;
	return (int)code;
}
