/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/compile.h"
#include "base/descriptors.h"
#include "base/index.h"
#include "base/memory.h"
#include "base/priority.h"
#include "base/progress.h"
#include "base/signals.h"
#include "kernel/bpf_call.h"
#include "kernel/btf_types.h"
#include "kernel/registers.h"
#include "kernel/host.h"
#include "kernel/layout_validate.h"
#include "kernel/own_switch.h"
#include "kernel/pid_namespace.h"
#include "kernel/program_cache.h"
#include "kernel/program_text.h"
#include "kernel/type_source.h"
#include "kernel/work_dir.h"
#include "parser/parser_message.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND_PATH "/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin"
#define OUTPUT_BYTES_MAX (4 << 20)
#define WATCH_MS 250 /* interval at which the child is looked after */

/* --- messages from the child to its parent, over a SOCK_SEQPACKET pair */

enum child_message_kind {
	MESSAGE_TRIED,	   /* text: a line on a type source */
	MESSAGE_LAYOUT,	   /* layout, text: the source */
	MESSAGE_REGISTERS, /* number: stack_registers, flag: marked, code: why not */
	MESSAGE_PIDS,	   /* number: the parent's tid to the kernel, flag: ids are translated */
	MESSAGE_PROGRAM,   /* number: the group, with a descriptor */
	MESSAGE_MAP,	   /* number: enum kernel_map, with a descriptor */
	MESSAGE_SOURCE,	   /* text: where the programs are from; flag: compiled now */
	MESSAGE_ERROR,	   /* text, code: errno, number: exit code */
	MESSAGE_DONE,
};

struct child_message {
	enum child_message_kind kind;
	int32_t code;
	uint32_t number;
	uint32_t flag;
	struct field_layout layout;
	char text[ERROR_LINE_SIZE];
};

/* Sends a message. descriptor: -1 for none. 0, or -errno with e. */
static int child_message_send(int socket, const struct child_message *message, int descriptor,
			      struct error *e)
{
	const struct parser_message sent = {.head = message,
					    .head_bytes = sizeof(*message),
					    .fds = {descriptor},
					    .fd_count = descriptor >= 0};
	int err = parser_message_send(socket, &sent);

	return err ? error_set(e, -err, EXIT_FAILED, "the compile child can't send its result: %s",
			       strerror(-err))
		   : 0;
}

/* Receives a message. 1, 0 at the other side's end, or -errno (-EMFILE: this process may open no
 * more descriptors). *descriptor gets -1 or a descriptor to close. */
static int child_message_receive(int socket, struct child_message *message, int *descriptor)
{
	struct parser_request got;
	int result = parser_message_receive(socket, message, sizeof(*message), &got);

	*descriptor = got.fd_count ? got.fds[0] : -1;
	return result > 0 ? got.count == sizeof(*message) : result;
}

/* --- work of the child */

/* Returns the sets of fields that the plan's programs read, and those by which tsnap finds locks
 * itself; without a plan all, for an offsets file. */
static unsigned int fields_wanted(const struct probe_plan *plan)
{
	unsigned int sets = plan ? FIELDS_LOCK : FIELDS_ALL;

	for (int group = 0; plan && group < GROUP_COUNT; group++) {
		const unsigned int fields = probe_group_rows[group].fields;

		/* a tracepoint gives what its programs need, except of a process that ends, and of
		 * a packet, of which it gives the address */
		if (plan->chosen[group])
			sets |= plan->chosen[group]->kind != PROBE_TRACEPOINT
					? fields
					: fields & (FIELDS_END | FIELDS_PACKET);
	}
	return sets;
}

static int fields_check(const struct compile_request *request, const struct field_layout *layout,
			struct error *e)
{
	/* programs, or tsnap, do less without the fields of these */
	const unsigned int wanted =
		fields_wanted(request->plan) & ~(FIELDS_QUOTA | FIELDS_END | FIELDS_LOCK);

	if (!request->plan || field_sets_there(layout, wanted))
		return 0;
	return error_set(e, ENOTSUP, EXIT_HOST_CANNOT, "the kernel types lack %s",
			 field_sets_there(layout, wanted & FIELDS_BLOCK)
				 ? "members of sockets (perhaps as it has no IPv6), which --trace "
				   "connections and dns need: give another source"
				 : "struct request, which --trace block and io columns need: give "
				   "another source, or --without raw_tracepoint where tracefs is "
				   "mounted");
}

static int types_find(const struct compile_request *request, const struct bcc_library *bcc,
		      const char *work_dir, int socket, int output, struct field_layout *layout,
		      struct program_set *set, struct error *e)
{
	const struct type_request types = {.choice = request->types_choice,
					   .btf_file = request->btf_file,
					   .offsets_file = request->offsets_file,
					   .host = request->host,
					   .features = request->features,
					   .bcc = bcc,
					   .work_dir = work_dir,
					   .parent_name = request->parent_name,
					   .fields = fields_wanted(request->plan),
					   .output = output};
	struct child_message message = {.kind = MESSAGE_TRIED};
	struct type_found found = {0};
	struct error unsent = {0};
	struct text tried = {0};
	int result = type_source_find(&types, &found, &tried, e);

	snprintf(message.text, sizeof(message.text), "%s", text_string(&tried));
	text_done(&tried);
	if (!result)
		result = child_message_send(socket, &message, -1, e);
	else
		child_message_send(socket, &message, -1, &unsent); /* the first failure counts */
	error_done(&unsent);
	if (result)
		return result;
	message.kind = MESSAGE_LAYOUT;
	message.layout = *layout = found.layout;
	snprintf(message.text, sizeof(message.text), "%s", found.source->name);
	snprintf(set->types_source, sizeof(set->types_source), "%s", found.source->name);
	return child_message_send(socket, &message, -1, e);
}

#define LOG_BYTES ((16u << 20) - 1) /* the most that kernels before 5.2 take */
#define LOG_SHOWN_BYTES 4096	    /* the log's end has the verifier's complaint */

/* Loads a program of a set whose instructions name its maps. log: buffer of LOG_BYTES for the
 * verifier's log, or NULL. Descriptor or -errno. */
static int program_try(const struct program_set *set, const struct probe_row *row, char *log)
{
	const int at = program_set_program(set, row->function);
	struct bpf_load load = {.type = probe_program_types[row->kind],
				.name = row->name,
				.instructions = set->instructions[at],
				.count = set->programs[at].count,
				.log = log,
				.log_size = LOG_BYTES};

	if (row->kind == PROBE_TYPED_TRACEPOINT) {
		int id = btf_tracepoint_id(row->event);

		if (id < 0)
			return id;
		load.attach_type = BPF_TRACE_RAW_TP;
		load.btf_id = (uint32_t)id;
	}
	return bpf_call_load_described(&load);
}

/* Words for an errno: the kernel has one for many things. */
static const char *refusal_words(int error)
{
	switch (error) {
	case E2BIG:
		return "its verifier gave up: too many instructions, or too many ways through them";
	case EACCES:
		return "its verifier found an access that it can't prove to be safe";
	case EPERM:
		return "not permitted";
	case ENOMEM:
		return "memory is short";
	}
	return strerror(error);
}

/* Prints the verifier's log, which is requested only when it refused, because it costs time; a log
 * that does not fit makes an error of its own, which is ignored. */
static void refusal_print(const struct program_set *set, const struct probe_row *row)
{
	char *log = memory_get(LOG_BYTES);
	int fd = program_try(set, row, log);
	size_t length = strlen(log);

	if (length > LOG_SHOWN_BYTES)
		printf("... the end of the verifier's log, of %zu bytes:\n%s\n", length,
		       log + length - LOG_SHOWN_BYTES);
	else
		printf("%s\n", log);
	if (fd >= 0)
		close(fd);
	free(log);
}

static int program_missing(const struct probe_row *row, struct error *e)
{
	return error_set(e, EINVAL, EXIT_FAILED, "the compiled BPF text has no program %s",
			 row->function);
}

static int program_load(const struct program_set *set, const struct probe_row *row, struct error *e)
{
	int fd;

	if (program_set_program(set, row->function) < 0)
		return program_missing(row, e);
	fd = program_try(set, row, NULL);
	if (fd >= 0)
		return fd;
	refusal_print(set, row);
	return error_set(e, -fd, EXIT_FAILED, "the kernel refused the BPF program %s (%s): %s%s",
			 row->name, probe_kind_names[row->kind], refusal_words(-fd),
			 fd == -EMFILE ? "" : "; -v shows the end of the verifier's log");
}

/* Replaces the module's control map by the shared one: programs name maps by descriptor until they
 * are loaded. */
static void control_share(const struct program_set *set, const int *fds, int control)
{
	int at = program_set_map(set, kernel_map_rows[KERNEL_MAP_LATENCY].name);

	if (at >= 0 && control >= 0)
		dup2(control, fds[at]);
}

static int maps_send(const struct program_set *set, const int *fds, int socket, struct error *e)
{
	for (uint32_t i = 0; i < KERNEL_MAP_COUNT; i++) {
		struct child_message message = {.kind = MESSAGE_MAP, .number = i};
		int at = program_set_map(set, kernel_map_rows[i].name), err;

		if (at < 0)
			continue; /* the map's fragment was not chosen */
		if (set->maps[at].value_bytes != kernel_map_rows[i].leaf_bytes)
			return error_set(
				e, EINVAL, EXIT_FAILED,
				"libbcc and the C compiler lay out the record of %s differently; "
				"please report this with tsnap --version and --check",
				kernel_map_rows[i].name);
		err = child_message_send(socket, &message, fds[at], e);
		if (err)
			return err;
	}
	return 0;
}

static int programs_send(const struct program_set *set, const struct probe_plan *plan, int socket,
			 struct error *e)
{
	for (uint32_t group = 0; group < GROUP_COUNT; group++) {
		struct child_message message = {.kind = MESSAGE_PROGRAM, .number = group};
		int fd, err;

		if (!plan->chosen[group])
			continue;
		fd = program_load(set, plan->chosen[group], e);
		if (fd < 0)
			return fd;
		err = child_message_send(socket, &message, fd, e);
		if (err)
			return err;
	}
	return 0;
}

/* Sends the maps of a set, whose descriptors are fds, and loads and sends its programs. */
static int set_send(struct program_set *set, const int *fds, const struct probe_plan *plan,
		    int socket, struct error *e)
{
	int result = maps_send(set, fds, socket, e);

	program_set_refer(set, fds);
	return result ? result : programs_send(set, plan, socket, e);
}

static int registers_find(const struct field_layout *layout, int socket,
			  struct program_knobs *knobs, struct error *e)
{
	struct child_message message = {.kind = MESSAGE_REGISTERS};

	message.code = calibrate_registers(layout, &knobs->stack_registers, &knobs->registers_kept);
	if (message.code)
		knobs->stack_registers = 0;
	message.number = knobs->stack_registers;
	message.flag = knobs->registers_kept;
	return child_message_send(socket, &message, -1, e);
}

static int pids_find(const struct field_layout *layout, const struct host *host, int socket,
		     struct pid_namespace *pids, struct error *e)
{
	struct child_message message = {.kind = MESSAGE_PIDS};
	int result = pid_namespace_find(layout, host, pids, e);

	if (result)
		return result;
	message.number = pids->parent_tid;
	message.flag = pids->translated;
	return child_message_send(socket, &message, -1, e);
}

/* Reads the end of the output. */
static void output_end_read(int output, char *text, size_t size)
{
	off_t end = lseek(output, 0, SEEK_END), most = (off_t)size - 1;
	ssize_t got = pread(output, text, size - 1, end > most ? end - most : 0);

	text[got > 0 ? got : 0] = '\0';
}

/* Explains why there is no module, libbcc's only answer to failures of the compiler and of maps.
 * output: what it has printed. */
static int module_explain(const struct compile_request *request, int output, struct error *e)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
	char printed[4096], line[512];
	int err;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur != RLIM_INFINITY && request->host->kernel_code < KERNEL_CODE(5, 11))
		return error_set(e, EPERM, EXIT_HOST_CANNOT,
				 "the kernel made no maps for %u threads: before 5.11 they count "
				 "against the memory limit (ulimit -l), which is %llu KB, and "
				 "which only CAP_SYS_RESOURCE lets tsnap raise; -v says more",
				 request->knobs.threads_max,
				 (unsigned long long)limit.rlim_cur / 1024);
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < DESCRIPTORS_LEAST)
		return error_set(e, EMFILE, EXIT_FAILED, "libbcc could not make tsnap's maps: %s",
				 strerror(EMFILE));
	fflush(NULL);
	output_end_read(output, printed, sizeof(printed));
	err = error_of_output(printed, line, sizeof(line));
	return error_set(e, err ? err : EINVAL, EXIT_FAILED,
			 "libbcc could not compile tsnap's BPF text, or make its maps for %u "
			 "threads%s%s",
			 request->knobs.threads_max, *line ? ": " : "; -v shows its output", line);
}

/* --- programs that were compiled before */

/* Returns a hash of the text that is compiled, with sizes of maps for so many threads and one
 * CPU. */
static uint64_t text_hash(const struct compile_request *request, const struct field_layout *layout,
			  const struct program_knobs *knobs, uint32_t threads)
{
	struct program_knobs same = *knobs;
	struct text text = {0};
	uint64_t hash;

	same.threads_max = threads;
	same.cpus_max = 1;
	text_add_format(&text, "tsnap %s, kernel %u, %zu maps\n", TSNAP_VERSION,
			request->host->kernel_code, (size_t)KERNEL_MAP_COUNT);
	program_text_write(request->plan, layout, &same, &text);
	hash = hash_bytes(text.bytes, text.length);
	text_done(&text);
	return hash;
}

/* Adds what tells a file from others and from what it was earlier. */
static void identity_add(const char *path, struct text *to)
{
	struct stat about;

	if (path && *path && !stat(path, &about))
		text_add_format(to, "%s %llx:%llx %lld %lld.%ld\n", path,
				(unsigned long long)about.st_dev, (unsigned long long)about.st_ino,
				(long long)about.st_size, (long long)about.st_ctim.tv_sec,
				about.st_ctim.tv_nsec);
}

/* Fills in the keys of the set that this request needs. */
static void keys_fill(const struct compile_request *request, struct program_set *like)
{
	const struct field_layout layout = {.sets = fields_wanted(request->plan)};
	struct program_knobs knobs = request->knobs;
	struct text how = {0};
	char path[PATH_MAX];
	struct stat about;

	*like = (struct program_set){.near_threads = program_near_threads(knobs.threads_max)};
	kernel_build_read(like->kernel);
	/* what the child finds out */
	knobs.stack_registers = knobs.registers_kept = 0;
	knobs.pids = (struct pid_namespace){.level = 0};
	like->wanted = text_hash(request, &layout, &knobs, 1);
	text_add_format(&how, "tsnap %016llx\n", (unsigned long long)own_build_hash());
	bcc_library_path(path);
	if (!stat(path, &about))
		text_add_format(&how, "%s %lld %lld\n", strrchr(path, '/'),
				(long long)about.st_size, (long long)about.st_mtim.tv_sec);
	identity_add(request->btf_file, &how);
	identity_add(request->offsets_file, &how);
	text_add_format(&how, "%s %d %d\n",
			request->types_choice ? request->types_choice : TYPE_SOURCE_AUTO,
			request->features->state[FEATURE_BTF] == FEATURE_TAKEN_AWAY,
			request->features->state[FEATURE_KHEADERS] == FEATURE_TAKEN_AWAY);
	like->how = hash_bytes(how.bytes, how.length);
	text_done(&how);
}

/* Finds out what programs need to know of the host beside its types: registers and pids. */
static int knobs_find(const struct compile_request *request, const struct field_layout *layout,
		      int socket, struct program_knobs *knobs, struct error *e)
{
	int result = pids_find(layout, request->host, socket, &knobs->pids, e);

	if (!result && (knobs->parts >> PART_REGISTERS & 1 || knobs->latency_kinds))
		result = registers_find(layout, socket, knobs, e);
	return result;
}

/* Sends the layout that came with a set. why_not: why it was not validated, or "". */
static int set_layout_send(const struct program_set *set, const char *why_not, int socket,
			   struct error *e)
{
	struct child_message message = {.kind = MESSAGE_TRIED, .layout = set->layout};
	int result;

	snprintf(message.text, sizeof(message.text),
		 "%s: as read when the programs were compiled, %s%s%s\n", set->types_source,
		 *why_not ? "not validated (" : "validated on this kernel", why_not,
		 *why_not ? ")" : "");
	result = child_message_send(socket, &message, -1, e);
	message.kind = MESSAGE_LAYOUT;
	snprintf(message.text, sizeof(message.text), "%s", set->types_source);
	return result ? result : child_message_send(socket, &message, -1, e);
}

/* Makes the maps of a set that was compiled before, loads its programs, and sends both. */
static int set_load(const struct compile_request *request, struct program_set *set, int socket,
		    struct error *e)
{
	int control = program_set_map(set, kernel_map_rows[KERNEL_MAP_LATENCY].name), result;
	int given[PROGRAM_MAPS_MAX], fds[PROGRAM_MAPS_MAX];
	const struct set_map *map;

	for (int i = 0; i < PROGRAM_MAPS_MAX; i++)
		given[i] = i == control ? request->latency_control : -1;
	result = program_set_maps_make(set, request->knobs.threads_max, request->knobs.cpus_max,
				       given, fds, &map);
	if (result)
		return error_set(e, -result, EXIT_FAILED, "the kernel did not make the map %s: %s",
				 map->name, strerror(-result));
	result = set_send(set, fds, request->plan, socket, e);
	for (uint32_t i = 0; result && i < set->map_count; i++)
		if (given[i] < 0)
			close(fds[i]);
	return result;
}

/* Tries whether a set that was compiled before is right for this host as it is now, and if so has
 * it loaded. where: words on where it is from. 0, or -errno with e. */
static int set_try(const struct compile_request *request, struct program_set *set,
		   const char *where, int socket, struct error *e)
{
	struct layout_validation proof = {.field = 0};
	struct program_knobs knobs = request->knobs;
	int result;

	if (layout_validate(&set->layout, request->parent_name, &proof) > 0)
		return error_set(e, EINVAL, EXIT_FAILED,
				 "the programs %s have a layout of kernel types that is not this "
				 "kernel's",
				 where);
	result = knobs_find(request, &set->layout, socket, &knobs, e);
	if (result)
		return result;
	if (text_hash(request, &set->layout, &knobs, set->near_threads) != set->text)
		return error_set(e, EINVAL, EXIT_FAILED,
				 "the programs %s were made for a host that keeps registers, or "
				 "numbers processes, in another way",
				 where);
	result = set_layout_send(set, proof.why, socket, e);
	return result ? result : set_load(request, set, socket, e);
}

static int source_send(const char *words, bool compiled, int socket, struct error *e)
{
	struct child_message message = {.kind = MESSAGE_SOURCE, .flag = compiled};

	snprintf(message.text, sizeof(message.text), "%s", words);
	return child_message_send(socket, &message, -1, e);
}

/* Writes the set for --write-programs. */
static int set_write(const struct compile_request *request, const struct program_set *set,
		     const struct text *bytes, struct error *e)
{
	return request->write_programs ? program_file_add(request->write_programs, set, bytes, e)
				       : 0;
}

/* Sends programs of --programs, its only source then. */
static int file_send(const struct compile_request *request, const struct program_set *like,
		     int socket, struct error *e)
{
	struct text where = {0};
	struct program_set set;
	int result = program_file_find(request->programs_file, like, &set, e);

	text_add_format(&where, "from '%s'", request->programs_file);
	if (!result)
		result = set_try(request, &set, text_string(&where), socket, e);
	if (!result)
		result = source_send(text_string(&where), false, socket, e);
	program_set_done(&set);
	text_done(&where);
	return result;
}

/* Sends programs that were compiled before. 1: done; 0: there are none, and why says why, if that
 * is worth a word; or -errno with e. */
static int cached_send(const struct compile_request *request, const struct program_set *like,
		       int socket, char *why, struct error *e)
{
	struct text where = {0}, bytes = {0};
	struct error unsaid = {0};
	struct program_set set;
	int result = 0;

	if (!request->cache_path || program_cache_get(request->cache_path, like, &set, why))
		return 0;
	text_add_format(&where, "from the cache in %s", request->cache_path);
	program_set_write(&set, &bytes);
	if (!set_try(request, &set, text_string(&where), socket, &unsaid))
		result = 1;
	else
		snprintf(why, PROGRAM_CACHE_WHY_SIZE, "%.200s", unsaid.line);
	if (result == 1) {
		int err = source_send(text_string(&where), false, socket, e);

		if (!err)
			err = set_write(request, &set, &bytes, e);
		result = err ? err : 1;
	}
	program_set_done(&set);
	text_done(&where);
	text_done(&bytes);
	error_done(&unsaid);
	return result;
}

/* Puts programs that were compiled now into the cache. found_why: why it had none, or "". where:
 * gets words on that. */
static void set_cache(const struct compile_request *request, const struct program_set *set,
		      const struct text *bytes, const char *found_why, struct text *where)
{
	char why[PROGRAM_CACHE_WHY_SIZE];

	text_add_string(where, "compiled now");
	if (!request->cache_path)
		return;
	if (program_cache_put(request->cache_path, set, bytes, why))
		text_add_format(where, "; not cached in %s: %s", request->cache_path, why);
	else
		text_add_format(where, " and cached in %s", request->cache_path);
	if (*found_why && strcmp(why, found_why) != 0)
		text_add_format(where, "; those cached before were of no use: %s", found_why);
}

/* Takes the programs out of a module, loads and sends them, and puts them into the cache. */
static int module_send(const struct compile_request *request, const struct bcc_library *bcc,
		       void *module, struct program_set *set, const char *why, int socket,
		       struct error *e)
{
	const struct probe_row *missing = NULL;
	struct text bytes = {0}, where = {0};
	int fds[PROGRAM_MAPS_MAX], result;
	bool keepable;

	result = program_set_take(bcc, module, request->plan, request->knobs.threads_max,
				  request->knobs.cpus_max, set, fds, &keepable, &missing);
	if (result == -E2BIG)
		return error_set(e, E2BIG, EXIT_FAILED, "the compiled BPF text has too many maps");
	if (result)
		return program_missing(missing, e);
	control_share(set, fds, request->latency_control);
	program_set_write(set, &bytes);
	result = set_send(set, fds, request->plan, socket, e);
	if (!result && keepable)
		set_cache(request, set, &bytes, why, &where);
	else if (!result)
		text_add_string(&where,
				"compiled now; not cached: this libbcc makes maps that tsnap "
				"can't describe");
	if (!result)
		result = source_send(text_string(&where), true, socket, e);
	if (!result && keepable)
		result = set_write(request, set, &bytes, e);
	text_done(&where);
	text_done(&bytes);
	return result;
}

/* Sends what it finds and loads to socket. output: the descriptor that standard output and error go
 * to. 0, or -errno with e filled. */
static int compile_work(struct compile_request *request, const char *work_dir, int socket,
			int output, struct error *e)
{
	struct program_knobs *knobs = &request->knobs;
	char why[PROGRAM_CACHE_WHY_SIZE] = "";
	struct program_set set = {.map_count = 0};
	struct field_layout layout;
	struct bcc_library bcc;
	struct text text = {0};
	void *module;
	int result = 0;

	if (request->plan) {
		keys_fill(request, &set);
		if (request->programs_file)
			return file_send(request, &set, socket, e);
		result = cached_send(request, &set, socket, why, e);
		if (result)
			return result < 0 ? result : 0;
	}
	result = bcc_library_open(&bcc, e);
	if (!result)
		result = types_find(request, &bcc, work_dir, socket, output, &layout, &set, e);
	if (!result)
		result = fields_check(request, &layout, e);
	if (result || !request->plan)
		return result;
	result = knobs_find(request, &layout, socket, knobs, e);
	if (!result)
		result = program_headers_write(work_dir, request->host->kernel_code, e);
	if (result)
		return result;
	set.layout = layout;
	set.text = text_hash(request, &layout, knobs, set.near_threads);
	program_text_write(request->plan, &layout, knobs, &text);
	module = program_compile(&bcc, knobs, &text);
	text_done(&text);
	if (!module)
		return module_explain(request, output, e);
	return module_send(request, &bcc, module, &set, why, socket, e);
}

/* work_dir: "" if there is none, for the reason that no_place gives. */
static void child_main(const struct compile_request *request, const char *work_dir,
		       const struct error *no_place, int socket, int output, pid_t parent)
{
	struct child_message message = {.kind = MESSAGE_DONE};
	struct compile_request own = *request;
	struct error e = {0};
	char here[PATH_MAX];
	int result;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_GET_NAME, own.parent_name);
	prctl(PR_SET_NAME, "tsnap-compile");
	if (getppid() != parent)
		_exit(1);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	/* libbcc gives up where the working directory has no path: deleted, or of another mount
	 * namespace */
	if (!getcwd(here, sizeof(here)) && chdir("/"))
		_exit(1);
	/* libbcc and tsnap unpack kheaders below TMPDIR, and run modprobe and tar for that. The
	 * caller's PATH may be anybody's. */
	if (!*work_dir)
		work_dir = work_dir_mount();
	setenv("TMPDIR", work_dir ? work_dir : "", 1);
	setenv("PATH", COMMAND_PATH, 1);
	result = work_dir ? compile_work(&own, work_dir, socket, output, &e)
			  : error_set(&e, errno, no_place->exit_code, "%s", no_place->line);
	if (result) {
		message.kind = MESSAGE_ERROR;
		message.code = -result;
		message.number = e.exit_code;
		snprintf(message.text, sizeof(message.text), "%s", e.line);
	}
	fflush(NULL);
	/* should this fail, the parent sees how the child ends, and what it has printed */
	result = child_message_send(socket, &message, -1, &e);
	if (result)
		dprintf(STDERR_FILENO, "%s\n", e.line);
	/* no destructors: LLVM's take time, and the parent cleans up */
	_exit(result ? 1 : 0);
}

/* --- the parent */

/* Programs from the cache may have been sent in part before others were compiled. */
static void descriptor_take(int *to, int descriptor)
{
	if (*to >= 0)
		close(*to);
	*to = descriptor;
}

/* Handles a message. 1: go on; 0: the child is done; -errno: it failed, with its words in e. */
static int message_take(const struct child_message *message, int descriptor,
			struct compile_result *result, struct error *e)
{
	switch (message->kind) {
	case MESSAGE_TRIED:
		text_clear(&result->types_tried);
		text_add_string(&result->types_tried, message->text);
		return 1;
	case MESSAGE_LAYOUT:
		result->layout = message->layout;
		snprintf(result->types_source, sizeof(result->types_source), "%.31s",
			 message->text);
		progress_step("compiling its BPF programs");
		return 1;
	case MESSAGE_REGISTERS:
		result->stack_registers = message->number;
		result->registers_kept = message->flag;
		result->calibration = message->code;
		return 1;
	case MESSAGE_PIDS:
		result->own_tid = message->number;
		result->pids_translated = message->flag;
		return 1;
	case MESSAGE_PROGRAM:
		descriptor_take(&result->programs[message->number % GROUP_COUNT], descriptor);
		return 1;
	case MESSAGE_SOURCE:
		snprintf(result->programs_source, sizeof(result->programs_source), "%s",
			 message->text);
		result->compiled = message->flag;
		return 1;
	case MESSAGE_MAP:
		progress_step("loading its BPF programs");
		descriptor_take(&result->maps[message->number % KERNEL_MAP_COUNT], descriptor);
		return 1;
	case MESSAGE_ERROR:
		return error_set(e, message->code ? message->code : EINVAL,
				 (enum exit_code)message->number, "%s", message->text);
	case MESSAGE_DONE:
		return 0;
	}
	return 1;
}

static int listen_fail(int err, struct error *e)
{
	if (err == -EINTR)
		return error_set(e, EINTR, EXIT_FAILED, "interrupted by a signal");
	return error_set(e, -err, EXIT_FAILED, "the result of the compile child did not arrive: %s",
			 strerror(-err));
}

/* Reads the child's messages. 0, -ECHILD where the child ended early, or another -errno with e. */
static int child_listen(int socket, pid_t child, struct compile_result *result, struct error *e)
{
	struct pollfd answer = {.fd = socket, .events = POLLIN};
	struct child_message message;
	int descriptor, got;

	do {
		while (poll(&answer, 1, WATCH_MS) <= 0) {
			if (signals_stop())
				return listen_fail(-EINTR, e);
			priority_watch(child);
		}
		got = child_message_receive(socket, &message, &descriptor);
		if (got > 0)
			got = message_take(&message, descriptor, result, e);
		else
			return got ? listen_fail(got, e) : -ECHILD;
	} while (got > 0);
	return got;
}

static void output_take(int output, struct text *to)
{
	char part[4096];
	ssize_t got;

	lseek(output, 0, SEEK_SET);
	while (to->length < OUTPUT_BYTES_MAX && (got = read(output, part, sizeof(part))) > 0)
		text_add(to, part, (size_t)got);
}

/* output: what the child has printed. */
static int child_end_explain(int status, const char *output, struct error *e)
{
	char line[256];

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return error_set(e, ENOMEM, EXIT_FAILED,
				 "the compile child was killed by signal 9 (Killed); was memory "
				 "short? it needs about 150 MB for a moment");
	if (WIFSIGNALED(status))
		return error_set(
			e, ECHILD, EXIT_FAILED,
			"the compile child was killed by signal %d (%s); -v shows its output",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	error_of_output(output, line, sizeof(line));
	return error_set(e, ECHILD, EXIT_FAILED,
			 "the compile child ended with status %d%s%s; -v shows its output",
			 WEXITSTATUS(status), *line ? ": " : "", line);
}

void compile_result_init(struct compile_result *result, uint32_t threads_max)
{
	*result = (struct compile_result){.threads_max = threads_max};
	for (int map = 0; map < KERNEL_MAP_COUNT; map++)
		result->maps[map] = -1;
	for (int group = 0; group < GROUP_COUNT; group++)
		result->programs[group] = -1;
}

int compile_child_run(const struct compile_request *request, struct compile_result *result,
		      struct error *e)
{
	struct work_dir work_dir = {.path = ""};
	int sockets[2] = {-1, -1}, output, event, status = 0, failed = 0;
	struct error no_place = {0};
	struct compile_result made;
	pid_t child, parent = getpid();

	compile_result_init(&made, request->knobs.threads_max);
	output = memfd_create("tsnap-compile", MFD_CLOEXEC);
	if (output < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		failed = error_set(e, errno, EXIT_FAILED,
				   "no descriptors for the compile child: %s: %s",
				   output < 0 ? "memfd_create" : "socketpair", strerror(errno));
	else
		work_dir_make(&work_dir, &no_place);
	if (failed)
		goto out;
	fflush(NULL);
	progress_step("finding the layout of kernel types");
	child = fork();
	if (child < 0) {
		failed =
			error_set(e, errno, EXIT_FAILED,
				  "the compile child can't be forked (clone): %s", strerror(errno));
		goto out;
	}
	if (!child)
		child_main(request, work_dir.path, &no_place, sockets[1], output, parent);
	priority_pass_on(child);
	close(sockets[1]);
	sockets[1] = -1;
	event = own_switch_event(); /* the child will open such events */
	failed = child_listen(sockets[0], child, &made, e);
	if (event >= 0)
		close(event);
	if (failed && failed != -ECHILD)
		kill(child, SIGKILL); /* nobody listens to it any more */
	if (!failed)
		work_dir_remove(&work_dir); /* meanwhile the child frees its memory */
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	output_take(output, &made.output);
	if (failed == -ECHILD)
		failed = child_end_explain(status, text_string(&made.output), e);
	if (failed && made.output.length)
		error_take_detail(e, text_take(&made.output));
out:
	work_dir_remove(&work_dir);
	error_done(&no_place);
	for (int i = 0; i < 2; i++)
		if (sockets[i] >= 0)
			close(sockets[i]);
	if (output >= 0)
		close(output);
	if (failed)
		compile_result_done(&made);
	else
		*result = made;
	return failed;
}

void compile_result_done(struct compile_result *result)
{
	text_done(&result->types_tried);
	text_done(&result->output);
	for (int map = 0; map < KERNEL_MAP_COUNT; map++)
		if (result->maps[map] >= 0)
			close(result->maps[map]);
	for (int group = 0; group < GROUP_COUNT; group++)
		if (result->programs[group] >= 0)
			close(result->programs[group]);
	compile_result_init(result, 0);
}
