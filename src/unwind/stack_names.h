/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames by number, each kept once, and their functions' names. A thread of its own looks for
 * names, so that nobody waits for a large file: until a name is there, a frame is shown as its
 * module and offset.
 *
 * All calls are of one thread; the names handed out are transient (base/names.h), and live until
 * stack_names_clear() or stack_names_forget().
 */
#ifndef TSNAP_UNWIND_STACK_NAMES_H
#define TSNAP_UNWIND_STACK_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/function_name.h"
#include "unwind/kernel_stack.h"
#include "unwind/module_table.h"
#include "unwind/unwinder.h"

#define FRAMES_MAX 131072
#define FRAME_REFUSED UINT32_MAX

struct stack_names;

/* Counts since the start: files with more functions than are kept; processes whose map of a JIT's
 * functions was not believed; tables of functions that were given back for want of memory, and are
 * read again when needed. */
struct stack_names_counts {
	uint64_t cut, refused, unloaded;
};

/* Names of functions of modules, which a parser looks for in files: slow at first. To be used by
 * one thread. */
struct symbols_cache {
	const char *proc_root;
	struct parser *parser; /* NULL: no name is known */
	struct stack_names_counts counts;
};

/* Fills name, printable for people, cut where it is long. False where the function is not known. */
bool symbols_name(struct symbols_cache *cache, struct module *module, uint64_t address,
		  char name[FUNCTION_NAME_SIZE]);
/* Has the parser forget all modules, before their numbers are reused. */
void symbols_cache_done(struct symbols_cache *cache);

/* A frame's function and module, as far as they are known. */
struct frame_view {
	const char *name;	     /* function; module+0xOFFSET where it is not known (yet) */
	const struct module *module; /* NULL: in no module */
	enum frame_kind kind;
	bool libc;  /* the frame is in the C library */
	bool final; /* name stays what it is */
};

/* Makes an empty struct. parser: not owned; NULL: no names are known. */
struct stack_names *stack_names_new(const char *proc_root, struct module_table *modules,
				    struct parser *parser);
void stack_names_free(struct stack_names *names);
/* Forgets all frames, whose numbers become invalid, and lets go of the modules. No thread is left.
 */
void stack_names_clear(struct stack_names *names);

/* Forgets all frames, whose numbers become invalid, but nothing that was read of files. */
void stack_names_forget(struct stack_names *names);

/* Closes what was opened for modules that are closing. False: names are being looked for now, and
 * nothing may be closed. */
bool stack_names_close(struct stack_names *names);

/* Returns the frame's number, or FRAME_REFUSED: there are FRAMES_MAX already. */
uint32_t stack_names_frame(struct stack_names *names, const struct frame *frame);
bool stack_names_full(const struct stack_names *names);
uint32_t stack_names_kernel(struct stack_names *names, const char *function);

/* Returns what is known of a frame now; a name that is not known is queued. */
struct frame_view stack_names_get(struct stack_names *names, uint32_t frame);

/* Returns them as the thread that looks for names had them last. */
struct stack_names_counts stack_names_count(struct stack_names *names);

/* Has another thread read the names of the kernel's functions, once. */
void stack_names_want_kernel(struct stack_names *names);
/* Returns the kernel's functions, and waits for them until until_ns (monotonic). NULL: not there
 * yet; empty: they can't be read. */
const struct kernel_symbols *stack_names_kernel_symbols(struct stack_names *names,
							int64_t until_ns);

/* Waits until all that was queued is known, or until until_ns (monotonic). Returns whether it
 * is. */
bool stack_names_wait(struct stack_names *names, int64_t until_ns);

#endif
