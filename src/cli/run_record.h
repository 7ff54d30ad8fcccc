/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TSNAP_CLI_RUN_RECORD_H
#define TSNAP_CLI_RUN_RECORD_H

#include "cli/run_state.h"

/* -o DIR: records the samples of run->source until it is to end. 0 or -errno with e. */
int run_record(struct run *run, struct error *e);

#endif
