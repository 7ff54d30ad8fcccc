/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A probe of the user's own, as --probe has it:
 *
 *   probe     = NAME "=" target [ "(" [ value ] ")" ] [ "if" condition ]
 *   target    = "p:" FILE ":" FUNCTION | "u:" FILE ":" [ PROVIDER ":" ] USDT
 *             | "k:" FUNCTION | "t:" [ CATEGORY ":" ] TRACEPOINT
 *   value     = what [ ":" TYPE ]
 *   what      = "arg" NUMBER | "ret" | the name of an argument, of kinds that have names
 *   condition = all { "||" all }
 *   all       = operand { "&&" operand }
 *   operand   = "!" operand | "(" condition ")" | comparison
 *   comparison = value ( "=" | "==" | "!=" | "<" | "<=" | ">" | ">=" ) NUMBER
 *
 * Without brackets a function is measured from entry to return, and the others are counted; with
 * empty ones all are counted. What the kinds have is in own_kinds. A number is decimal or 0x,
 * perhaps negative, and may have a unit: K M G T (powers of 1024), ns us ms s.
 *
 * What a TYPE makes of 64 bits, those of a register or what the note of a USDT probe says, and how
 * values are reported:
 *
 *   int     signed, the lower 32 bits (the others are no part of an int)
 *   bytes   signed, 64 bits
 *   ns      the same, a time
 *   hex     unsigned, 64 bits
 *   str     the address of a text (k, t: also of the kernel's), of which 255 bytes are read when
 * the event is reported: not for conditions
 *
 * Of hex and str, events are counted by value; others are distributions in powers of two. Without a
 * type a value that is reported is an int, but for
 * USDT probes, whose notes say how many bits an argument has and whether it has a sign. A condition
 * takes a value without a type as signed, 64 bits. No word of a probe becomes part of a
 * BPF text: own_item_text_write() writes numbers, and identifiers that it makes itself.
 *
 * A context, as --context has it, is a value that a thread has from one probe to another:
 *
 *   context = NAME "=" "probe" target "(" value ")" [ "if" condition ] ".." end { "|" point }
 *   end     = target | point
 *   point   = the name of another point of the file that was named last
 *
 * Its value is an argument; as a column it has a name as those have.
 */
#ifndef TSNAP_KERNEL_OWN_PROBE_H
#define TSNAP_KERNEL_OWN_PROBE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "base/usdt_operand.h"
#include "kernel/probe_table.h"

#define OWN_PROBE_NAME_SIZE 32
#define OWN_PROBE_POINT_SIZE 128
#define OWN_PROBE_ARGS 6    /* arguments that registers hold, on all machines */
#define OWN_SITES_MAX 64    /* places of a USDT probe */
#define OWN_PROBE_FIELDS 12 /* different values of a probe */
#define OWN_PROBE_TOKENS 256
#define OWN_PROBE_DEPTH 32 /* nesting of ( and ! */
#define OWN_ENDS_MAX 4	   /* probes that end a context */

enum own_probe_kind { OWN_FUNCTION, OWN_USDT, OWN_KERNEL, OWN_TRACEPOINT, OWN_KINDS };

enum own_probe_type { OWN_PLAIN, OWN_INT, OWN_BYTES, OWN_NS, OWN_HEX, OWN_STR };

/* What a probe reports. */
enum own_probe_result {
	OWN_COUNT,
	OWN_TIME,
	OWN_VALUE, /* a distribution */
	OWN_EACH,  /* counts by value */
	OWN_HELD,  /* nothing: its threads have the value until another probe (--context) */
};

/* What a kind of probes has. */
struct own_kind {
	char letter;
	const char *help;    /* in the list of kinds */
	const char *what;    /* it is called */
	const char *example; /* a target */
	const char *point;   /* characters of its names */
	bool of_file;	     /* it is in a file of a program */
	bool returns;	     /* it is measured from entry to return, and has a result */
	bool named;	     /* its arguments have names */
	unsigned int arguments;
	enum own_probe_type type; /* of a value that is reported without a type */
};

extern const struct own_kind own_kinds[OWN_KINDS];

struct own_probe_field {
	bool returned;			/* the return value */
	unsigned int arg;		/* number of the argument, from 1; 0: not known yet */
	char name[OWN_PROBE_NAME_SIZE]; /* name of a tracepoint's argument; "": it has a number */
	size_t at;			/* character of the probe's text */
};

enum own_probe_word { OWN_OPEN, OWN_CLOSE, OWN_AND, OWN_OR, OWN_NOT, OWN_COMPARE };

struct own_probe_token {
	unsigned char word;  /* enum own_probe_word */
	unsigned char field; /* OWN_COMPARE: index of the field, its type and the comparator */
	unsigned char type;
	char sign[3]; /* of C: "==" */
	int64_t number;
};

struct own_probe {
	const char *option; /* "--probe" or "--context", for errors */
	const char *text;   /* as typed, the caller's */
	char name[OWN_PROBE_NAME_SIZE];
	enum own_probe_kind kind;
	char file[PATH_MAX];		     /* "": the kind has none */
	char provider[OWN_PROBE_POINT_SIZE]; /* of a USDT probe; "": any */
	char point[OWN_PROBE_POINT_SIZE];
	size_t file_at, point_at; /* characters of the text */
	enum own_probe_result result;
	enum own_probe_type type; /* of OWN_VALUE, OWN_EACH and OWN_HELD */
	unsigned int value;	  /* index of its field */
	struct own_probe_field fields[OWN_PROBE_FIELDS];
	unsigned int field_count;
	struct own_probe_token tokens[OWN_PROBE_TOKENS];
	unsigned int token_count; /* 0: no condition */
};

/* Where a program of a probe is attached: what a plan has in place of a row of probe_rows. */
struct own_row {
	struct probe_row row; /* the first member */
	const struct own_target *target;
};

/* An instruction that is probed. */
struct own_site {
	uint64_t offset;    /* in the file */
	uint64_t semaphore; /* offset in the file of the counter that switches it on; 0: none */
	/* of a USDT probe: where each of the probe's fields is */
	struct usdt_operand operands[OWN_PROBE_FIELDS];
};

struct own_target {
	/* file with the code, as this process can open it; of the kernel the function's symbol */
	char path[PATH_MAX];
	int pid;      /* the only process that is probed; 0: all */
	bool stepped; /* probe_is_stepped() */
	unsigned int site_count;
	struct own_site sites[OWN_SITES_MAX];
};

struct own_probes {
	struct own_item {
		struct own_probe probe;
		struct own_target target;
		/* of a context: the probes that end it, in one file or the kernel */
		struct own_probe ends[OWN_ENDS_MAX];
		unsigned int end_count;
		struct own_target end_target;
		/* entry and return, or a context's beginning and end; function NULL: it has none */
		struct own_row rows[2];
		bool detached;	     /* for its cost */
		int64_t call_ns;     /* ns of the kernel for a call, its programs left out */
		int64_t ns, runs;    /* cost of its programs at the last check */
		int64_t rate, share; /* calls a second, tenths of a percent of a CPU, before it
				      * was detached */
	} items[OWN_PROBES_MAX];
	unsigned int count;
	bool events; /* each event is reported by itself */
	bool stacks; /* events have the stacks of their threads */
	/* How they are kept in their budget (live/live_own.c): */
	int stats;	    /* descriptor by which the kernel counts; -1: none is wanted */
	unsigned int users; /* sources that have them attached: --top may begin one more */
	int64_t checked_ns; /* time of the last check; 0: none yet */
};

/* True if some of them are of --probe; of --context. probes may be NULL. */
bool own_probes_report(const struct own_probes *probes);
bool own_probes_hold(const struct own_probes *probes);

/* Fills the rows of each probe, after its target. */
void own_probes_rows_fill(struct own_probes *probes);
/* Adds the rows of those that are not detached to a plan. */
void own_probes_plan(const struct own_probes *probes, struct probe_plan *plan);

/* Parses a probe. 0, or -EINVAL with a usage error that says what is wrong, at which character, and
 * what would be right. text must outlive the probe. */
int own_probe_parse(const char *text, struct own_probe *probe, struct error *e);

/* True if the text of a --context has the form of a context between two probes. */
bool own_context_is(const char *text);
/* Parses a context into a zeroed item; as own_probe_parse(). */
int own_context_parse(const char *text, struct own_item *item, struct error *e);

/* Fills e with words on a part of the probe's text. Returns -EINVAL. */
int own_probe_refuse(const struct own_probe *probe, size_t at, struct error *e, const char *format,
		     ...) __attribute__((format(printf, 4, 5)));

/* True if the probe has a program at the function's entry (or at the tracepoint), or at its return.
 */
bool own_probe_enters(const struct own_probe *probe);
bool own_probe_returns(const struct own_probe *probe);

/* A program knows at which site it runs by the lowest bits of the instruction's address, which no
 * process changes. False: two sites have these in common, but not where the probe's fields are. */
bool own_sites_differ(const struct own_probe *probe, const struct own_target *target);

/* Adds the BPF programs of the probe with that index, for bpf_text/probe.bpf.c: probe_0_entry and
 * probe_0_return, as far as it has them. A context's second probe has the latter. */
void own_item_text_write(const struct own_item *item, unsigned int index, struct text *to);

#endif
