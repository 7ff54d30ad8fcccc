/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options: a row each; parsing, --help, the manual page and completion follow from the rows. */
#include "cli/option_table.h"
#include "render/renderer.h"

#include <stddef.h>

#define AT(member) offsetof(struct config, member)

/* What an option's argument becomes: its kind, place and bounds, and the mode or format that it
 * chooses. */
#define OPTION(what, at, from, to) .kind = what, .offset = AT(at), .least = from, .most = to
#define FLAG(member) OPTION(OPTION_FLAG, member, 0, 0)
#define TEXT(member) OPTION(OPTION_TEXT, member, 0, 0)
#define NUMBER(member, least, most) OPTION(OPTION_NUMBER, member, least, most)
#define FEW(member, least, most) OPTION(OPTION_FEW, member, least, most)
#define TIME(member, least, most) OPTION(OPTION_TIME, member, least, most)
#define MS(member, least, most) OPTION(OPTION_MS, member, least, most)
#define BYTES(member, least, most) OPTION(OPTION_BYTES, member, least, most)
#define PERCENT(member, least, most) OPTION(OPTION_PERCENT, member, least, most)
#define OF_MODE(what, at, chosen) .kind = what, .offset = AT(at), .mode = chosen
#define MODE(chosen) .kind = OPTION_MODE, .mode = chosen
#define FORMAT(renderer) .kind = OPTION_MODE, .mode = MODE_FORMAT, .format = &(renderer)
#define FORMAT_FILE(renderer) OF_MODE(OPTION_TEXT, output, MODE_FORMAT), .format = &(renderer)

/* clang-format off */
const struct option_row option_table[] = {
	{'d', "duration", "SECONDS", "sample for SECONDS (default: 5; --csv and --json: no end)",
	 TIME(duration_us, 1000, DURATION_MAX_US),
	 .section = "How long, how often"},
	{'i', "interval", "SECONDS", "print a report every SECONDS, until -n, -d or Ctrl-C",
	 TIME(interval_us, 1000, DURATION_MAX_US)},
	{'F', "rate", "HZ", "scans per second (default: 20)", NUMBER(live.rate_hz, 1, RATE_MAX_HZ)},
	{'n', "count", "COUNT", "end after COUNT reports (with --csv or --json: scans)",
	 NUMBER(count, 1, INT64_MAX)},
	{'p', "process", "PID|NAME,...", "only processes with this id, name, program or script",
	 TEXT(live.process),
	 .section = "Which threads"},
	{0, "filter", "EXPR", "only samples for which EXPR is true", TEXT(filter)},
	{'a', "all", NULL, "threads in every state, including idle sleepers", FLAG(all_states)},
	{'r', "descendants", NULL, "with -p or NAME: also their descendants",
	 FLAG(live.descendants)},
	{'u', "user", "USER", "only threads of this user, by name or uid", TEXT(user)},
	{'c', "comm", "NAME", "only threads with this name (pattern)", TEXT(comm)},
	{'t', "threads", "TID,...", "only these threads", TEXT(live.threads)},
	{0, "cgroup", "PATH", "only threads of control groups with this path (pattern)",
	 TEXT(live.cgroup)},
	{0, "on-cpu", NULL, "only threads on a CPU", FLAG(on_cpu)},
	{0, "off-cpu", NULL,
	 "only threads off CPU: runnable, blocked, sleeping; with --on-cpu, all threads",
	 FLAG(off_cpu)},
	{0, "daemon-ports", "N",
	 "treat local ports below N as those of servers, which idle in a read (default: 10000)",
	 NUMBER(live.daemon_ports, 1, 65536)},
	{0, "top", NULL, "interactive full screen with the last ten minutes (? for help)",
	 MODE(MODE_TOP),
	 .section = "What to show"},
	{0, "findings", NULL, "name what is wrong: who waits, for whom or what, and for how long",
	 FLAG(report.findings)},
	{'g', "columns", "COLUMN,...", "group by these columns (see --list)", TEXT(columns)},
	{0, "stacks", "[COUNT]", "show the COUNT most frequent stacks below each line (default: 3)",
	 FEW(report.stacks, 1, 1000)},
	{0, "chains", NULL, "who blocks whom: root blockers, contended locks, deadlocks",
	 FLAG(report.chains)},
	{0, "trace", "KIND,...", "measure every wait of these kinds (see --list)", TEXT(trace)},
	{0, "slower", "MS", "list each event that took longer than MS (default: system calls)",
	 MS(live.slower_us, 1000, 3600000000)},
	{0, "view", "NAME",
	 "columns and filter of a view of --top: activity, cpu, run-queue, disk, locks, network, "
	 "containers, processes, threads; or memory", TEXT(view)},
	{'G', "more-columns", "COLUMN,...", "add these columns", TEXT(more_columns)},
	{0, "by", "KEY,...",
	 "group by these keys only: columns of --list, or waker, thread, process", TEXT(by)},
	{0, "context", "SPEC",
	 "make a column of a variable of programs: 'NAME = var FILE:SYMBOL[->OFFSET...][:TYPE]'",
	 .kind = OPTION_COLUMN},
	{0, "sort", "COLUMN", "sort the report by this column (default: most time first)",
	 TEXT(sort)},
	{0, "all-rows", NULL, "print every row of a report, even on a terminal",
	 FLAG(report.all_rows)},
	{0, "raw", NULL, "count samples instead of dividing exact times among them",
	 FLAG(report.raw)},
	{0, "critical-path", "PID|NAME", "charge each wait of this process to whatever ended it",
	 TEXT(report.critical_path)},
	{0, "off-wake", NULL,
	 "with --stacks, --folded or --flame: show threads off CPU, with the stack of the last "
	 "waker", FLAG(report.off_wake)},
	{0, "python", NULL,
	 "show Python functions (3.11 to 3.14) in stacks instead of the interpreter's",
	 FLAG(live.python)},
	{0, "goroutines", NULL,
	 "with -p PID: list the goroutines of a Go process, by what they wait for and stack",
	 FLAG(goroutines)},
	{0, "self", NULL, "show what tsnap itself costs", FLAG(live.self)},
	{0, "text", NULL, "with --top: print screens as text (-n 1: one screen)", FLAG(text)},
	{0, "ascii", NULL, "with --top: draw with ASCII characters only", FLAG(ascii)},
	{0, "csv", NULL, "write a CSV row for each sampled thread", FORMAT(renderer_csv),
	 .section = "How to write it"},
	{0, "flame", "FILE", "write an interactive flame graph (SVG)", FORMAT_FILE(renderer_flame)},
	{0, "html", "FILE", "write a page (HTML): findings, time, table and flame graph",
	 FORMAT_FILE(renderer_html)},
	{'o', "record", "DIR", "record hourly files into this directory (at 1 Hz)", TEXT(record)},
	{0, "replay", "FILE|DIR...", "report on a recording, or on a CSV that tsnap wrote",
	 TEXT(replay)},
	{0, "csv-safe", NULL,
	 "with --csv: put an apostrophe before text that a spreadsheet would run as a formula",
	 FLAG(report.csv_safe)},
	{0, "json", NULL, "write a JSON object for each sampled thread, one per line",
	 FORMAT(renderer_json)},
	{0, "patience", "SECONDS",
	 "with --csv or --json: hold each row for up to SECONDS until the peer it waits for is "
	 "known (default: 0)", TIME(report.patience_us, 0, 10000000)},
	{0, "report", NULL, "with --csv or --json: write a row for each group of the report",
	 FLAG(groups)},
	{0, "folded", NULL,
	 "write folded stacks for flamegraph.pl or speedscope, weighted in microseconds",
	 FORMAT(renderer_folded)},
	{0, "pprof", "FILE", "write a profile for pprof: stacks, with columns as labels",
	 FORMAT_FILE(renderer_pprof)},
	{0, "metrics", "FILE",
	 "write counters of time by state, name and call for Prometheus, every -i seconds",
	 FORMAT_FILE(renderer_metrics)},
	{0, "by-chain", NULL,
	 "with --folded or --flame: draw wait chains instead of stacks, each thread below the "
	 "one it waits for", FLAG(by_chain)},
	{0, "diff", "A B",
	 "with --flame: compare the stacks of two files (CSV or folded), or of two parts of one",
	 TEXT(diff)},
	{0, "stack-dict", "FILE",
	 "file with the stacks that the numbers in ustack and kstack stand for: written with "
	 "--csv and --json, read with --replay", TEXT(stack_dict)},
	{0, "from", "TIME",
	 "with --replay: only samples from TIME on: 02:10, -1h, 'yesterday 23:50', "
	 "2026-11-20T02:10Z", TEXT(from),
	 .section = "Recordings"},
	{0, "to", "TIME", "with --replay: only samples before TIME", TEXT(to)},
	{0, "by-time", "TIME",
	 "with --replay: report on each step of TIME separately (10s, 1m, 1h)",
	 TIME(report.by_time_us, 1, INT64_MAX)},
	{0, "heatmap", NULL,
	 "with --replay: draw a line for each group, with a character for each step of "
	 "--by-time (default: 1m)", FLAG(report.heatmap)},
	{0, "snapshot", "FILE",
	 "with --replay: copy what was recorded between --from and --to into one file",
	 OF_MODE(OPTION_TEXT, snapshot, MODE_SNAPSHOT)},
	{0, "flush", "SECONDS", "with -o: write every SECONDS; a crash loses no more (default: 5)",
	 TIME(flush_us, 100000, 3600000000)},
	{0, "keep", "TIME", "with -o: delete hourly files older than TIME (90m, 48h, 7d, 4w)",
	 TIME(retention.keep_us, 1, INT64_MAX)},
	{0, "archive", "HZ",
	 "with -o: also keep a thinned copy at HZ scans per second, with its own retention",
	 NUMBER(archive_hz, 1, 1000)},
	{0, "keep-archive", "TIME", "with --archive: delete files of that copy older than TIME",
	 TIME(retention.keep_archive_us, 1, INT64_MAX)},
	{0, "keep-bytes", "SIZE",
	 "with -o: delete the oldest files to stay within SIZE (500M, 20G)",
	 BYTES(retention.keep_bytes, 1, INT64_MAX)},
	{0, "keep-free", "PERCENT",
	 "with -o: delete the oldest files to keep PERCENT of the file system free (5%)",
	 PERCENT(retention.keep_free_tenths, 1, 999)},
	{0, "when", "EXPR",
	 "report once 'finding=NAME,...' or 'findings>NUMBER' is true, and exit with 3; with -o: "
	 "record only the scans around that, or around samples for which EXPR is true",
	 TEXT(when)},
	{0, "keep-around", "TIME",
	 "with --when: record TIME before and after each of them (default: 30s)",
	 TIME(around_us, 1, INT64_MAX)},
	{0, "list", "[WORD]", "list columns, states and traces, or those that match WORD",
	 OF_MODE(OPTION_WORD, list_word, MODE_LIST),
	 .section = "This host and tsnap"},
	{0, "check", NULL, "say whether tsnap works on this host, and what it lacks",
	 MODE(MODE_CHECK)},
	{'h', "help", "[all]", "print ten examples, or all options",
	 OF_MODE(OPTION_ALL, help_all, MODE_HELP)},
	{0, "config", "FILE",
	 "read options from a file: on each line a name as above, without dashes, and its value",
	 OF_MODE(OPTION_CONFIG, config_file, MODE_REPORT)},
	{'v', "verbose", NULL, "print details of errors and of what tsnap chose",
	 FLAG(report.verbose)},
	{'V', "version", NULL, "print the version", MODE(MODE_VERSION)},
	{0, "query-text", "on|off",
	 "off: show and record statements without the values in them (as querysum), and no "
	 "context (default: on)", TEXT(query_text)},
	{0, "share", "NAME", "let others --attach to the BPF programs of this tsnap",
	 TEXT(live.share),
	 .section = "Several samplers"},
	{0, "attach", "NAME", "use the BPF programs of a tsnap --share NAME, without compiling any",
	 TEXT(live.attach)},
	{0, "stack-bytes", "BYTES",
	 "copy up to BYTES of the user stack of each thread on a CPU (256 to 61440; default: "
	 "16384)", BYTES(live.stack_bytes, STACK_BYTES_MIN, STACK_BYTES_MAX),
	 .section = "How to measure"},
	{0, "fp", NULL,
	 "follow frame pointers of threads on a CPU: cheaper than copies, but fewer stacks are "
	 "complete", FLAG(live.frame_pointers)},
	{0, "source", "bpf|proc",
	 "sample by BPF programs, or from /proc, which shows less (default: bpf where it works, "
	 "else proc)", TEXT(live.source)},
	{0, "max-threads", "COUNT", "make room for COUNT threads (default: what the host needs)",
	 NUMBER(live.max_threads, 64, THREADS_MAX)},
	{0, "kernel-types", "SOURCE",
	 "where the layout of kernel types comes from:" /* option_help() adds the sources */,
	 TEXT(live.kernel_types)},
	{0, "btf", "FILE", "read the layout of kernel types from this BTF file",
	 TEXT(live.btf_file)},
	{0, "offsets", "FILE", "read the layout of kernel types from a file of --write-offsets",
	 TEXT(live.offsets_file)},
	{0, "write-offsets", "FILE", "write the layout of this kernel's types to a file",
	 OF_MODE(OPTION_TEXT, live.write_offsets, MODE_WRITE_OFFSETS)},
	{0, "without", "FEATURE,...",
	 "act as if the host lacked these features (see --check), or were a kernel-4.14",
	 TEXT(live.without)},
	{0, "no-realtime", NULL,
	 "do not use real-time priority (on a busy host this biases samples toward sleeping "
	 "threads)", FLAG(live.no_realtime)},
	{0, "no-sandbox", NULL, "keep all privileges and system calls after the start",
	 FLAG(live.no_sandbox)},
};
/* clang-format on */

const size_t option_count = sizeof(option_table) / sizeof(option_table[0]);
_Static_assert(sizeof(option_table) / sizeof(option_table[0]) <= OPTIONS_MAX, "raise OPTIONS_MAX");
