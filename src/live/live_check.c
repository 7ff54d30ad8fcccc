/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --check and --write-offsets. --check says first whether tsnap works on this host, and what it
 * lacks here; then what the host offers, what was chosen, and how to get what is missing. */
#include "live/live.h"
#include "base/clock.h"
#include "base/names.h"
#include "base/output.h"
#include "kernel/bcc_library.h"
#include "maps/kernel.h"
#include "kernel/type_source.h"
#include "kernel/registers.h"
#include "live/context/live_limits.h"
#include "live/live_options.h"
#include "live/threads/proc_records.h"
#include "live/trace_table.h"
#include "live/sampler/live_realtime.h"
#include "sample/needs.h"
#include "sandbox/capabilities.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Processes and threads of a run beside its first process. A start without stacks has three at
 * once: the one that samples, the one that starts parsers, and the one that compiles. */
#define PROCESSES_LEAST 3
#define PROCESSES_MOST 15

/* The parts of --check. */
struct check {
	struct text details; /* all but the verdict */
	struct text lacking; /* what tsnap can't do here, names with ", " between */
};

/* Adds to what is lacking, once. */
static void lacking_add(struct check *check, const char *what)
{
	const size_t length = strlen(what);

	for (const char *at = text_string(&check->lacking); (at = strstr(at, what)); at++)
		if (!at[length] || at[length] == ',')
			return;
	text_add_format(&check->lacking, "%s%s", check->lacking.length ? ", " : "", what);
}

static void line_add(struct text *out, const char *name, const char *words)
{
	text_add_format(out, "  %-18s ", name);
	text_add_printable(out, words);
	text_add_char(out, '\n');
}

static void pids_describe(const struct host *host, struct text *out)
{
	const char *words = "the host's first: ids are the kernel's own";
	const char *lacks = host_proc_lacks(host);
	char why[128];

	snprintf(why, sizeof(why), "not known (/proc/self: %s)", lacks ? lacks : "");
	if (lacks)
		words = why;
	else if (!host_pids_first(host))
		words = host->pid_depth == 1
				? "its own (a container): pid and tid are those of it, as ps shows "
				  "them; threads outside of it are left out"
				: "its own (a container), but /proc is of an outer one: pid and "
				  "tid "
				  "are those that /proc shows";
	line_add(out, "pid namespace", words);
}

static void realtime_describe(const struct host *host, struct check *check)
{
	struct realtime realtime;
	struct text words = {0};
	const char *why;

	realtime_init(&realtime, true);
	why = live_realtime_why(&realtime, host);
	if (why) {
		text_add_format(&words,
				"no (%s): on a busy host samples may lean towards threads that "
				"sleep",
				why);
		lacking_add(check, "real-time priority");
	} else {
		text_add_string(&words, "yes, for the first millisecond of a scan at most");
	}
	line_add(&check->details, "real-time priority", text_string(&words));
	text_done(&words);
}

static void sandbox_describe(struct text *out)
{
	const bool old = sandbox_kernel_use() != 0;
	struct text words = {0};

	text_add_string(&words, "keeps ");
	sandbox_capabilities_add(
		&words, sandbox_capabilities(SANDBOX_SAMPLES | sandbox_kernel_use(), ~0ull));
	text_add_string(&words, old ? ": this kernel has no CAP_BPF and no CAP_PERFMON"
				    : "; CAP_SYS_ADMIN for kernel stacks, and for sockets of "
				      "other network namespaces");
	line_add(out, "sandbox", text_string(&words));
	text_done(&words);
}

/* Returns how many processes can be started, at most PROCESSES_MOST; *err: why no more. */
static int processes_try(int *err)
{
	pid_t processes[PROCESSES_MOST], parent = getpid();
	int count = 0;

	*err = 0;
	while (count < PROCESSES_MOST && (processes[count] = fork()) > 0)
		count++;
	if (count < PROCESSES_MOST && !processes[count]) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			pause();
		_exit(EXIT_FAILURE);
	}
	if (count < PROCESSES_MOST)
		*err = errno;
	for (int i = 0; i < count; i++) {
		kill(processes[i], SIGKILL);
		waitpid(processes[i], NULL, 0);
	}
	return count;
}

/* -errno with e: a run can't start the processes that it needs. */
static int processes_describe(struct text *out, struct error *e)
{
	struct text words = {0};
	int err, count;

	fflush(NULL);
	count = processes_try(&err);
	if (!err) {
		line_add(out, "processes", "as many as tsnap takes can be started");
		return 0;
	}
	text_add_format(&words,
			"only %d more can be started (%s), and tsnap takes up to %d: stacks, --top "
			"or -o may fail; ",
			count, strerror(err), PROCESSES_MOST);
	live_limits_explain(err, &words);
	line_add(out, "processes", text_string(&words));
	text_done(&words);
	if (count >= PROCESSES_LEAST)
		return 0;
	return error_set(e, err, EXIT_HOST_CANNOT,
			 "only %d more processes can be started, and tsnap takes at least %d: %s",
			 count, PROCESSES_LEAST, strerror(err));
}

static void host_describe(const struct host *host, struct check *check)
{
	char words[2 * HOST_TEXT_SIZE + 64], bcc[64];
	struct text *out = &check->details;

	text_add_string(out, "Host\n");
	line_add(out, "name", host->name);
	snprintf(words, sizeof(words), "%s%s%s", host->release, host->distribution[0] ? ", " : "",
		 host->distribution);
	line_add(out, "kernel", words);
	line_add(out, "architecture", host->machine);
	snprintf(words, sizeof(words), "%d online, %d possible", host->cpus, host->cpus_possible);
	line_add(out, "CPUs", words);
	snprintf(words, sizeof(words),
		 "%s; CAP_BPF %s, CAP_PERFMON %s, CAP_SYS_PTRACE %s, CAP_DAC_READ_SEARCH %s, "
		 "CAP_SYS_ADMIN %s%s",
		 host->root ? "root" : "not root", host->cap_bpf ? "yes" : "no",
		 host->cap_perfmon ? "yes" : "no", host->cap_ptrace ? "yes" : "no",
		 host->cap_read ? "yes" : "no", host->cap_admin ? "yes" : "no",
		 host->seccomp ? "; a filter of system calls (seccomp) is in force" : "");
	line_add(out, "privileges", words);
	sandbox_describe(out);
	if (!host->cap_ptrace || !host->cap_read) {
		line_add(out, "",
			 "without CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH these stay unknown of "
			 "other users' threads: files, programs, calls from before the start");
		lacking_add(check, "files and programs of other users' threads");
	}
	realtime_describe(host, check);
	pids_describe(host, out);
	line_add(out, "lockdown",
		 host->lockdown[0] ? host->lockdown : "not known (no securityfs, or no lockdown)");
	line_add(out, "BPF JIT",
		 host->jit > 0 ? "on"
		 : host->jit == 0
			 ? "OFF: probes cost several times more; sysctl net.core.bpf_jit_enable=1"
			 : "not known (/proc/sys/net/core/bpf_jit_enable can't be read)");
	line_add(out, "tracefs", host->tracefs[0] ? host->tracefs : "not mounted or not readable");
	if (host->memlock_bytes == UINT64_MAX)
		snprintf(words, sizeof(words), "unlimited");
	else
		snprintf(words, sizeof(words),
			 "%llu KB (kernels before 5.11 count maps against it; tsnap "
			 "raises it if it may)",
			 (unsigned long long)host->memlock_bytes / 1024);
	line_add(out, "memory limit", words);
	bcc_library_find(bcc, sizeof(bcc));
	line_add(out, "libbcc",
		 bcc[0] ? bcc
			: "not found: apt install libbpfcc, dnf install bcc, or zypper install "
			  "libbcc0");
}

/* True if the host has a feature that is as good as this one. */
static bool has_instead(struct kernel *kernel, int feature)
{
	for (int other = 0; other < FEATURE_COUNT; other++)
		if (feature_rows[feature].instead >> other & 1 &&
		    feature_has(&kernel->features, (enum feature)other))
			return true;
	return false;
}

static void features_describe(struct kernel *kernel, struct check *check)
{
	text_add_string(&check->details, "Facts (tried now)\n");
	for (int feature = 0; feature < FEATURE_COUNT; feature++) {
		char words[512], since[32] = "";
		bool there = feature_has(&kernel->features, (enum feature)feature);

		if (feature_rows[feature].since)
			snprintf(since, sizeof(since), ", since %u.%u",
				 feature_rows[feature].since >> 8,
				 feature_rows[feature].since & 255);
		snprintf(words, sizeof(words), "%-3s  %s%s%s%s%s",
			 there							? "yes"
			 : kernel->features.state[feature] == FEATURE_FORBIDDEN ? "?"
										: "no",
			 feature_rows[feature].help, since, there ? "" : " (",
			 there ? "" : kernel->features.why[feature], there ? "" : ")");
		line_add(&check->details, feature_rows[feature].name, words);
		if (!there && feature_rows[feature].lacks && !has_instead(kernel, feature))
			lacking_add(check, feature_rows[feature].lacks);
	}
}

static void types_describe(const struct live_config *config, const struct kernel *kernel,
			   struct text *out)
{
	const struct type_request request = {.choice = config->kernel_types,
					     .btf_file = config->btf_file,
					     .offsets_file = config->offsets_file,
					     .host = &kernel->host,
					     .features = &kernel->features};

	text_add_string(out, "Sources of kernel types, in the order they are tried\n");
	for (const struct type_source *source = type_sources; source->name; source++) {
		char where[512], words[600];
		bool there = type_source_there(source, &request, where, sizeof(where));

		snprintf(words, sizeof(words), "%-3s  %s (%s)", there ? "yes" : "no", source->help,
			 where);
		line_add(out, source->name, words);
	}
}

/* Returns the first row of a group that this kernel offers, or NULL. passed_over: reasons why none
 * before it was chosen. */
static const struct probe_row *row_choose(struct kernel *kernel, enum probe_group group,
					  struct text *passed_over)
{
	for (size_t i = 0; i < probe_row_count; i++) {
		const struct probe_row *row = &probe_rows[i];
		const char *missing;

		if (row->gives != group)
			continue;
		if (probe_offered(&kernel->features, row, &missing))
			return row;
		text_add_format(passed_over, "; no %s on %s, because %s is missing",
				probe_kind_names[row->kind], row->event, missing);
	}
	return NULL;
}

/* plan: of all groups; NULL: none can be made. */
static void group_describe(struct kernel *kernel, const struct probe_plan *plan,
			   enum probe_group group, struct check *check)
{
	const struct probe_group_row *of = &probe_group_rows[group];
	struct text passed_over = {0}, line = {0};
	const struct probe_row *row = row_choose(kernel, group, &passed_over);

	if (row && plan && !plan->chosen[group])
		text_add_format(&line, "none; a %s on %s would not serve: %s",
				probe_kind_names[row->kind], row->event, probe_merge_useless);
	else if (row)
		text_add_format(&line, "%s on %s: the first way that this kernel offers%s",
				probe_kind_names[row->kind], row->event, text_string(&passed_over));
	else
		text_add_format(&line, "none%s; a report lacks %s", text_string(&passed_over),
				of->without ? of->without : "nothing, at a higher cost");
	if (!row && of->without)
		lacking_add(check, of->without);
	line_add(&check->details, of->name, text_string(&line));
	text_done(&line);
	text_done(&passed_over);
}

static bool features_report(void *of, const struct probe_row *row)
{
	return probe_offered(of, row, NULL);
}

static void probes_describe(struct kernel *kernel, struct check *check)
{
	struct probe_plan plan;
	struct error e = {0};
	bool planned = !probe_plan_make(UINT64_MAX, features_report, &kernel->features, &plan, &e);

	error_done(&e);
	text_add_string(&check->details, "Probes\n");
	/* probes are reported as they would be, also where there is no way to see switches */
	for (int group = 0; group < GROUP_OWN; group++)
		group_describe(kernel, planned ? &plan : NULL, (enum probe_group)group, check);
}

/* Adds what is missing, and how to get it on each distribution. */
static void remedies_describe(const struct live_config *config, struct kernel *kernel,
			      struct text *out)
{
	static const struct {
		const char *name, *distribution_id;
	} distributions[] = {
		{"Debian", "debian"}, {"Ubuntu", "ubuntu"},	{"RHEL, Fedora", "rhel"},
		{"SUSE", "suse"},     {"Amazon Linux", "amzn"},
	};
	const struct type_request request = {.choice = config->kernel_types,
					     .host = &kernel->host,
					     .features = &kernel->features};
	char where[512];
	bool any = false;

	text_add_string(out, "What is missing, and how to get it\n");
	for (int feature = 0; feature < FEATURE_COUNT; feature++) {
		if (feature_has(&kernel->features, (enum feature)feature) ||
		    kernel->features.state[feature] == FEATURE_TAKEN_AWAY ||
		    (feature != FEATURE_BPF &&
		     kernel->features.state[feature] == FEATURE_FORBIDDEN))
			continue;
		any = true;
		line_add(out, feature_rows[feature].name,
			 feature_rows[feature].remedy
				 ? feature_rows[feature].remedy
				 : "only another kernel has it; tsnap works without it");
	}
	for (const struct type_source *source = type_sources; source->name; source++) {
		if (strcmp(source->name, "headers") != 0 ||
		    source->there(&request, where, sizeof(where)))
			continue;
		any = true;
		line_add(out, "kernel headers",
			 "needed only where neither BTF nor kheaders is there:");
		for (size_t i = 0; i < sizeof(distributions) / sizeof(distributions[0]); i++) {
			struct host host = kernel->host;
			char words[256], line[300];

			snprintf(host.distribution_id, sizeof(host.distribution_id), "%s",
				 distributions[i].distribution_id);
			type_source_remedy(&host, words, sizeof(words));
			snprintf(line, sizeof(line), "  %s: %s", distributions[i].name, words);
			line_add(out, "", line);
		}
	}
	if (!any)
		line_add(out, "nothing", "");
}

static void share_describe(void *to, const char *name, const char *holders)
{
	char words[256];

	if (*holders)
		snprintf(words, sizeof(words), "used by process %s; tsnap --attach %s", holders,
			 name);
	else
		snprintf(words, sizeof(words),
			 "no tsnap uses it, but its programs still run: tsnap --attach %s "
			 "continues with them, rm -r /sys/fs/bpf/tsnap-%s ends them",
			 name, name);
	line_add(to, name, words);
}

static void shares_describe(struct text *out)
{
	struct text shares = {0};

	share_directories_walk(share_describe, &shares);
	if (shares.length)
		text_add_format(out, "Shared (--share)\n%s", text_string(&shares));
	text_done(&shares);
}

/* What a report does without, in the order in which it is left out until the rest can run. */
static const struct {
	const char *options; /* options and columns that need it */
	uint64_t needs;
} extras[] = {
	{"--critical-path", NEED_PATH},
	{"io_ columns", NEED_BLOCK},
	{"column irq", NEED_IRQ},
	{"syscall_us", NEED_CALL_TIME},
	{"stacks", NEED_USTACK | NEED_KSTACK},
};
#define EXTRA_COUNT (sizeof(extras) / sizeof(extras[0]))

/* Loads and attaches the programs for these needs and kinds of --trace, as a run does. The kernel
 * is to be closed in any case. */
static int needs_try(const struct live_config *config, uint64_t needs, unsigned int kinds,
		     struct kernel *kernel, struct error *e)
{
	struct live_config tried = *config;
	struct kernel_options options;

	tried.traces = kinds;
	if (kinds) {
		tried.slower_us = US_PER_MS;
		tried.share = tried.attach = NULL;
	}
	live_kernel_options(&tried, NULL, needs, &options);
	return kernel_open(kernel, &options, e);
}

/* Adds a line for what can't run here, and its name to the lacking ones. */
static void refused_add(struct check *check, const char *name, const char *why)
{
	line_add(&check->details, name, why);
	lacking_add(check, name);
}

static void kernel_describe(struct kernel *kernel, struct check *check)
{
	const unsigned int kept = kernel->compiled.registers_kept;
	struct text *out = &check->details;
	char words[256];

	line_add(out, "kernel types", kernel->compiled.types_source);
	for (char *save = NULL, *line = strtok_r(kernel->compiled.types_tried.bytes, "\n", &save);
	     line; line = strtok_r(NULL, "\n", &save))
		line_add(out, "  tried", line);
	if (kernel->compiled.stack_registers)
		snprintf(words, sizeof(words), "at byte %u of the kernel stack (calibrated)%s%s",
			 kernel->compiled.stack_registers,
			 kept & REGISTERS_STACK ? "" : "; without sp in system calls",
			 kept & REGISTERS_PRESERVED ? "" : "; without bp in system calls");
	else
		snprintf(words, sizeof(words), "not found (%s): no system calls in the report",
			 strerror(-kernel->compiled.calibration));
	if (!kernel->compiled.stack_registers)
		lacking_add(check, "system calls");
	line_add(out, "saved registers", words);
	if (kernel->compiled.pids_translated) {
		snprintf(words, sizeof(words), "translated; tsnap is %lld here, %u to the kernel",
			 (long long)kernel->host.own_pid, kernel->compiled.own_tid);
		line_add(out, "ids", words);
	}
	for (char *save = NULL, *line = strtok_r(kernel->left_out, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		line_add(out, "  not attached", line);
	line_add(out, "BPF programs", kernel->compiled.programs_source);
	snprintf(words, sizeof(words), "loaded and attached; capacity: %u threads",
		 kernel->compiled.threads_max);
	line_add(out, "result", words);
}

#define ALL_TRACES ((1u << LATENCY_KIND_COUNT) - 1)

/* Tries all that a report may need; if that fails, without more and more of the extras. needs: what
 * can run. -errno: not even a report can. */
static int report_try(const struct live_config *config, uint64_t *needs, struct check *check,
		      struct error *e)
{
	struct kernel kernel;
	size_t left_out = 0;
	int err;

	*needs = UINT64_MAX;
	while ((err = needs_try(config, *needs, 0, &kernel, e)) && err != -EINTR &&
	       left_out < EXTRA_COUNT) {
		kernel_close(&kernel);
		error_done(e);
		*e = (struct error){0};
		*needs &= ~extras[left_out++].needs;
	}
	if (err)
		line_add(&check->details, "result", e->line);
	else
		kernel_describe(&kernel, check);
	kernel_close(&kernel);
	for (size_t i = 0; !err && i < left_out; i++) {
		err = needs_try(config, *needs | extras[i].needs, 0, &kernel, e);
		kernel_close(&kernel);
		if (!err)
			*needs |= extras[i].needs;
		if (!err || err == -EINTR)
			continue;
		refused_add(check, extras[i].options, e->line);
		error_done(e);
		*e = (struct error){0};
		err = 0;
	}
	return err;
}

/* An old verifier may take the programs of some kinds and refuse those of others. */
static void traces_try(const struct live_config *config, uint64_t needs, struct check *check)
{
	char name[64];

	for (int kind = 0; kind < LATENCY_KIND_COUNT; kind++) {
		struct kernel kernel;
		struct error e = {0};

		snprintf(name, sizeof(name), "--trace %s", trace_rows[kind].kind.name);
		if (needs_try(config, needs, 1u << kind, &kernel, &e))
			refused_add(check, name, e.line);
		else
			line_add(&check->details, name, "loaded and attached");
		kernel_close(&kernel);
		error_done(&e);
	}
}

/* Compiles, loads and attaches all that tsnap can use at once, because a compile takes most of the
 * time. Where that fails, tries the parts. */
static int trial(const struct live_config *config, struct check *check, struct error *e)
{
	struct kernel kernel;
	uint64_t needs;
	int err;

	text_add_string(&check->details, "Trial\n");
	err = needs_try(config, UINT64_MAX, ALL_TRACES, &kernel, e);
	if (!err) {
		kernel_describe(&kernel, check);
		line_add(&check->details, "--trace, --slower", "all kinds: loaded and attached");
	}
	kernel_close(&kernel);
	if (!err || err == -EINTR)
		return err;
	error_done(e);
	*e = (struct error){0};
	err = report_try(config, &needs, check, e);
	if (!err)
		traces_try(config, needs, check);
	return err;
}

int live_check(const struct live_config *config, struct text *out, struct error *e)
{
	struct kernel_options options;
	struct kernel kernel = {0};
	struct check check = {0};
	int planned, processes, err;

	live_kernel_options(config, NULL, UINT64_MAX, &options);
	planned = kernel_plan(&kernel, &options, e);
	if (planned && e->exit_code == EXIT_USAGE)
		return planned;
	host_describe(&kernel.host, &check);
	processes = processes_describe(&check.details, planned ? &(struct error){0} : e);
	features_describe(&kernel, &check);
	types_describe(config, &kernel, &check.details);
	probes_describe(&kernel, &check);
	remedies_describe(config, &kernel, &check.details);
	shares_describe(&check.details);
	err = planned ? planned : processes ? processes : trial(config, &check, e);
	text_add_string(out,
			err && !processes && !proc_records_lack()
				? "tsnap has no BPF here, and samples /proc instead (tsnap(8), "
				  "WITHOUT BPF): "
			: err		       ? "tsnap does NOT work here: "
			: check.lacking.length ? "tsnap works here, but lacks: "
					       : "tsnap works fully here");
	text_add_printable(out, err ? e->line : text_string(&check.lacking));
	text_add_format(out, "\n\n%s", text_string(&check.details));
	text_done(&check.details);
	text_done(&check.lacking);
	if (err && err != -EINTR)
		e->exit_code = EXIT_HOST_CANNOT;
	return err;
}

int live_write_offsets(const struct live_config *config, struct error *e)
{
	struct kernel_options options;
	struct kernel kernel;
	struct text text = {0};
	int err, fd;

	live_kernel_options(config, NULL, UINT64_MAX, &options);
	err = kernel_layout(&kernel, &options, e);
	if (err)
		return err;
	field_offsets_write(&kernel.compiled.layout, kernel.host.release, kernel.host.machine,
			    &text);
	fd = output_create(config->write_offsets);
	err = fd < 0 ? fd : output_write(fd, text_string(&text), text.length);
	if (fd >= 0 && close(fd) && !err)
		err = -errno;
	if (err)
		error_set(e, -err, EXIT_FAILED, "offsets file '%s' can't be written: %s",
			  config->write_offsets, output_error(err));
	text_done(&text);
	kernel_close(&kernel);
	return err;
}
