/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/live_describe.h"
#include "live/scan/live_own.h"
#include "base/clock.h"
#include "base/names.h"
#include "live/context/live_limits.h"
#include "live/scan/live_absent.h"
#include "live/scan/live_account.h"
#include "live/context/live_host.h"
#include "live/scan/live_state.h"
#include "live/scan/episodes.h"
#include "live/sampler/live_realtime.h"
#include "waits/net_namespaces.h"

#include <errno.h>
#include <stdio.h>

/* Adds why container_name is empty. */
static void containers_describe(const struct live *live, struct source_status *status)
{
	static const char *const words[] = {
		"containers without a name: none of the files is there in which tsnap(8) looks for "
		"it",
		"containers without a name: the files of process 1 may not be read "
		"(CAP_SYS_PTRACE, or a sandbox around tsnap), and tsnap's own have none",
	};

	for (int refused = 0; refused < 2; refused++) {
		struct source_missed *missed = source_status_miss_any(
			status, words[refused],
			lookup_unnamed_containers(live->context.lookup, refused));

		if (missed)
			missed->standing = missed->natural = true;
	}
}

static void scans_describe(const struct live *live, const struct sampler_status *reported,
			   struct source_status *status)
{
	const struct thread_table *table = &live->context.kernel.table;

	source_status_miss(status,
			   "late scans (the scan before took too long: use a lower -F, or -p)",
			   reported->late_count[LATE_WORK]);
	source_status_miss(status, "late scans (tsnap waited for a CPU, or for its output)",
			   reported->late_count[LATE_WAIT]);
	source_status_miss(status, "late scans (the map was made larger)",
			   reported->late_count[LATE_GROWTH]);
	source_status_miss(status, "records changed again and again while being read",
			   table->torn_count + reported->torn_count);
	source_status_miss(status, "scans that could not see the whole map",
			   table->unfinished_count + reported->unfinished_count);
}

static void variable_lacking(void *to, const char *words)
{
	source_status_lack(to, name_transient_string(words));
}

static void lacking_describe(const struct live *live, const struct sampler_status *reported,
			     struct source_status *status)
{
	const struct host *host = &live->context.kernel.host;
	int sockets = net_namespaces_error();

	if (live->context.wants.needs & (NEED_FILE | NEED_EXE | NEED_SYSCALL) &&
	    (!host->cap_ptrace || !host->cap_read))
		source_status_lack(status,
				   "kind of data: files, programs and earlier calls of other "
				   "users' threads (needs CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH)");
	if (live->context.wants.needs & NEED_VARIABLES)
		apps_lacking(lookup_apps(live->context.lookup), variable_lacking, status);
	live_realtime_describe(&live->realtime, reported, host, status);
	if (sockets == -ENOENT || sockets == -EPROTONOSUPPORT || sockets == -EAFNOSUPPORT)
		source_status_lack(status,
				   "kind of data: connections of sockets (the kernel does not show "
				   "them here, by sock_diag)");
	else if (sockets)
		source_status_lack(status, live_limits_words("kind of data: connections of sockets",
							     "sock_diag", -sockets));
}

void live_describe(struct source *source, struct source_status *status)
{
	struct live *live = (struct live *)source;
	const struct kernel *kernel = &live->context.kernel;
	struct probe_counters counters = kernel_counters(&live->context.kernel);
	struct sampler_status reported;
	struct source_missed *missed;
	uint64_t ns, runs, full = counters.map_full + live->context.seed.unfit_count;

	*status = (struct source_status){.bpf_ns = ABSENT, .bpf_runs = ABSENT};
	snprintf(status->host, SOURCE_TEXT_SIZE, "%s", kernel->host.name);
	snprintf(status->kernel, SOURCE_TEXT_SIZE, "%s", kernel->host.release);
	status->cpus = kernel->host.cpus;
	status->of_proc = live->context.proc;
	status->rate_hz = live->context.config.rate_hz;
	status->own_cpu_ns = clock_cpu_ns() + parsers_cpu_ns(live->context.parsers) -
			     live->times.own_cpu_start_ns;
	status->own_ns = clock_monotonic_ns() - live->times.own_start_ns;
	if (!kernel_bpf_cost(&live->context.kernel, &ns, &runs)) {
		status->bpf_ns = (int64_t)ns;
		status->bpf_runs = (int64_t)runs;
	}
	sampler_status_read(live->context.sampler, &reported);
	scans_describe(live, &reported, status);
	live_accounts_missed(&live->accounts, status);
	live_own_describe(live, status);
	live_accounts_busy(&live->accounts, status);
	source_status_miss(status, "names beyond what tsnap keeps in memory", names_refused());
	live_absent_describe(kernel,
			     (live->context.wants.needs | live->context.wants.lacking_needs) &
				     ~live->context.wants.optional_needs,
			     status);
	lacking_describe(live, &reported, status);
	live_avoided_describe(status);
	if (live->context.view.translated) {
		missed = source_status_miss(
			status,
			"threads outside of this container's pid namespace (pid and "
			"tid are those inside)",
			(uint64_t)live->walk.other_threads);
		missed->standing = missed->natural = true;
	}
	episodes_describe(&live->context, status);
	live_chains_describe(live->chains, status);
	containers_describe(live, status);
	status->load = live_load_read();
	status->memory_used = status->disk_read = status->refaulted = status->evicted = ABSENT;
	if (live->source.describes_host)
		live_host_describe(&live->host, status);
	live_stacks_describe(&live->stacks, status);
	live_self_describe(&live->self, kernel, &live->stacks.cpu.sampler,
			   &live->stacks.kept.stacks, live->context.parsers,
			   live->context.now.scan_count, &status->self);
	if (live->context.config.traces)
		source_status_miss(status, "events of --trace (more threads than fit the maps)",
				   live->growth.earlier.latency_full + counters.latency_full);
	source_status_miss_any(status, "texts of --context that were gone when they were read",
			       live->held.lost_count);
	if (live->context.config.own)
		source_status_miss(status,
				   "events of --probe and --context whose values could not be read",
				   live->growth.earlier.probe_unread + counters.probe_unread);
	if (live->context.config.own)
		source_status_miss_any(
			status, "stacks of events of --probe (more different ones than are kept)",
			live->growth.earlier.probe_stacks + counters.probe_stacks);
	if (kernel->compiled.maps[KERNEL_MAP_BLOCK] >= 0) {
		source_status_miss(status, "requests to block devices (too many in flight)",
				   live->growth.earlier.block_full + counters.block_full);
		source_status_miss(
			status,
			"requests to block devices (the kernel ran no program at their end)",
			live->growth.earlier.block_unseen + counters.block_unseen);
	}
	if (live->context.config.events)
		source_status_miss(
			status,
			"single events lost: more than tsnap read in time (use a higher -F)",
			kernel->events.lost_count);
	if (live->queries.refused)
		source_status_miss(status,
				   "DNS queries (more than tsnap keeps until they are answered)",
				   live->queries.refused);
	if (live->context.wants.needs & NEED_PATH)
		source_status_miss(
			status,
			"ends of waits lost: more than tsnap read in time (use a higher -F)",
			kernel->wakes.lost_count);
	status->chosen = text_string(&live->chosen);
	status->remarks = text_string(&live->remarks);
	/* a thread that did not fit was not traced, also where it has a slot by now */
	if (live->context.view.translated || live->context.config.traces)
		source_status_miss(status,
				   "times that a thread did not fit the map (raise --max-threads)",
				   live->growth.earlier.map_full + full);
	if (!live->context.view.translated)
		/* threads without a slot now, not how often one was refused */
		source_status_miss(
			status, "threads beyond the size of the map (raise --max-threads)",
			full && live->walk.unfit_threads > 0 ? (uint64_t)live->walk.unfit_threads
							     : live->context.seed.unfit_count)
			->standing = true;
}

void live_chosen_describe(const struct live_config *config, const struct kernel *kernel,
			  uint64_t groups, struct text *to)
{
	if (kernel->share.directory.name[0])
		text_add_format(to, "%s '%s'\n", config->attach ? "attached to" : "sharing as",
				kernel->share.directory.name);
	if (kernel->table.own) {
		text_add_string(to, "records of threads: made from /proc\n");
		return;
	}
	text_add_format(to, "kernel types from %s%s\n", kernel->compiled.types_source,
			kernel->compiled.types_tried.length ? "; tried:" : "");
	text_add_string(to, text_string(&kernel->compiled.types_tried));
	if (kernel->compiled.programs_source[0])
		text_add_format(to, "BPF programs %s\n", kernel->compiled.programs_source);
	for (int group = 0; group < GROUP_COUNT; group++) {
		const struct probe_row *row = kernel->plan.chosen[group];

		if (!row && group >= GROUP_OWN)
			continue;
		if (!row && !(groups >> group & 1)) {
			text_add_format(to, "%s: not wanted\n", probe_group_rows[group].name);
			continue;
		}
		if (!row && !probe_group_rows[group].without) {
			text_add_format(to, "%s: none; nothing is lacking, at a higher cost\n",
					probe_group_rows[group].name);
			continue;
		}
		text_add_format(to, "%s: %s%s%s\n", probe_group_rows[group].name,
				row ? probe_kind_names[row->kind] : "none",
				row ? " on " : "; not seen: ",
				row ? row->event : probe_group_rows[group].without);
	}
	text_add_string(to, kernel->left_out);
	text_add_string(to, text_string(&kernel->compiled.output));
}
