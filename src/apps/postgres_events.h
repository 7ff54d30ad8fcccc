/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of PostgreSQL's wait events. */
#ifndef TSNAP_APPS_POSTGRES_EVENTS_H
#define TSNAP_APPS_POSTGRES_EVENTS_H

#include <stdint.h>

#include "base/text.h"

/* Adds type and name of an event, as pg_stat_activity has them: "Lock:transactionid"; of one that
 * an extension has made, or whose number is not known, the type alone. Adds nothing for 0 (the
 * process does not wait), and if the type is not known. major: 13 to 18. */
void postgres_event_add(struct text *text, unsigned int major, uint32_t info);

#endif
