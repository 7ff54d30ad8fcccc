/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/module_table.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/index.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "unwind/file_request.h"
#include "unwind/function_name.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FUSE_MAGIC 0x65735546
#define SHARES_MAX 8	/* most shares that a scan's time is divided into */
#define EVICTED_MAX 128 /* files closed for others after a scan: as many are opened in the next */

uint64_t module_file_key(const struct stat *file)
{
	const uint64_t words[] = {file->st_dev, file->st_ino, (uint64_t)file->st_mtim.tv_sec,
				  (uint64_t)file->st_mtim.tv_nsec, (uint64_t)file->st_size};

	return hash_bytes(words, sizeof(words));
}

/* A file system in any user's program (FUSE) reports whatever owner it likes. */
int64_t module_file_owner(int fd, const struct stat *file)
{
	struct statfs system;

	return fstatfs(fd, &system) || (uint32_t)system.f_type == FUSE_MAGIC
		       ? OWNER_UNKNOWN
		       : (int64_t)file->st_uid;
}

/* A build-id is what the file claims: a file of another owner may have it, too, or a stripped one,
 * and must not give its names to the stacks of others. */
uint64_t module_identity(const struct elf_file *elf, int64_t owner)
{
	const uint64_t words[] = {hash_bytes(elf->build_id, elf->build_id_bytes), elf->bytes,
				  (uint64_t)owner};

	return hash_bytes(words, sizeof(words));
}

char *module_location_text(const char *path, const struct elf_file *elf)
{
	struct text location = {0};
	char *text;

	text_add_string(&location, *path ? path : "?");
	function_name_clean(location.bytes);
	text_add_char(&location, '@');
	for (uint32_t i = 0; i < elf->build_id_bytes; i++)
		text_add_format(&location, "%02x", elf->build_id[i]);
	text = memory_text(text_string(&location), location.length);
	text_done(&location);
	return text;
}

#define TABLE_OPERATIONS_MAX 65536

/* --- rows of a file's unwind table */

/* True if the parser knows the file, of whose bytes it holds table.read_bytes. */
static bool is_read(const struct module_table *table, const struct module *module)
{
	return module->table.generation && module->table.generation == table->parser->generation;
}

/* Has the parser forget the file, and keeps the rows. */
static void table_shrink(struct module_table *table, struct module *module)
{
	if (is_read(table, module))
		file_drop(table->parser, module->number);
	module->table.generation = 0;
}

static void rows_forget(struct frame_table *table)
{
	keyed_done(&table->rows);
	free(table->operations);
	table->operations = NULL;
	table->operation_count = table->operation_capacity = 0;
}

/* True: it is known what the table has for that address (as the file has addresses). *row is the
 * row, or NULL where it has none. */
static bool row_find(const struct frame_table *table, uint64_t address,
		     const struct frame_row **row)
{
	const struct frame_row *found =
		table->without ? NULL : keyed_find(&table->rows, sizeof(*found), address);

	*row = found && found->found ? found : NULL;
	return table->without || (found && found->looked);
}

/* Returns the row at an address; a new one is zeroed. */
static struct frame_row *row_put(struct frame_table *table, uint64_t address)
{
	return keyed_put(&table->rows, sizeof(struct frame_row), address, NULL);
}

/* Turns an expression's position in the answer into that in the table. False: the expression lies
 * outside of the answer. */
static bool rule_move(const struct frame_table *table, size_t operation_count,
		      struct frame_rule *rule)
{
	if (rule->kind > RULE_EXPRESSION)
		return false;
	if (rule->kind != RULE_AT && rule->kind != RULE_EXPRESSION)
		return true;
	if (!rule->count || rule->offset < 0 || (size_t)rule->offset > operation_count ||
	    rule->count > operation_count - (size_t)rule->offset)
		return false;
	rule->offset += (int32_t)table->operation_count;
	return true;
}

/* Takes a row from a parser's answer, which may say anything. */
static bool row_take(struct frame_table *table, const struct file_row *answer,
		     const struct frame_operation *operations, struct frame_row *row)
{
	size_t needed = table->operation_count + answer->operation_count;
	bool good = needed <= TABLE_OPERATIONS_MAX;

	*row = (struct frame_row){.looked = true,
				  .found = true,
				  .signal = answer->signal,
				  .begin = answer->begin,
				  .cfa = answer->cfa,
				  .ra = answer->ra};
	memcpy(row->saved, answer->saved, sizeof(row->saved));
	good = good && rule_move(table, answer->operation_count, &row->cfa) &&
	       rule_move(table, answer->operation_count, &row->ra);
	for (size_t i = 0; i < MACHINE_SAVED_MAX; i++)
		good = good && rule_move(table, answer->operation_count, &row->saved[i]);
	if (!good || !answer->operation_count)
		return good;
	table->operations = memory_grow(table->operations, &table->operation_capacity, needed,
					sizeof(*table->operations));
	memcpy(table->operations + table->operation_count, operations,
	       answer->operation_count * sizeof(*operations));
	table->operation_count = needed;
	return true;
}

/* Requests a row from the parser; opens: it does not know the file. Returns 0, or -EAGAIN: the row
 * can't be known now. */
static int row_request(struct module_table *table, struct module *module, uint64_t address,
		       bool opens)
{
	static struct file_row_answer answer;
	struct frame_table *rows = &module->table;
	struct frame_row row = {.looked = true}, *to;
	int err = file_row_request(table->parser, module->number, &module->elf, opens, address,
				   &answer);

	if (err == -EPIPE) {
		rows->ended++;
		rows->without = rows->ended == FILE_ENDS_MAX;
		err = rows->without ? -ENOENT : -EAGAIN;
	}
	if (err == -EAGAIN)
		return err;
	rows->without = rows->without || (err && err != -ENOENT);
	if (!err && opens) {
		rows->generation = table->parser->generation;
		rows->read_bytes = answer.head.table_bytes;
		rows->without = answer.head.without;
	}
	if (err || !answer.head.found || !row_take(rows, &answer.head, answer.operations, &row))
		row = (struct frame_row){.looked = true};
	to = row_put(rows, address);
	row.return_kind = to->return_kind;
	if (!err && answer.head.end <= STACK_ENDS)
		row.end = answer.head.end;
	*to = row;
	return 0;
}

/* --- modules */

void module_table_init(struct module_table *table, struct parser *parser)
{
	*table = (struct module_table){.parser = parser,
				       .open_max = descriptors_share(MODULES_MAX, 2)};
}

static void module_done(struct module_table *table, struct module *module)
{
	table_shrink(table, module);
	rows_forget(&module->table);
	free(module->image);
	free(module->path);
	free(module->location);
}

static void *descriptors_close(void *of)
{
	for (int *fd = of; *fd >= 0; fd++)
		close(*fd);
	free(of);
	return NULL;
}

/* Closes the files in a thread that nobody waits for: a server may never answer that. */
static void files_close(const struct module_table *table)
{
	int *fds = memory_get((table->count + 1) * sizeof(*fds)), *fd = fds;
	pthread_t thread;

	for (uint32_t i = 0; i < table->count; i++)
		if (table->modules[i]->fd >= 0)
			*fd++ = table->modules[i]->fd;
	*fd = -1;
	if (thread_begin(&thread, descriptors_close, fds))
		descriptors_close(fds);
	else
		pthread_detach(thread);
}

void module_table_clear(struct module_table *table)
{
	file_forget(table->parser);
	files_close(table);
	for (uint32_t i = 0; i < table->count; i++) {
		table->modules[i]->table.generation = 0;
		module_done(table, table->modules[i]);
		free(table->modules[i]);
		table->modules[i] = NULL;
	}
	free(table->free);
	table->free = NULL;
	table->free_count = table->free_capacity = 0;
	index_clear(&table->at);
	index_clear(&table->spent_by);
	index_clear(&table->known_by);
	table->count = table->open_count = 0;
}

/* Marks modules as closing that had no mapping at two sweeps in turn, but the vDSO. Returns how
 * many. */
static uint32_t unmapped_mark(struct module_table *table)
{
	uint32_t marked = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		struct module *module = table->modules[i];

		if (module->closed || module->image)
			continue;
		module->closing = !module->mapped && module->unmapped;
		module->unmapped = !module->mapped;
		marked += module->closing;
	}
	return marked;
}

static struct module *module_oldest(const struct module_table *table)
{
	struct module *oldest = NULL;

	for (uint32_t i = 0; i < table->count; i++) {
		struct module *module = table->modules[i];

		if (!module->closed && !module->closing && !module->image &&
		    (!oldest || module->walked_ns < oldest->walked_ns))
			oldest = module;
	}
	return oldest;
}

bool module_table_mark(struct module_table *table, bool swept)
{
	uint32_t marked = 0,
		 wanted = table->refused < EVICTED_MAX ? (uint32_t)table->refused : EVICTED_MAX;
	struct module *oldest;

	for (uint32_t i = 0; i < table->count; i++)
		table->modules[i]->closing = false;
	if (swept)
		marked = unmapped_mark(table);
	while (table->open_count == table->open_max && marked < wanted &&
	       (oldest = module_oldest(table))) {
		oldest->closing = true;
		marked++;
	}
	return marked;
}

void module_table_close(struct module_table *table)
{
	for (uint32_t i = 0; i < table->count; i++) {
		struct module *module = table->modules[i];

		if (!module->closing)
			continue;
		table_shrink(table, module);
		rows_forget(&module->table);
		module->table.without = true;
		if (module->fd >= 0)
			close(module->fd);
		module->fd = -1;
		module->elf = (struct elf_file){.fd = -1};
		module->closing = module->unmapped = false;
		module->closed = true;
		table->open_count--;
	}
}

bool module_table_full(const struct module_table *table)
{
	return table->count == MODULES_KNOWN_MAX && !table->free_count;
}

/* Forgets a module; its number is free from then on. */
static void module_forget(struct module_table *table, struct module *module)
{
	uint64_t *known = index_find(&table->known_by, (uint64_t)module->known_pid);
	uint32_t number = module->number;

	table->open_count -= !module->closed;
	index_remove(&table->at, module->key);
	if (known && !--*known)
		index_remove(&table->known_by, (uint64_t)module->known_pid);
	if (module->fd >= 0)
		close(module->fd);
	module_done(table, module);
	*module = (struct module){.number = number, .fd = -1, .closed = true, .nobody = true};
	table->free = memory_grow(table->free, &table->free_capacity, table->free_count + 1,
				  sizeof(*table->free));
	table->free[table->free_count++] = number;
}

static int age_compare(const void *a, const void *b)
{
	const struct module *one = *(struct module *const *)a, *two = *(struct module *const *)b;

	if (one->closed != two->closed)
		return one->closed ? -1 : 1;
	return (one->walked_ns > two->walked_ns) - (one->walked_ns < two->walked_ns);
}

void module_table_mark_old(struct module_table *table)
{
	static struct module *by_age[MODULES_KNOWN_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		table->modules[i]->closing = false;
		if (!table->modules[i]->nobody)
			by_age[count++] = table->modules[i];
	}
	qsort(by_age, count, sizeof(struct module *), age_compare);
	for (uint32_t i = 0; i < count / 2; i++)
		by_age[i]->closing = true;
}

void module_table_forget(struct module_table *table)
{
	for (uint32_t i = 0; i < table->count; i++)
		if (table->modules[i]->closing)
			module_forget(table, table->modules[i]);
}

void module_table_next_scan(struct module_table *table, int64_t spent_max_ns)
{
	size_t shares = table->spent_by.used < SHARES_MAX ? table->spent_by.used : SHARES_MAX;

	table->refused = 0;
	table->spent_ns = 0;
	table->spent_max_ns = spent_max_ns;
	table->share_ns = spent_max_ns / (int64_t)(shares ? shares : 1);
	if (table->spent_by.used)
		index_clear(&table->spent_by);
}

void module_table_spend(struct module_table *table, int64_t ns)
{
	table->spent_ns += ns;
	*index_put(&table->spent_by, (uint64_t)table->walked_pid, NULL) += (uint64_t)ns;
}

/* True if the time of this scan, or the process' share of it, has been spent. */
static bool time_is_up(const struct module_table *table)
{
	const uint64_t *spent = index_find(&table->spent_by, (uint64_t)table->walked_pid);

	return table->spent_max_ns && (table->spent_ns >= table->spent_max_ns ||
				       (spent && (int64_t)*spent >= table->share_ns));
}

static void refuse(struct module_table *table)
{
	table->refused++;
	index_put(&table->spent_by, (uint64_t)table->walked_pid, NULL);
}

bool module_table_may_open(struct module_table *table)
{
	const uint64_t *known = index_find(&table->known_by, (uint64_t)table->walked_pid);
	bool may = table->open_count < table->open_max && !time_is_up(table) &&
		   (!known || *known < MODULES_PROCESS_MAX);

	if (!may)
		refuse(table);
	return may;
}

/* True if the name is that of the C library or belongs to it, in glibc and musl. */
static bool name_is_libc(const char *name)
{
	static const char *const patterns[] = {
		"libc.so*", "libc-2.*",	  "libpthread*.so*", "ld-linux*",
		"ld-musl*", "libc.musl*", "ld-2.*.so",	     "[[]vdso]",
	};

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (!fnmatch(patterns[i], name, 0))
			return true;
	return false;
}

/* Returns a zeroed module that has a number. */
static struct module *module_location(struct module_table *table)
{
	uint32_t number = table->free_count ? table->free[--table->free_count] : table->count++;
	struct module *module = table->modules[number];

	if (number == table->count - 1 && !module)
		module = table->modules[number] = memory_get(sizeof(*module));
	*module = (struct module){.number = number};
	return module;
}

static struct module *module_add(struct module_table *table, uint64_t key, const char *path)
{
	struct module *module;
	char *last;

	if (module_table_full(table) || table->open_count >= table->open_max) {
		table->refused++;
		return NULL;
	}
	module = module_location(table);
	module->fd = -1;
	module->serial = ++table->serials;
	module->key = key;
	module->known_pid = table->walked_pid;
	module->identity = key;
	module->path = memory_text(path, strlen(path));
	last = strrchr(module->path, '/');
	module->name = last && last[1] ? last + 1 : module->path;
	module->libc = name_is_libc(module->name);
	*index_put(&table->at, key, NULL) = module->number;
	table->open_count++;
	++*index_put(&table->known_by, (uint64_t)table->walked_pid, NULL);
	return module;
}

/* Leaves a module closed, for nothing is known of it now: the next walk that needs it opens it. */
static uint32_t module_put_off(struct module_table *table, struct module *module)
{
	module->elf = (struct elf_file){.fd = -1};
	module->table = (struct frame_table){.without = true};
	module->closed = true;
	table->open_count--;
	table->refused++;
	return MODULE_NONE;
}

/* True if another parser is to get a request about the module's file that failed. */
static bool is_put_off(struct module *module, int err)
{
	if (err == -EPIPE)
		module->ended++;
	return err == -EAGAIN || (err == -EPIPE && module->ended < FILE_ENDS_MAX);
}

/* Fills the module's elf by a parser. Where there is none any more, all of the file is taken for
 * code of this machine at its own offsets, and it exports nothing: no process with privileges
 * interprets anything of it. Returns 0; -EAGAIN: no parser could read it now; or -ENOEXEC: it is no
 * ELF file, or one that ends parsers. */
static int head_read(struct module_table *table, struct module *module)
{
	struct elf_file *elf = &module->elf;
	int err = table->parser ? file_head_request(table->parser, elf) : -ECHILD;

	if (err == -ECHILD) {
		elf->machine = machine_of(false)->elf;
		elf->segment_count = 1;
		elf->segments[0] = (struct elf_segment){0, elf->bytes, 0, elf->bytes, true};
		return 0;
	}
	return err && is_put_off(module, err) ? -EAGAIN : err ? -ENOEXEC : 0;
}

/* Fills a module from its file. A file without code is kept as well: it is not opened again. */
static uint32_t module_fill(struct module_table *table, struct module *module, uint64_t bytes)
{
	const struct machine *machine = NULL;
	int err;

	module->elf = (struct elf_file){.fd = module->fd, .image = module->image, .bytes = bytes};
	err = head_read(table, module);
	if (err == -EAGAIN)
		return module_put_off(table, module);
	if (!err)
		machine = machine_of_elf(module->elf.machine);
	if (!machine)
		module->elf = (struct elf_file){.fd = -1};
	module->table = (struct frame_table){.machine = machine,
					     .without = !module->elf.bytes || !table->parser ||
							table->without_tables};
	module->kind = strstr(module->name, ".so") || module->image ? FRAME_LIBRARY : FRAME_PROGRAM;
	if (module->elf.build_id_bytes && module->uid != OWNER_UNKNOWN)
		module->identity = module_identity(&module->elf, module->uid);
	free(module->location);
	module->location = module_location_text(module->path, &module->elf);
	return module->elf.bytes ? module->number : MODULE_NONE;
}

/* Makes a known, closed module ready to be filled again. NULL: it is not closed, or too many are
 * open. */
static struct module *module_reopen(struct module_table *table, uint64_t number)
{
	struct module *module = table->modules[number];

	if (!module->closed || table->open_count >= table->open_max) {
		table->refused += module->closed;
		return NULL;
	}
	module->closed = false;
	table->open_count++;
	return module;
}

static uint32_t module_known(const struct module_table *table, uint64_t number)
{
	return table->modules[number]->elf.bytes ? (uint32_t)number : MODULE_NONE;
}

uint32_t module_of_file(struct module_table *table, int fd, const char *path, int64_t tid)
{
	struct module *module = NULL;
	uint64_t *known = NULL;
	struct stat file;

	if (!fstat(fd, &file) && S_ISREG(file.st_mode)) {
		known = index_find(&table->at, module_file_key(&file));
		module = known ? module_reopen(table, *known)
			       : module_add(table, module_file_key(&file), path);
	}
	if (!module) {
		close(fd);
		return known ? module_known(table, *known) : MODULE_NONE;
	}
	module->fd = fd;
	module->tid = tid;
	module->uid = module_file_owner(fd, &file);
	if (module_fill(table, module, (uint64_t)file.st_size) == MODULE_NONE) {
		close(fd);
		module->fd = -1;
		return MODULE_NONE;
	}
	return module->number;
}

uint32_t module_of_image(struct module_table *table, const char *image, size_t bytes,
			 const char *name)
{
	uint64_t key = hash_bytes(image, bytes), *known = index_find(&table->at, key);
	struct module *module;

	if (known && !table->modules[*known]->closed)
		return module_known(table, *known);
	module = known ? module_reopen(table, *known) : module_add(table, key, name);
	if (!module)
		return MODULE_NONE;
	if (!module->image) {
		module->image = memory_get(bytes);
		memcpy(module->image, image, bytes);
	}
	return module_fill(table, module, bytes);
}

uint32_t module_of_process(struct module_table *table, int64_t pid, int64_t tid, uint64_t start,
			   int64_t uid)
{
	const uint64_t words[] = {(uint64_t)pid, start, FRAME_JIT};
	uint64_t key = hash_bytes(words, sizeof(words)), *known = index_find(&table->at, key);
	struct module *module;

	if (known) {
		module_reopen(table, *known);
		return (uint32_t)*known;
	}
	module = module_add(table, key, "[jit]");
	if (!module)
		return MODULE_NONE;
	module->kind = FRAME_JIT;
	module->pid = pid;
	module->tid = tid;
	module->uid = uid;
	module->table.without = true;
	return module->number;
}

/* Gives back unwind tables until they are within the limit: those used longest ago, but not the
 * newest. */
static void tables_trim(struct module_table *table, const struct module *newest)
{
	for (;;) {
		struct module *oldest = NULL;
		size_t bytes = 0;

		for (uint32_t i = 0; i < table->count; i++) {
			struct module *module = table->modules[i];
			size_t its = is_read(table, module) ? module->table.read_bytes : 0;

			bytes += its;
			if (its && module != newest && (!oldest || module->used < oldest->used))
				oldest = module;
		}
		if (bytes <= MODULE_TABLES_BYTES_MAX || !oldest)
			return;
		table_shrink(table, oldest);
		table->shrunk++;
	}
}

/* Forgets all rows if they take too much memory: they are quickly made again. */
static void rows_trim(struct module_table *table)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct frame_table *rows = &table->modules[i]->table;

		bytes += rows->rows.capacity * sizeof(struct frame_row) +
			 rows->rows.slots.capacity * 17 +
			 rows->operation_capacity * sizeof(*rows->operations);
	}
	if (bytes <= MODULE_ROWS_BYTES_MAX)
		return;
	for (uint32_t i = 0; i < table->count; i++)
		rows_forget(&table->modules[i]->table);
}

static void row_reserve(struct module_table *table, const struct module *module)
{
	if (module->table.rows.count == module->table.rows.capacity &&
	    module->table.rows.count >= 1024)
		rows_trim(table);
}

struct frame_row *module_row_other(struct module_table *table, struct module *module,
				   uint64_t address)
{
	row_reserve(table, module);
	return row_put(&module->table, address);
}

int module_returns(struct module_table *table, struct module *module, uint64_t address, bool exact,
		   struct file_returns_answer *answer)
{
	int64_t start_ns;
	int err;

	if (time_is_up(table)) {
		refuse(table);
		return -EAGAIN;
	}
	start_ns = clock_monotonic_ns();
	err = table->parser && module->ended < FILE_ENDS_MAX
		      ? file_returns_request(table->parser, &module->elf, address, exact, answer)
		      : -ECHILD;
	module_table_spend(table, clock_monotonic_ns() - start_ns);
	if (!err || !is_put_off(module, err))
		return err;
	refuse(table);
	return -EAGAIN;
}

const struct runtime_exports *module_exports(struct module_table *table, struct module *module)
{
	int err;

	if (module->has_exports || module->elf.fd < 0)
		return &module->exports;
	err = table->parser ? file_exports_request(table->parser, &module->elf, &module->exports)
			    : -ECHILD;
	module->has_exports = !err || !is_put_off(module, err);
	return &module->exports;
}

const struct frame_row *module_row(struct module_table *table, struct module *module,
				   uint64_t address)
{
	const struct frame_row *row;
	int64_t start_ns;
	bool read;

	if (row_find(&module->table, address, &row))
		return row;
	read = is_read(table, module);
	/* a row that can't be read now must not be kept as missing */
	if (!read && time_is_up(table)) {
		refuse(table);
		return NULL;
	}
	row_reserve(table, module);
	start_ns = clock_monotonic_ns();
	if (row_request(table, module, address, !read)) {
		refuse(table);
		return NULL;
	}
	module->used = ++table->uses;
	if (!read) {
		module_table_spend(table, clock_monotonic_ns() - start_ns);
		tables_trim(table, module);
	}
	row_find(&module->table, address, &row);
	return row;
}
