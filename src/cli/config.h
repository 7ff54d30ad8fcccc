/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configuration from the command line; written by option_parse and option_check only. */
#ifndef TSNAP_CLI_CONFIG_H
#define TSNAP_CLI_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "live/context/live_config.h"
#include "recording/retention.h"
#include "recording/recording_part.h"
#include "report/report.h"

struct renderer;
struct replayed_hosts;

enum mode {
	MODE_REPORT,
	MODE_FORMAT, /* samples, or output made of them, in config->format */
	MODE_RECORD,
	MODE_SNAPSHOT,
	MODE_TOP,
	MODE_LIST,
	MODE_LIST_JSON,
	MODE_CHECK,
	MODE_GOROUTINES,
	MODE_WRITE_OFFSETS,
	MODE_VERSION,
	MODE_HELP,
};

#define RATE_DEFAULT_HZ 20
#define RATE_RECORD_HZ 1
#define HEATMAP_STEP_US (60 * 1000000ll)
#define RATE_MAX_HZ 1000
#define DURATION_DEFAULT_US (5 * 1000000ll)
#define DURATION_MAX_US (366ll * 86400 * 1000000)
/* Bytes of user stack per sample. Most stacks end within the default, which an interrupt copies in
 * some 2 us. The maximum is below the largest sample, 64 KB, which has more than the stack. */
#define STACK_BYTES_DEFAULT 16384
#define STACK_BYTES_MIN 256
#define STACK_BYTES_MAX 61440
#define THREADS_MAX (1 << 22) /* PID_MAX_LIMIT of include/linux/threads.h */

struct config {
	enum mode mode;
	/* format of MODE_FORMAT and MODE_GOROUTINES; NULL: text for people */
	const struct renderer *format;
	struct live_config live;     /* options that the live source reads */
	int64_t duration_us;	     /* -d; 0: not given */
	int64_t interval_us;	     /* -i; 0: one report */
	int64_t count;		     /* -n: reports, with --csv and --json scans; 0: not given */
	bool named;		     /* processes were named without -p */
	bool goroutines, tasks;	     /* --goroutines, --tasks: mode becomes MODE_GOROUTINES */
	int64_t goroutines_pid;	     /* -p as an id, with --goroutines or --tasks */
	bool goroutines_labels;	     /* -G context, with --goroutines */
	const char *user;	     /* -u as typed: a name or uid; NULL: all */
	const char *comm;	     /* -c pattern; NULL: all */
	const char *query_text;	     /* --query-text: "on" or "off"; NULL: on */
	const char *filter;	     /* --filter: an expression; NULL: none */
	bool all_states;	     /* -a, or what implies it */
	bool on_cpu, off_cpu;	     /* --on-cpu, --off-cpu, or what implies it */
	const char *columns;	     /* -g as typed; NULL: the mode's default */
	const char *by;		     /* --by as typed; NULL: not given */
	const char *view;	     /* --view: name of columns and a filter; NULL: not given */
	const char *more_columns;    /* -G as typed; NULL: none */
	const char *sort;	     /* --sort as typed; NULL: most time first */
	const char *trace;	     /* --trace as typed: kinds; NULL: none */
	const char *output;	     /* --flame, --pprof, --metrics: a file; -: standard output */
	struct report_config report; /* options that parts of a report read */
	bool by_chain;		     /* --by-chain */
	const char *stack_dict;	     /* --stack-dict: written beside rows, read with a recording */
	const char *diff;	     /* --diff: two files; NULL: none */
	const char *diff_after;
	const char *replay;	    /* --replay: a CSV that tsnap wrote; NULL: live */
	char **replay_more;	    /* further names after --replay's, up to a NULL; NULL: none */
	const char *from, *to;	    /* --from, --to as typed; NULL: not given */
	struct recording_part part; /* --from, --to as times */
	const char *died;	    /* --died: name or id of a process; NULL: not given */
	/* of a replay of recordings of several hosts (cli/hosts.h); NULL: of any other run */
	struct replayed_hosts *hosts;
	const char *against; /* --against as typed: times, or a recording; NULL: none */
	bool against_is_time;
	struct recording_part against_part; /* these times; of another recording: all of it */
	const char *snapshot;		    /* --snapshot: a file */
	const char *record;		    /* -o: a directory; NULL: nothing is recorded */
	int64_t flush_us;		    /* --flush */
	const char *when;		    /* --when: an expression; NULL: each scan is recorded */
	int64_t around_us;		    /* --keep-around; 0: not given */
	int64_t archive_hz;		    /* --archive; 0: no second tier */
	struct retention retention;	    /* --keep, --keep-bytes, --keep-free, --keep-archive */
	bool text;			    /* --text */
	bool ascii;			    /* --ascii */
	bool groups;			    /* --report: rows of groups */
	bool help_all;			    /* --help all */
	const char *list_word;		    /* --list WORD; NULL: all is listed */
	const char *config_file; /* --config, the last one; its options are set as others */
	char **words;		 /* words of the command line, NULL after the last */
};

/* Parses the command line into config (zeroed by the caller; strings point into argv).
 * 0, or -EINVAL with a usage error (exit code 2) that suggests the nearest option. */
int config_parse(struct config *config, int argc, char **argv, struct error *e);

/* Completes config_parse(): refuses contradictory options, and fills in those that were not
 * given. */
int config_check(struct config *config, struct error *e);

/* The part of config that selects threads and their grouping. */
struct query config_query(const struct config *config);

/* Makes the list of names of recordings, up to a NULL; the caller frees it. */
const char **config_replay_paths(const struct config *config);

/* Adds what --help prints; all: every option, and the syntax of expressions and of parts of
 * files. */
void options_describe(struct text *text, bool all);

#endif
