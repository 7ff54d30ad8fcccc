/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/goroutines.h"
#include "base/shown_pid.h"
#include "unwind/elf/process_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AUXV_MAX 64
#define PROGRAM 0 /* the file's number for the parser */

/* Finds the distance of the program from its file's addresses: the entry point as the kernel tells
 * it, less the file's. */
static bool distance_find(const char *proc_root, int64_t pid, const struct elf_file *elf,
			  uint64_t *distance)
{
	Elf64_auxv_t vector[AUXV_MAX];
	char path[PATH_MAX];
	uint64_t entry;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "%s/%lld/auxv", proc_root, (long long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd >= 0 ? read(fd, vector, sizeof(vector)) : -1;
	if (fd >= 0)
		close(fd);
	if (got < 0 || elf_file_take(elf, offsetof(Elf64_Ehdr, e_entry), &entry, sizeof(entry)))
		return false;
	for (size_t i = 0; i < (size_t)got / sizeof(vector[0]); i++)
		if (vector[i].a_type == AT_ENTRY) {
			*distance = vector[i].a_un.a_val - entry;
			return true;
		}
	return false;
}

static int place_ask(void *of, uint64_t address, struct file_go_frame_answer *answer)
{
	return file_go_frame_ask(of, PROGRAM, address, answer);
}

static const char *program_refused(const struct file_go_answer *answer)
{
	if (!answer->is_go)
		return "it is no program of Go";
	if (!answer->has_functions)
		return "its table of functions (.gopclntab) is none that is known";
	if (answer->program.has_symbols && !answer->program.list)
		return "their list is none that is known of Go 1.19 and later";
	if (!answer->program.list || !answer->program.count)
		return "it was linked without symbols (-s, strip), so that their list can't be "
		       "found";
	return NULL;
}

/* Reads all of the program behind the descriptor. */
static int program_read(struct goroutines *goroutines, const char *proc_root, int64_t pid, int fd,
			struct parser *parser, struct error *e)
{
	struct goroutine_source source = {.proc_root = proc_root,
					  /* /proc has other ids than system calls take */
					  .by_file = shown_pid() != getpid(),
					  .pid = pid,
					  .ask = place_ask,
					  .of = parser};
	struct file_go_answer answer = {.is_go = false};
	struct elf_file elf = {.fd = fd};
	struct stat status;
	const char *why;
	int err;

	if (fstat(fd, &status))
		return goroutines_refuse(e, errno, pid, "its program could not be looked at");
	elf.bytes = (uint64_t)status.st_size;
	err = file_head_ask(parser, &elf);
	if (err == -ENOEXEC)
		return goroutines_refuse(e, ENOEXEC, pid, "its program is no ELF file");
	if (!err)
		err = file_go_ask(parser, PROGRAM, &elf, &answer);
	if (err)
		return goroutines_refuse(e, -err, pid, "its program could not be parsed");
	why = program_refused(&answer);
	if (why)
		return goroutines_refuse(e, ENOTSUP, pid, why);
	if (!distance_find(proc_root, pid, &elf, &source.distance))
		return goroutines_refuse(e, EACCES, pid,
					 "where its program lies in memory can't be read");
	memcpy(goroutines->version, answer.program.version, GO_VERSION_SIZE);
	source.program = &answer.program;
	return goroutines_list(goroutines, &source, e);
}

int goroutines_read(struct goroutines *goroutines, const char *proc_root, int64_t pid,
		    struct parser *parser, struct error *e)
{
	char path[PATH_MAX];
	int fd, err;

	snprintf(path, sizeof(path), "%s/%lld/exe", proc_root, (long long)pid);
	fd = process_link_open(path);
	if (fd < 0)
		return error_set(e, -fd, EXIT_FAILED, "goroutines of process %lld: %s: %s",
				 (long long)pid, path, strerror(-fd));
	err = program_read(goroutines, proc_root, pid, fd, parser, e);
	close(fd);
	return err;
}
