/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/proc_words.h"
#include "base/cache.h"
#include "proc/proc.h"
#include "base/clock.h"
#include "base/names.h"
#include "sample/needs_table.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES 16384 /* bytes read; later words (after thousands of groups) are absent */

/* Conversions of a word to a value. */
enum word_form {
	FORM_NUMBER,
	FORM_SECOND, /* the second of several numbers */
	FORM_TICKS,  /* ticks of 1/sysconf(_SC_CLK_TCK) s, to us */
	FORM_START,  /* ticks since boot, to UTC in us */
	FORM_PAGES,  /* to bytes */
	FORM_KB,     /* to bytes */
	FORM_HEX,
	FORM_POLICY,
	FORM_TEXT, /* the rest of the line */
};

/* Columns and their words, proc(5). A word of stat is found by its position, which is the number of
 * the column's slot. */
static const struct word_row {
	const char *column, *key; /* key: NULL in stat */
	enum word_form form;
} rows[] = {
	{"pgrp", NULL, FORM_NUMBER},
	{"session", NULL, FORM_NUMBER},
	{"tty_nr", NULL, FORM_NUMBER},
	{"tpgid", NULL, FORM_NUMBER},
	{"minflt", NULL, FORM_NUMBER},
	{"cminflt", NULL, FORM_NUMBER},
	{"majflt", NULL, FORM_NUMBER},
	{"cmajflt", NULL, FORM_NUMBER},
	{"utime_us", NULL, FORM_TICKS},
	{"stime_us", NULL, FORM_TICKS},
	{"cutime_us", NULL, FORM_TICKS},
	{"cstime_us", NULL, FORM_TICKS},
	{"priority", NULL, FORM_NUMBER},
	{"nice", NULL, FORM_NUMBER},
	{"num_threads", NULL, FORM_NUMBER},
	{"start_time", NULL, FORM_START},
	{"vsize_bytes", NULL, FORM_NUMBER},
	{"rss_bytes", NULL, FORM_PAGES},
	{"rss_limit_bytes", NULL, FORM_NUMBER},
	{"exit_signal", NULL, FORM_NUMBER},
	{"rt_priority", NULL, FORM_NUMBER},
	{"policy", NULL, FORM_POLICY},
	{"blkio_us", NULL, FORM_TICKS},
	{"guest_us", NULL, FORM_TICKS},
	{"cguest_us", NULL, FORM_TICKS},
	{"exit_code", NULL, FORM_NUMBER},

	{"umask", "Umask", FORM_TEXT},
	{"ngid", "Ngid", FORM_NUMBER},
	{"tracer_pid", "TracerPid", FORM_NUMBER},
	{"ruid", "Uid", FORM_NUMBER},
	{"rgid", "Gid", FORM_NUMBER},
	{"gid", "Gid", FORM_SECOND},
	{"fdsize", "FDSize", FORM_NUMBER},
	{"groups", "Groups", FORM_TEXT},
	{"nstgid", "NStgid", FORM_TEXT},
	{"nspid", "NSpid", FORM_TEXT},
	{"nspgid", "NSpgid", FORM_TEXT},
	{"nssid", "NSsid", FORM_TEXT},
	{"vm_peak_bytes", "VmPeak", FORM_KB},
	{"vm_locked_bytes", "VmLck", FORM_KB},
	{"vm_pinned_bytes", "VmPin", FORM_KB},
	{"rss_peak_bytes", "VmHWM", FORM_KB},
	{"rss_anon_bytes", "RssAnon", FORM_KB},
	{"rss_file_bytes", "RssFile", FORM_KB},
	{"rss_shmem_bytes", "RssShmem", FORM_KB},
	{"vm_data_bytes", "VmData", FORM_KB},
	{"vm_stack_bytes", "VmStk", FORM_KB},
	{"vm_exe_bytes", "VmExe", FORM_KB},
	{"vm_lib_bytes", "VmLib", FORM_KB},
	{"vm_pte_bytes", "VmPTE", FORM_KB},
	{"vm_pmd_bytes", "VmPMD", FORM_KB},
	{"vm_swap_bytes", "VmSwap", FORM_KB},
	{"hugetlb_bytes", "HugetlbPages", FORM_KB},
	{"sigq", "SigQ", FORM_TEXT},
	{"sigpnd", "SigPnd", FORM_HEX},
	{"shdpnd", "ShdPnd", FORM_HEX},
	{"sigblk", "SigBlk", FORM_HEX},
	{"sigign", "SigIgn", FORM_HEX},
	{"sigcgt", "SigCgt", FORM_HEX},
	{"capinh", "CapInh", FORM_HEX},
	{"capprm", "CapPrm", FORM_HEX},
	{"capeff", "CapEff", FORM_HEX},
	{"capbnd", "CapBnd", FORM_HEX},
	{"capamb", "CapAmb", FORM_HEX},
	{"seccomp", "Seccomp", FORM_NUMBER},
	{"cpus_allowed", "Cpus_allowed", FORM_TEXT},
	{"cpus_allowed_list", "Cpus_allowed_list", FORM_TEXT},
	{"mems_allowed", "Mems_allowed", FORM_TEXT},
	{"mems_allowed_list", "Mems_allowed_list", FORM_TEXT},

	{"rchar_bytes", "rchar", FORM_NUMBER},
	{"wchar_bytes", "wchar", FORM_NUMBER},
	{"syscr", "syscr", FORM_NUMBER},
	{"syscw", "syscw", FORM_NUMBER},
	{"read_bytes", "read_bytes", FORM_NUMBER},
	{"write_bytes", "write_bytes", FORM_NUMBER},
	{"cancelled_write_bytes", "cancelled_write_bytes", FORM_NUMBER},
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

struct proc_words_entry {
	struct cache_entry entry; /* key: tid */
	int64_t start_ns;
	struct proc_values values;
};

/* Column of each row; row of each slot. */
static const struct column *row_columns[ROW_COUNT];
static const struct word_row *slot_rows[PROC_VALUES_SLOTS];
static int64_t tick_us, page_bytes, boot_us;

static void tables_make(void)
{
	if (tick_us)
		return;
	for (size_t i = 0; i < ROW_COUNT; i++) {
		row_columns[i] = sample_column_find(rows[i].column);
		slot_rows[proc_values_slot(row_columns[i])] = &rows[i];
	}
	tick_us = US_PER_SECOND / sysconf(_SC_CLK_TCK);
	page_bytes = sysconf(_SC_PAGESIZE);
	boot_us = clock_utc_us() - clock_boot_ns() / NS_PER_US;
}

void proc_words_init(struct cache *threads)
{
	*threads = (struct cache){.entry_bytes = sizeof(struct proc_words_entry),
				  .entries_max = PROC_WORDS_MAX};
}

static int64_t times(int64_t number, int64_t unit)
{
	return __builtin_mul_overflow(number, unit, &number) ? ABSENT : number;
}

/* Parses a number of 64 bits; a number that does not fit (an unlimited limit) is absent. */
static int64_t number_of(const char *word)
{
	const char *digits = word + (*word == '-');
	int64_t number;

	if (!isdigit((unsigned char)*digits))
		return ABSENT;
	errno = 0;
	number = strtoll(word, NULL, 10);
	return errno ? ABSENT : number;
}

static int64_t hex_of(const char *word)
{
	if (!isxdigit((unsigned char)*word) || strspn(word, "0123456789abcdefABCDEF") > 16)
		return ABSENT;
	return (int64_t)strtoull(word, NULL, 16);
}

/* Name of a scheduling policy of include/uapi/linux/sched.h; 4 was never used. */
static const char *policy_of(int64_t policy)
{
	static const char *const names[] = {"OTHER", "FIFO", "RR",	 "BATCH",
					    NULL,    "IDLE", "DEADLINE", "EXT"};

	return policy >= 0 && policy < (int64_t)(sizeof(names) / sizeof(names[0]))
		       ? name_transient_string(names[policy])
		       : NULL;
}

static const char *text_of(char *words)
{
	size_t length = strlen(words);

	while (length && isspace((unsigned char)words[length - 1]))
		length--;
	for (size_t i = 0; i < length; i++)
		if (words[i] == '\t')
			words[i] = ' ';
	return length ? name_transient(words, length) : NULL;
}

static union value value_of(enum word_form form, char *words)
{
	int64_t number = form == FORM_TEXT || form == FORM_HEX ? 0 : number_of(words);
	const char *second;

	switch (form) {
	case FORM_SECOND:
		second = words + strcspn(words, "\t ");
		return (union value){.number = number_of(second + (*second != '\0'))};
	case FORM_TICKS:
		return (union value){.number = number == ABSENT ? ABSENT : times(number, tick_us)};
	case FORM_START:
		number = number == ABSENT ? ABSENT : times(number, tick_us);
		return (union value){.number = number == ABSENT || number > INT64_MAX - boot_us
						       ? ABSENT
						       : number + boot_us};
	case FORM_PAGES:
		return (union value){.number =
					     number == ABSENT ? ABSENT : times(number, page_bytes)};
	case FORM_KB:
		return (union value){.number = number == ABSENT ? ABSENT : times(number, 1024)};
	case FORM_HEX:
		return (union value){.number = hex_of(words)};
	case FORM_POLICY:
		return (union value){.text = policy_of(number)};
	case FORM_TEXT:
		return (union value){.text = text_of(words)};
	default:
		return (union value){.number = number};
	}
}

/* Parses stat. comm, its second word, may contain anything; the text after it contains no
 * parenthesis. */
static void stat_parse(char *text, struct proc_values *values)
{
	char *at = strrchr(text, ')'), *save = NULL;
	size_t slot = 3;

	if (!at)
		return;
	for (at = strtok_r(at + 1, " \n", &save); at && slot < PROC_VALUES_SLOTS;
	     at = strtok_r(NULL, " \n", &save), slot++)
		if (slot_rows[slot] && !slot_rows[slot]->key)
			values->slots[slot] = value_of(slot_rows[slot]->form, at);
}

/* Parses a line "Key: words". Rows have the order of the lines, so that the row is mostly the one
 * after the last. */
static void line_parse(uint64_t need, char *line, size_t *next, struct proc_values *values)
{
	size_t length = strcspn(line, ":");
	char *words = line + length;

	if (!*words)
		return;
	words += 1 + strspn(words + 1, " \t");
	for (size_t turn = 0, i = *next; turn < ROW_COUNT; turn++, i = (i + 1) % ROW_COUNT) {
		if (row_columns[i]->needs != need || strlen(rows[i].key) != length ||
		    strncmp(rows[i].key, line, length) != 0)
			continue;
		values->slots[proc_values_slot(row_columns[i])] = value_of(rows[i].form, words);
		*next = (i + 1) % ROW_COUNT;
		/* a line can have two columns, next to each other */
		if (row_columns[*next]->needs != need || strcmp(rows[*next].key, rows[i].key) != 0)
			return;
	}
}

void proc_words_parse(uint64_t need, char *text, struct proc_values *values)
{
	size_t next = 0;
	char *end;

	tables_make();
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (row_columns[i]->needs == need) {
			size_t slot = proc_values_slot(row_columns[i]);

			values->slots[slot] = proc_values_absent()->slots[slot];
		}
	if (need == NEED_STAT) {
		stat_parse(text, values);
		return;
	}
	for (; (end = strchr(text, '\n')); text = end + 1) { /* ignores a line that was cut off */
		*end = '\0';
		line_parse(need, text, &next, values);
	}
}

void proc_words_fill(struct cache *threads, const char *root, const struct sample *sample,
		     uint64_t needs, uint64_t renew, int64_t now_ns)
{
	bool added;
	struct proc_words_entry *kept =
		cache_get(threads, (uint64_t)sample->thread.tid, now_ns, &added);
	char text[FILE_BYTES];

	if (added || kept->start_ns != sample->thread.start_ns) {
		kept->start_ns = sample->thread.start_ns;
		kept->values = *proc_values_absent();
		renew = needs;
	}
	for (size_t i = 0; i < needs_row_count; i++) {
		const struct needs_row *file = &needs_rows[i];

		if (!(renew & file->need & NEEDS_PROC_VALUES))
			continue;
		if (proc_file_read(root, sample->thread.pid, sample->thread.tid, file->name, text,
				   sizeof(text)) < 0)
			text[0] = '\0';
		proc_words_parse(file->need, text, &kept->values);
	}
	*sample->proc_values = kept->values;
}
