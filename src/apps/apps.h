/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What programs say of their own threads: the request that a thread serves, and what it waits for,
 * in the program's own words. They are read from the memory of the thread's process: by what is
 * known of a program (app_program.h), and by what any program may publish (otel.h).
 *
 * A thread that does not run changes nothing of its own, so what is read of it holds until it is
 * switched: its words are read once for each sequence (struct lookup_hint). The caller checks that
 * the thread was not switched while they were read. Of a thread that runs, or has run since its
 * sample, only what the program says to have been so since before the sample.
 *
 * A program is known by the name of its file, and by symbols that the file exports, which a parser
 * reads; a process that publishes, by a mapping with a name. The addresses in its memory may be a
 * lie, or change meanwhile: all that is read has a limit, and only pages that are in memory are
 * read (proc/user_memory.h).
 */
#ifndef TSNAP_APPS_APPS_H
#define TSNAP_APPS_APPS_H

#include <stdint.h>

#include "proc/lookup_hint.h"
#include "sample/app_lock.h"
#include "sample/sample.h"

struct apps;
struct parser;

/* proc_root must stay. Holds interned names: free it before names_transient_clear(). */
struct apps *apps_new(const char *proc_root);
void apps_free(struct apps *apps);
/* Sets what reads files; NULL, as at first: nothing is found. */
void apps_set_parser(struct apps *apps, struct parser *parser);
/* Reads a thread's pointer to its thread-local storage, as it was when the thread left its CPU. */
typedef bool app_pointer_reader(int64_t tid, uint64_t *pointer);
/* Sets it; NULL, as at first: thread-local variables are not found. */
void apps_set_pointer_reader(struct apps *apps, app_pointer_reader *read);
/* Has a look at a thread's CPU read the record that the pointer at that address leads to, from now
 * on (bpf_text/on_cpu.bpf.c). */
typedef void app_look_setter(void *of, int64_t tid, uint64_t address);
/* Sets it; NULL, as at first: nothing is read of threads that run. */
void apps_set_look_setter(struct apps *apps, app_look_setter *set, void *of);
/* Has statements without the values in them only, as querysum, and no context. */
void apps_hide_texts(struct apps *apps);
void apps_sweep(struct apps *apps, int64_t now_ns, int64_t idle_ns); /* about once a second */

/* Fills the facts of sample->app that needs name. now_ns: monotonic, one for each scan. */
void apps_fill(struct apps *apps, struct sample *sample, const struct lookup_hint *hint,
	       uint64_t needs, int64_t now_ns);

/* What a look at a thread's CPU has read in its memory; no bytes: nothing. */
struct app_look {
	const void *data;
	size_t bytes;
};

/* Fills what holds although the thread runs, or has run since now_ns: what stays with its process,
 * what the program has had unchanged since before then, and what the look has read. */
void apps_fill_running(struct apps *apps, struct sample *sample, uint64_t needs, int64_t now_ns,
		       const struct app_look *look);

/* Takes each variable that --context names and that was not found until now, in words: "variable of
 * --context, id: /usr/bin/x has no variable 'requst'; nearest: request". */
typedef void app_lacking_callback(void *to, const char *words);
void apps_lacking(const struct apps *apps, app_lacking_callback *take, void *to);

/* of: struct apps. What it finds is of this moment, however long the thread has waited. */
app_lock_finder app_lock_find;
app_serves_finder app_serves_find;

#endif
