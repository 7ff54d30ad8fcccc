/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel tells of the host as a whole, for the head and the foot of reports: control
 * groups that were held back for their quota of CPU time, or have a limit of I/O, and pressure
 * stall information. */
#ifndef TSNAP_LIVE_LIVE_HOST_H
#define TSNAP_LIVE_LIVE_HOST_H

struct live;
struct live_host;
struct source_facts;

/* Adds what is known now to the facts, where reports are made: counts since the start. */
void live_host_describe(struct live *live, struct source_facts *facts);
void live_host_done(struct live_host *host);

#endif
