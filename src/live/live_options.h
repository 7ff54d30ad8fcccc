/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel options made from the command line; shared by live and live_check. */
#ifndef TSNAP_LIVE_LIVE_OPTIONS_H
#define TSNAP_LIVE_LIVE_OPTIONS_H

#include "live/context/live_config.h"
#include "maps/kernel.h"

/* needs: NEED_*, of columns and filters. */
void live_kernel_options(const struct live_config *config, uint64_t needs,
			 struct kernel_options *options);

#endif
