/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/goroutines.h"
#include "base/memory.h"
#include "unwind/elf/process_file.h"
#include "unwind/runtime/goroutine_request.h"

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
#define ANSWER_NS (10 * 1000000000ll)
#define PROGRAM 0 /* number by which the parser knows the file */

/* Finds the distance of the program from its file's addresses: the entry point as the kernel
 * reports it, less the file's. */
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

/* Makes a request that has an answer of so many bytes. 0 or -errno. */
static int request_make(struct parser *parser, const struct goroutine_request *request, int memory,
			void *answer, size_t bytes)
{
	const struct parser_message message = {.head = request,
					       .head_bytes = sizeof(*request),
					       .fds = {memory},
					       .fd_count = memory >= 0};
	ssize_t got = parser_request(parser, &message, answer, bytes, ANSWER_NS);

	return got < 0 ? (int)got : (size_t)got == bytes ? 0 : -EBADMSG;
}

static int refuse(struct error *e, int err, int64_t pid, const char *why)
{
	return error_set(e, err, EXIT_FAILED, "goroutines of process %lld: %s", (long long)pid,
			 why);
}

/* Names the functions of a group's stack. 0 or -errno. */
static int frames_name(struct goroutines *goroutines, struct parser *parser,
		       const struct goroutine_group *group)
{
	struct file_go_frame_answer answer;
	int err;

	for (uint32_t i = 0; i < group->frame_count; i++) {
		if (index_find(&goroutines->locations, group->frames[i]))
			continue;
		err = file_go_frame_request(parser, PROGRAM, group->frames[i], &answer);
		if (err)
			return err;
		goroutine_location_add(goroutines, group->frames[i], &answer);
	}
	return 0;
}

static int group_take(struct goroutines *goroutines, struct parser *parser, uint64_t number)
{
	const struct goroutine_request request = {.kind = GOROUTINES_GROUP, .group = number};
	struct goroutine_group_answer answer;
	struct goroutine_group *group;
	int err = request_make(parser, &request, -1, &answer, sizeof(answer));

	if (!err && (answer.group.frame_count > GOROUTINE_FRAMES_MAX ||
		     answer.group.reason >= GOROUTINE_REASONS_MAX))
		err = -EBADMSG;
	if (err)
		return err;
	goroutines->groups = memory_grow(goroutines->groups, &goroutines->group_capacity,
					 goroutines->group_count + 1, sizeof(*goroutines->groups));
	group = &goroutines->groups[goroutines->group_count++];
	*group = answer.group;
	group->frames = memory_get((group->frame_count + 1) * sizeof(*group->frames));
	memcpy(group->frames, answer.frames, group->frame_count * sizeof(*group->frames));
	return frames_name(goroutines, parser, group);
}

/* Has the parser read all goroutines, and takes them. Returns 0, or -errno with e. */
static int routines_take(struct goroutines *goroutines, struct parser *parser, int64_t pid,
			 int memory, struct goroutine_request *request, struct error *e)
{
	static struct goroutines_answer answer;
	int err;

	request->kind = GOROUTINES_READ;
	request->number = PROGRAM;
	err = request_make(parser, request, memory, &answer, sizeof(answer));
	if (!err && answer.err) {
		answer.why[GOROUTINE_WHY_SIZE - 1] = '\0';
		return refuse(e, EIO, pid, answer.why);
	}
	goroutines->counts = answer.counts;
	memcpy(goroutines->reasons, answer.reasons, sizeof(goroutines->reasons));
	for (size_t i = 0; i < GOROUTINE_REASONS_MAX; i++)
		goroutines->reasons[i][GOROUTINE_REASON_SIZE - 1] = '\0';
	for (uint64_t i = 0; !err && i < answer.group_count && i < GOROUTINE_GROUPS_MAX; i++)
		err = group_take(goroutines, parser, i);
	return err ? refuse(e, -err, pid, "the process that reads them does not answer") : 0;
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

/* Reads all of the goroutines of a program. fd: descriptor of the program's file; memory:
 * descriptor of the process' memory. */
static int program_read(struct goroutines *goroutines, const char *proc_root, int64_t pid, int fd,
			int memory, struct parser *parser, struct error *e)
{
	struct goroutine_request request = {.kind = GOROUTINES_READ};
	struct file_go_answer answer = {.is_go = false};
	struct elf_file elf = {.fd = fd};
	struct stat status;
	const char *why;
	int err;

	if (fstat(fd, &status))
		return refuse(e, errno, pid, "its program file can't be examined");
	elf.bytes = (uint64_t)status.st_size;
	err = file_head_request(parser, &elf);
	if (err == -ENOEXEC)
		return refuse(e, ENOEXEC, pid, "its program is not an ELF file");
	if (!err)
		err = file_go_request(parser, PROGRAM, &elf, &answer);
	if (err)
		return refuse(e, -err, pid, "its program could not be parsed");
	why = program_refused(&answer);
	if (why)
		return refuse(e, ENOTSUP, pid, why);
	if (!distance_find(proc_root, pid, &elf, &request.distance))
		return refuse(e, EACCES, pid, "its memory map can't be read");
	memcpy(goroutines->version, answer.program.version, GO_VERSION_SIZE);
	request.program = answer.program;
	return routines_take(goroutines, parser, pid, memory, &request, e);
}

int goroutines_read(struct goroutines *goroutines, const char *proc_root, int64_t pid,
		    struct parser *parser, struct error *e)
{
	char path[PATH_MAX];
	int fd, memory, err;

	snprintf(path, sizeof(path), "%s/%lld/exe", proc_root, (long long)pid);
	fd = process_link_open(path);
	if (fd < 0)
		return error_set(e, -fd, EXIT_FAILED, "goroutines of process %lld: %s: %s",
				 (long long)pid, path, strerror(-fd));
	snprintf(path, sizeof(path), "%s/%lld/mem", proc_root, (long long)pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		err = error_set(e, errno, EXIT_FAILED, "goroutines of process %lld: %s: %s",
				(long long)pid, path, strerror(errno));
	else
		err = program_read(goroutines, proc_root, pid, fd, memory, parser, e);
	if (memory >= 0)
		close(memory);
	close(fd);
	return err;
}
