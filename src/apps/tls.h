/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread-local variables of another process: where the copy of a thread is, by the thread's pointer
 * register.
 *
 * The program's own block, and those that the dynamic linker put beside it, are at one distance
 * from the thread pointer in all threads. A block of another library is made for each thread when
 * it uses it first (glibc) or when the library is loaded (musl); the thread's vector, the dtv, has
 * its address. Its layout is that of glibc's sysdeps/x86_64/nptl/tls.h, sysdeps/aarch64/nptl/tls.h
 * and generic/dl-dtv.h, the same since 2.3, and of musl's src/internal/pthread_impl.h and
 * src/thread/__tls_get_addr.c.
 *
 * glibc gives the number of a library that is gone to another one, and a thread has the old block
 * under it until it uses the new one. So the dynamic linker's list of libraries with such variables
 * (struct dtv_slotinfo_list) says from which generation of vectors on the number is the library's.
 * It also has the number where no relocation names the variable. libthread_db finds the list by the
 * same symbols.
 */
#ifndef TSNAP_APPS_TLS_H
#define TSNAP_APPS_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/app_modules.h"
#include "unwind/elf/elf_variable.h"

struct app_reader;

/* What is known of a process' dynamic linker. */
struct tls_linker {
	bool glibc, musl; /* what it is known to be of, by a symbol that no other one has */
	uint64_t list;	  /* address of glibc's pointer to the list; 0: not known */
};

/* known: as for app_variable_find(). */
void tls_linker_find(struct app_reader *reader, const struct app_modules *modules,
		     struct cache *known, struct tls_linker *linker);

/* Where a variable is, in all threads of a process. */
struct tls_place {
	bool found;
	bool musl;
	uint64_t module;     /* number of the block's module; 0: it is at a distance */
	int64_t offset;	     /* from the block's begin, or from the thread pointer */
	uint64_t generation; /* of vectors, from which on it is that module's number */
};

/* Finds the place of a variable of a file. distance: of the file's addresses in the process;
 * program: the file is the program itself. */
void tls_place_find(struct app_reader *reader, const struct elf_variable *variable,
		    uint64_t distance, bool program, const struct tls_linker *linker,
		    struct tls_place *place);

/* Finds the variable of the thread with that pointer. 0: the thread has none yet, or it can't be
 * read. */
uint64_t tls_address(struct app_reader *reader, const struct tls_place *place, uint64_t pointer);

#endif
