/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/live_source.h"
#include "live/live.h"

struct live_config live_config_of(const struct config *config)
{
	return (struct live_config){
		.rate_hz = config->rate_hz,
		.process = config->process,
		.descendants = config->descendants,
		.threads = config->threads,
		.cgroup = config->cgroup,
		.daemon_ports = config->daemon_ports,
		.max_threads = config->max_threads,
		.kernel_types = config->kernel_types,
		.btf_file = config->btf_file,
		.offsets_file = config->offsets_file,
		.write_offsets = config->write_offsets,
		.without = config->without,
		.traces = config->traces,
		.slower_ms = config->slower_ms,
		.events = config->events,
		.distributions = config->distributions,
		.stack_bytes = config->stack_bytes,
		.frame_pointers = config->frame_pointers,
		.python = config->python,
		.no_realtime = config->no_realtime,
		.kept = config->kept,
		.no_sandbox = config->no_sandbox,
		.writes = config->record || config->output || config->stack_dict ||
			  config->mode == MODE_TOP,
		.loads_more = config->mode == MODE_TOP,
		.self = config->self,
		.share = config->share,
		.attach = config->attach,
	};
}

int live_source_open(const struct config *config, struct filter *filter, uint64_t needs,
		     struct source **source, struct error *e)
{
	const struct live_config live = live_config_of(config);

	return live_open(&live, filter, needs, source, e);
}
