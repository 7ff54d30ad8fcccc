/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --replay A B C --chains: recordings of several hosts as one source, whose chains go on from host
 * to host (report/host_join.h). They are read twice, in the order of time: for a while to find how
 * the hosts' clocks differ, then for the report, of the time that all of them have. */
#ifndef TSNAP_CLI_HOSTS_H
#define TSNAP_CLI_HOSTS_H

#include <stddef.h>

#include "cli/config.h"
#include "sample/source.h"

/* Finds how many hosts the recordings are of. 0, or -errno with e. */
int hosts_count(const struct config *config, size_t *count, struct error *e);
/* Opens them; a source_opener (cli/run.h). */
int hosts_open(const struct config *config, struct filter *filter, uint64_t needs,
	       struct source **source, struct error *e);

#endif
