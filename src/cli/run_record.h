/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TSNAP_CLI_RUN_RECORD_H
#define TSNAP_CLI_RUN_RECORD_H

#include "cli/run_state.h"

/* -o DIR: records the samples of run->source until it is to end. report gets lines for standard
 * error while it runs. 0 or -errno with e. */
int run_record(struct run *run, void (*report)(const char *lines), struct error *e);

#endif
