/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings of several hosts (--replay A B C): findings of each one (cli/host_report.c), and all
 * as one source, whose chains go on from host to host (report/host_join.h). For that they are read
 * twice, in the order of time: for a while to find how the hosts' clocks differ, then for the
 * report, of the time that all of them have. */
#ifndef TSNAP_CLI_HOSTS_H
#define TSNAP_CLI_HOSTS_H

#include <stddef.h>

#include "base/index.h"
#include "cli/config.h"
#include "cli/run.h"
#include "recording/recording.h"
#include "report/host_waits.h"
#include "sample/source.h"

struct replayed_hosts {
	struct recorded_host hosts[JOIN_HOSTS_MAX];
	size_t count;
	size_t at; /* the host that is replayed alone; count: all are joined */
	struct index ranks[JOIN_HOSTS_MAX]; /* findings of each by their key, from 1 on */
};

/* What is found where they are joined. */
struct joined_hosts {
	struct host_join join;
	struct host_waits waits;
	uint64_t lacking; /* hosts whose recordings lack the columns to join by, a bit each */
};

/* Finds of which hosts the recordings are. 0, or -errno with e. */
int hosts_find(const struct config *config, struct replayed_hosts *hosts, struct error *e);
void hosts_done(struct replayed_hosts *hosts);
/* Makes the options of a replay of one of config->hosts. */
void hosts_config(const struct config *config, size_t host, struct config *one);

/* Opens those of config->hosts as one; a source_opener (cli/run.h). */
int hosts_open(const struct config *config, struct filter *filter, uint64_t needs,
	       struct source **source, struct error *e);
/* What was found so far; NULL: it is another source. */
struct joined_hosts *hosts_joined(struct source *source);

/* True if findings of several hosts are told. */
bool hosts_have_findings(const struct config *config);
/* Reports on the recordings of config->hosts: the findings of each one, opened by open_one, and
 * what leads from one to another. As run(). */
int hosts_run(const struct config *config, source_opener *open_one, void (*tell)(const char *lines),
	      struct error *e);

#endif
