/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which probes the samples that are asked for need. Pure. */
#ifndef TSNAP_LIVE_GROUPS_H
#define TSNAP_LIVE_GROUPS_H

/* needs: enum sample_needs, of columns and filters. Bits 1 << GROUP_x (kernel/probe_table.h). */
unsigned int live_groups_of(unsigned int needs);

#endif
