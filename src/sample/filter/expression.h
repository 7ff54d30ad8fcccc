/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Conditions on the columns of a sample, as --filter has them:
 *
 *   any        = all { "||" all }
 *   all        = operand { "&&" operand }
 *   operand    = "!" operand | "(" any ")" | comparison
 *   comparison = COLUMN ( "=" | "!=" | "<" | "<=" | ">" | ">=" | "~" | "!~" | "==" | "=~" ) VALUE
 *
 * Spaces may stand between all of these. A VALUE ends at a space, "(", ")", "&&" or "||", or it is
 * in quotes, double or single: there that quote is written \" or \', and \\ and \xNN mean what they
 * do in the printable form of all output. What a VALUE must be, the column says:
 *
 *   text       = and != compare bytes; ~ and !~ search for an extended regular expression
 *   states     by name; ~ and !~ search in the names
 *   numbers    decimal or 0x; of a column in us with a unit (us ms s min h), in bytes with K M G T
 *   times      ISO 8601 in UTC, cut off anywhere after the day: 2026-11-20T20:42
 *
 * No VALUE at all: = is true of an absent value, != of any other. Every other comparison with an
 * absent value is false.
 *
 * An expression is parsed once into an array. It can be evaluated before all of a sample is known:
 * then the verdict may be open.
 */
#ifndef TSNAP_SAMPLE_FILTER_EXPRESSION_H
#define TSNAP_SAMPLE_FILTER_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sample/sample.h"

#define EXPRESSION_BYTES_MAX 4096
#define EXPRESSION_NODES_MAX 512
#define EXPRESSION_DEPTH_MAX 64 /* nesting of ( and ! */

/* Knowledge of a sample: NEED_*, and these for columns that need nothing. */
#define KNOWN_EVENT SAMPLE_NEED(59)  /* errno, comm_before, io_bytes: an event's */
#define KNOWN_IDS SAMPLE_NEED(61)    /* tid, pid */
#define KNOWN_STATE SAMPLE_NEED(62)  /* state */
#define KNOWN_RECORD SAMPLE_NEED(63) /* other columns without needs */

enum verdict { VERDICT_REFUSED, VERDICT_ACCEPTED, VERDICT_OPEN };

struct expression_node;

/* Conditions. A zeroed struct accepts everything. */
struct expression {
	struct expression_node *nodes;
	size_t count;
	uint64_t needs;	    /* columns that it reads, as KNOWN_* and NEED_* */
	const char *option; /* option that the expression belongs to, for errors; NULL: --filter */
};

/* Adds a condition. 0, or -EINVAL with a usage error that names the character. */
int expression_add(struct expression *expression, const char *text, struct error *e);
/* Adds a condition on a column of text: a shell pattern, see pattern_matches(), which must outlive
 * the expression. */
struct column;
void expression_add_pattern(struct expression *expression, const struct column *column,
			    const char *pattern);

/* known: ~0ull where all of the sample is filled; then never VERDICT_OPEN. */
enum verdict expression_eval(const struct expression *expression, const struct sample *sample,
			     uint64_t known);
/* True if a comparison reads a column for which the function returns true. */
bool expression_reads(const struct expression *expression, bool (*is)(const struct column *column));
bool expression_reads_column(const struct expression *expression, const struct column *column);
void expression_done(struct expression *expression);

/* Matches a shell pattern, fnmatch(3); without * ? [ the pattern matches anywhere in text. */
bool pattern_matches(const char *pattern, const char *text);

#endif
