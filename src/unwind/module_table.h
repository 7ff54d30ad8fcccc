/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files with code, each opened once however many processes map it, and known by device, inode, time
 * and size from fstat(2); their unwind tables; also the vDSO, by its bytes, and code that is in no
 * file (JIT), one module for each process.
 */
#ifndef TSNAP_UNWIND_MODULE_TABLE_H
#define TSNAP_UNWIND_MODULE_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/index.h"
#include "parser/parser.h"
#include "unwind/elf/elf_exports.h"
#include "unwind/frame_source.h"

#define MODULES_MAX 2048	 /* modules open at once */
#define MODULES_KNOWN_MAX 8192	 /* closed ones, too: their numbers and names stay */
#define MODULES_PROCESS_MAX 1024 /* modules of one process: it may make files without end */
#define OWNER_UNKNOWN (-1)
#define MODULE_NONE UINT32_MAX
#define MODULE_PYTHON (UINT32_MAX - 2)	    /* interpreted function, in no file */
#define MODULE_MARK (UINT32_MAX - 3)	    /* no function: what is between two frames */
#define MODULE_TABLES_BYTES_MAX (24u << 20) /* the files' own tables in memory */
#define MODULE_ROWS_BYTES_MAX (12u << 20)

/* Kinds of frames, as reports show them. */
enum frame_kind {
	FRAME_PROGRAM,
	FRAME_LIBRARY,
	FRAME_JIT,
	FRAME_KERNEL,
	FRAME_PYTHON,
};

/* The unwind table of a file, which a parser reads. Rows are kept here once they were requested;
 * the parser keeps the table's own bytes as long as there is memory for them. */
struct frame_table {
	const struct machine *machine;
	uint64_t generation; /* generation of the parser that has read the file; 0: none has */
	size_t read_bytes;   /* bytes that the parser holds of the file */
	unsigned int ended;  /* parsers that ended over it */
	bool without;	     /* the file has no table, or a bad one */
	struct keyed rows;   /* struct frame_row, by address */
	struct frame_operation *operations; /* of the rows' expressions */
	size_t operation_count, operation_capacity;
};

struct module {
	uint32_t number;
	uint64_t serial;   /* unique, even if another module gets the number */
	uint64_t key;	   /* hash by which module_table.at has it */
	int64_t known_pid; /* process that the module was added for */
	enum frame_kind kind;
	bool libc;	     /* the C library, its threads, or the dynamic linker */
	uint64_t identity;   /* hash that the file's copies share, in every run; else key */
	char *path, *name;   /* path as the first process saw it; its last part */
	char *location;	     /* PATH@BUILD-ID, as the column ufiles has it; NULL: in no file */
	int fd;		     /* -1: in no file */
	char *image;	     /* the vDSO's bytes, or NULL */
	struct elf_file elf; /* constant once it is filled */
	int64_t tid;	     /* thread whose root has the file; JIT: of the process */
	int64_t uid;	     /* owner of the file, or OWNER_UNKNOWN; JIT: of the process */
	int64_t pid;	     /* JIT: the process; its first thread, and tid, may have ended */
	struct frame_table table;
	int64_t used;	   /* number of the last use of the unwind table, from uses */
	int64_t walked_ns; /* time when a walk came by last */
	uint32_t mapped;   /* known mappings of the module */
	bool unmapped;	   /* no mappings were known at the last sweep */
	bool closing;	   /* module_table_close() will close it */
	bool closed;	   /* file and tables are closed; a walk opens them again */
	bool nobody;	   /* no module: the number is free */
	struct {
		uint64_t generation; /* parser generation that knows the file; 0: none */
		unsigned int ended;  /* parsers that ended over it */
		bool cut;	     /* the file has more functions than are kept */
		bool refused;	     /* the map of a JIT's functions was not believed */
	} named;		     /* stack_names' own */
	unsigned int ended;	     /* parsers that ended over the file otherwise */
	bool has_exports;	     /* exports are those of the file */
	struct runtime_exports exports;
};

struct file_returns_answer;

struct module_table {
	struct parser *parser; /* reads unwind tables; NULL: none is read */
	struct index at;       /* hash of what a module is known by, to number */
	struct module *modules[MODULES_KNOWN_MAX];
	uint32_t count; /* numbers that were given, of which some may have no module now */
	uint32_t *free; /* numbers without a module */
	size_t free_count, free_capacity;
	uint64_t serials;
	uint32_t open_count, open_max;
	int64_t spent_ns, spent_max_ns; /* time reading files since last scan; limit, 0: none */
	int64_t walked_pid;		/* set by walks: process that files are read for now */
	struct index spent_by; /* pids to time spent for them; also pids that were refused */
	struct index known_by; /* pids to counts of modules that were added for them */
	int64_t share_ns;      /* share of spent_max_ns for one process */
	int64_t uses;
	bool without_tables; /* no unwind table is read: walks follow frame pointers */
	uint64_t refused;    /* times that a file was not opened, by these limits */
	uint64_t shrunk; /* unwind tables given back for want of memory, read again when needed */
};

/* Makes an empty table, which takes a share of all descriptors. parser: not owned; NULL: no unwind
 * table is read. */
void module_table_init(struct module_table *table, struct parser *parser);
void module_table_clear(struct module_table *table);

/* Marks modules as `closing`: if this is a sweep (swept), those that no process has mapped now and
 * at the sweep before; and, if no more files can be opened, as many as were refused, those first
 * that no walk has come by for longest. Returns whether any are marked. module_table_close() closes
 * them; nobody may look for names in them then. */
bool module_table_mark(struct module_table *table, bool swept);
void module_table_close(struct module_table *table);
/* True if there is no number for another module. */
bool module_table_full(const struct module_table *table);
/* Marks half of the modules as `closing`: first closed ones, of these first those that no walk has
 * come by for longest. module_table_forget() forgets them and frees their numbers for new modules:
 * only struct mapping may have kept one. */
void module_table_mark_old(struct module_table *table);
void module_table_forget(struct module_table *table);
/* Begins to count time anew. spent_max_ns: time that may go into reading files in the next scan.
 * One process has all of it where no other one wanted any in this scan, else a share, so that a
 * process with many or large files keeps nobody waiting but itself. */
void module_table_next_scan(struct module_table *table, int64_t spent_max_ns);
/* Adds time that was spent on walked_pid. */
void module_table_spend(struct module_table *table, int64_t ns);
/* True if a file may be opened now; if not, it is counted in refused. */
bool module_table_may_open(struct module_table *table);

/* Returns the module of a file, given by an open descriptor, which is taken over (closed if the
 * file is known already or no ELF file of this machine). tid: of a process that maps it.
 * MODULE_NONE where the file can't be used, or not now, which is counted in refused. */
uint32_t module_of_file(struct module_table *table, int fd, const char *path, int64_t tid);
uint32_t module_of_image(struct module_table *table, const char *image, size_t bytes,
			 const char *name);
/* Returns the module of a process' code that is in no file. start: with pid, the process' identity;
 * uid: of its owner. */
uint32_t module_of_process(struct module_table *table, int64_t pid, int64_t tid, uint64_t start,
			   int64_t uid);

/* Hash of the file's device, inode, time and size, from fstat(2). */
uint64_t module_file_key(const struct stat *file);
/* Owner of the file of an open descriptor, or OWNER_UNKNOWN. file: from fstat(2) of it. */
int64_t module_file_owner(int fd, const struct stat *file);
/* Hash that copies of a file by the same owner have in every run; elf has a build-id. */
uint64_t module_identity(const struct elf_file *elf, int64_t owner);
/* Returns PATH@BUILD-ID, without bytes that a terminal obeys. The caller frees it. */
char *module_location_text(const char *path, const struct elf_file *elf);

/* Returns what the file exports, requested once; all 0 as long as no parser could read it, and for
 * an image. */
const struct runtime_exports *module_exports(struct module_table *table, struct module *module);
/* Returns the unwind row at an address, or NULL. Valid until the next call. */
const struct frame_row *module_row(struct module_table *table, struct module *module,
				   uint64_t address);
/* Requests where x86-64 code without a row returns, from an address on (file_returns_request()).
 * Returns 0; -EAGAIN: no parser could read it now, which is counted in refused; or another -errno:
 * none will. */
int module_returns(struct module_table *table, struct module *module, uint64_t address, bool exact,
		   struct file_returns_answer *answer);
/* Returns a row for an address without one, to be filled from another source than the table. Valid
 * until the next call. */
struct frame_row *module_row_other(struct module_table *table, struct module *module,
				   uint64_t address);

#endif
