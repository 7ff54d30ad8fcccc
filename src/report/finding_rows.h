/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of findings. */
#ifndef TSNAP_REPORT_FINDING_ROWS_H
#define TSNAP_REPORT_FINDING_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "report/finding_case.h"

struct finding;
struct finding_name;
struct findings;

struct finding_row {
	const char *name; /* stable name, for programs */
	const char *help; /* what it is about, in --list */
	const char *kind; /* word for the sentence about what is no problem */
	bool of_roots;	  /* threads that wait for a root are the problem, and no symptom */
	bool live;	  /* the command needs the live host */
	finding_takes *takes;
	finding_key *key; /* distinguishes findings of the row */
	/* what the finding is about, beside the culprit; NULL: nothing */
	finding_thing *thing;
	bool (*holds)(const struct finding *finding, const struct findings *findings);
	/* True if the sentence says more than the edges do; NULL: it does not. */
	bool (*in_doubt)(const struct finding *finding, const struct findings *findings);
	/* Text with {words} of render_findings.c; parts after | are left out where the line is
	 * full. The command that shows more comes last. */
	const char *sentence, *command;
};

extern const struct finding_row finding_rows[];
extern const size_t finding_row_count;

/* The first row of that name, which exists. */
const struct finding_row *finding_row_find(const char *name);
/* Adds the list of findings for --list. */
void findings_describe(struct text *text);

/* A limit of which that many percent are used up, of the finding's device if that is known; NULL:
 * none. */
const struct source_io_limit *finding_limit(const struct finding *finding,
					    const struct findings *findings, int64_t percent);
/* The priority of the named thread (struct source, priority); ABSENT: not known. */
int64_t finding_priority(const struct findings *findings, const struct finding_name *name);

#endif
