/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that say something of their threads: one file for each, which ends with the program's
 * entry. The table of entries is in apps.c, with all that knows no program.
 */
#ifndef TSNAP_APPS_APP_PROGRAM_H
#define TSNAP_APPS_APP_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/present_pages.h"
#include "sample/app_lock.h"
#include "sample/sample.h"

#define APP_SYMBOLS_MAX 16
#define APP_LAYOUT_MAX 8
#define APP_CONSTANTS_MAX 16
#define APP_TEXT_BYTES 1024 /* limit of a text, with its NUL */
#define APP_NEAR_BYTES 1024 /* are read around a short text */

struct apps;
struct file_symbols_answer;

/* A text of the program that never changes. */
struct app_constant {
	uint64_t address; /* 0: none */
	const char *text;
};

/* A process of a program that is known, and the thread that is read. */
struct app_reader {
	struct apps *apps;
	int64_t pid, tid, now_ns;
	int64_t since_ns;  /* since when the thread has not run; 0: not known */
	int64_t inner_pid; /* id of the process in its own pid namespace */
	int64_t parent;	   /* its parent process */
	bool parent_same;  /* that runs the same program: nothing is read of another one */
	/* addresses of the program's symbols in the process; 0: the file exports no such name */
	uint64_t symbols[APP_SYMBOLS_MAX];
	/* the 8 bytes that were there when app_words() read them; 0 also where there is no symbol,
	 * or they can't be read */
	uint64_t words[APP_SYMBOLS_MAX];
	/* what learn() found in the file */
	int64_t layout[APP_LAYOUT_MAX];
	const void *version; /* what take() found out */
	/* what read() keeps with the process; zeroed at first */
	uint64_t kept_words[4];
	const char *kept[3];
	struct app_constant constants[APP_CONSTANTS_MAX];
	enum { MEMORY_UNASKED, MEMORY_READY, MEMORY_REFUSED } state;
	int64_t free_ns;  /* when its memory was last known not to be locked */
	uint64_t pointer; /* what app_pointer() has found */
	bool asked_pointer;
	bool old_pointer;	    /* pointer is what it was before the thread ran last */
	struct present_pages pages; /* of the thread that is read now */
	/* what is around the last short text of that thread */
	struct {
		uint64_t from;
		size_t count;
		char bytes[APP_NEAR_BYTES];
	} near;
	bool open; /* mem and pagemap are open descriptors of the process' memory */
	int mem, pagemap;
};

struct app_program {
	const char *const *names;   /* names of its files, NULL at the end */
	const char *const *symbols; /* names of up to APP_SYMBOLS_MAX symbols, NULL at the end */
	/* Finds the program's layout in the bytes that its file has at each symbol; all are 0 at
	 * first. False: it is none that is known. NULL: there is nothing to be found. */
	bool (*learn)(const struct file_symbols_answer *symbols, int64_t layout[APP_LAYOUT_MAX]);
	/* Finds out once a process, and seldom again, what reader->version is. NULL: nothing. */
	void (*take)(struct app_reader *reader);
	/* Fills the facts that needs name, all of them absent before. False: the process is no such
	 * program, or not yet. */
	bool (*read)(struct app_reader *reader, uint64_t needs, struct sample_app *facts);
	/* Does as read, of a thread that may run: fills what has been so since before before_us, in
	 * microseconds since 1970 by the program's own word, and still is. NULL: the program does
	 * not say since when. */
	bool (*read_running)(struct app_reader *reader, uint64_t needs, struct sample_app *facts,
			     int64_t before_us);
	/* Does as app_lock_finder; NULL: the program shows nothing of that. */
	bool (*lock)(struct app_reader *reader, struct app_lock *lock);
	bool (*serves)(struct app_reader *reader,
		       bool *serves); /* as app_serves_finder; NULL: likewise */
};

struct parser;

struct mapping;

/* What reads files and messages. */
struct parser *app_parser(struct app_reader *reader);
/* Opens a file that the process has mapped. Returns a descriptor, which the caller closes, or
 * -errno. */
int app_file_open(struct app_reader *reader, const struct mapping *mapping);
/* Reads exactly that many bytes of the process' memory. */
bool app_read(struct app_reader *reader, uint64_t address, void *to, size_t bytes);
/* Reads as many bytes as are in memory from there on. Returns their count. */
size_t app_read_some(struct app_reader *reader, uint64_t address, void *to, size_t bytes);
/* Reads reader->words. */
void app_words(struct app_reader *reader);
/* Reads a text of up to APP_TEXT_BYTES, transient. What is longer is cut, at the end of a character
 * of UTF-8. NULL: there is none, or it is empty. */
const char *app_text(struct app_reader *reader, uint64_t address);
/* The same of a text that has that many bytes. */
const char *app_text_part(struct app_reader *reader, uint64_t address, uint64_t bytes);
/* The same of a short text, of up to that many bytes or up to its NUL: what is around it is read,
 * too, as a program has other such texts of the thread there. */
const char *app_text_near(struct app_reader *reader, uint64_t address, uint64_t bytes);
/* The thread's pointer to its thread-local storage; 0: it is not known. It stays the same until an
 * exec, so an earlier one may do for read(), which can prove it: app_pointer_changed() finds
 * whether it is another one now, and what the next app_pointer() returns. */
uint64_t app_pointer(struct app_reader *reader);
bool app_pointer_changed(struct app_reader *reader);
/* Reads memory that the process shares with its parent, from which it was forked: what the process
 * itself has not used yet may be in no page of its own. */
bool app_read_shared(struct app_reader *reader, uint64_t address, void *to, size_t bytes);
/* Reads memory that the process shares with its parent and others of that one's, at the same
 * address, and in which only the thread itself writes what is read: one read serves for all of them
 * that have not run since. What is read must show whose it is. */
bool app_read_kin(struct app_reader *reader, uint64_t address, void *to, size_t bytes);
/* The child of the process' parent that has this id in the process' pid namespace; 0: there is
 * none. */
int64_t app_sibling(struct app_reader *reader, int64_t inner_pid);
/* Reads the first bytes of a file; path: relative to the process' working directory. */
bool app_file_begin(struct app_reader *reader, const char *path, void *to, size_t bytes);

extern const struct app_program mariadb_program, php_program, postgres_program;

#endif
