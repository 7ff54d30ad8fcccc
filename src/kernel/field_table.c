/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/field_table.h"
#include "base/host_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct field_row field_rows[] = {
	{"task_struct", {"__state", "state"}, "unsigned int", "", 4, 0},
	{"task_struct", {"stack"}, "void *", "", 8, 0},
	{"task_struct", {"flags"}, "unsigned int", "", 4, 0},
	{"task_struct", {"exit_state"}, "int", "", 4, 0},
	{"task_struct", {"pid"}, "int", "", 4, 0},
	{"task_struct", {"tgid"}, "int", "", 4, 0},
	{"task_struct", {"real_parent"}, "struct task_struct *", "", 8, 0},
	{"task_struct", {"nvcsw"}, "unsigned long", "", 8, 0},
	{"task_struct", {"start_boottime", "real_start_time"}, "unsigned long long", "", 8, 0},
	{"task_struct", {"cred"}, "struct cred *", "", 8, 0},
	{"task_struct", {"comm"}, "char ", "[16]", 16, 0},
	{"task_struct", {"group_leader"}, "struct task_struct *", "", 8, 0},
	{"task_struct", {"thread_pid", "pids"}, "struct pid *", "", 8, 0},
	{"task_struct", {"sched_task_group"}, "struct task_group *", "", 8, FIELDS_QUOTA},
	{"task_struct", {"prio"}, "int", "", 4, FIELDS_QUOTA},
	{"task_struct",
	 {"files"},
	 "struct files_struct *",
	 "",
	 8,
	 FIELDS_SOCKET | FIELDS_PACKET | FIELDS_LOCK},
	{"task_struct", {"on_cpu"}, "int", "", 4, FIELDS_LOCK},
	{"task_struct", {"nivcsw"}, "unsigned long", "", 8, FIELDS_LOCK},
	{"task_struct", {"thread"}, "char ", "[0]", 0, FIELDS_LOCK},
	{"task_struct", {"exit_code"}, "int", "", 4, FIELDS_END},
	{"task_struct", {"signal"}, "struct signal_struct *", "", 8, FIELDS_END},
	{"cred", {"euid"}, "unsigned int", "", 4, 0},
	{"pid", {"level"}, "unsigned int", "", 4, 0},
	{"pid", {"numbers"}, "char ", "[0]", 0, 0},
	{"pid", {"tasks"}, "void *", "", 8, FIELDS_LOCK},
	{"thread_struct", {"sp", "cpu_context"}, "unsigned long", "", 8, FIELDS_LOCK},
	{"mutex", {"wait_list"}, "char ", "[16]", 16, FIELDS_LOCK},
	{"mutex", {"owner"}, "unsigned long", "", 8, FIELDS_LOCK},
	{"mutex", {"count"}, "int", "", 4, FIELDS_LOCK}, /* until 4.9 */
	/* RHEL 7 has the owner in its place */
	{"rw_semaphore", {"wait_list"}, "char ", "[0]", 0, FIELDS_LOCK},
	{"rw_semaphore", {"owner"}, "unsigned long", "", 8, FIELDS_LOCK},
	{"rw_semaphore", {"count"}, "long", "", 8, FIELDS_LOCK},
	{"semaphore", {"wait_list"}, "char ", "[16]", 16, FIELDS_LOCK},
	{"signal_struct", {"live"}, "int", "", 4, FIELDS_END},
	{"signal_struct", {"oom_mm"}, "struct mm_struct *", "", 8, FIELDS_END}, /* 4.9 */
	{"request", {"q"}, "struct request_queue *", "", 8, FIELDS_BLOCK},
	{"request", {"cmd_flags"}, "unsigned int", "", 4, FIELDS_BLOCK},
	{"request", {"__data_len"}, "unsigned int", "", 4, FIELDS_BLOCK},
	{"request", {"rq_disk"}, "struct gendisk *", "", 8, FIELDS_BLOCK}, /* or q->disk */
	{"request_queue", {"disk"}, "struct gendisk *", "", 8, FIELDS_BLOCK},
	{"gendisk", {"major"}, "int", "", 4, FIELDS_BLOCK},
	{"gendisk", {"first_minor"}, "int", "", 4, FIELDS_BLOCK},
	{"rq", {"cpu"}, "int", "", 4, FIELDS_QUOTA}, /* no header has it */
	{"files_struct",
	 {"fdt"},
	 "struct fdtable *",
	 "",
	 8,
	 FIELDS_SOCKET | FIELDS_PACKET | FIELDS_LOCK},
	{"fdtable", {"fd"}, "struct file **", "", 8, FIELDS_SOCKET | FIELDS_PACKET | FIELDS_LOCK},
	{"file", {"private_data"}, "void *", "", 8, FIELDS_SOCKET | FIELDS_PACKET},
	{"socket", {"sk"}, "struct sock *", "", 8, FIELDS_SOCKET | FIELDS_PACKET},
	{"sock_common", {"skc_daddr"}, "unsigned int", "", 4, FIELDS_SOCKET | FIELDS_PACKET},
	{"sock_common", {"skc_rcv_saddr"}, "unsigned int", "", 4, FIELDS_SOCKET},
	{"sock_common", {"skc_dport"}, "unsigned short", "", 2, FIELDS_SOCKET | FIELDS_PACKET},
	{"sock_common", {"skc_family"}, "unsigned short", "", 2, FIELDS_SOCKET},
	{"sock_common", {"skc_state"}, "unsigned char", "", 1, FIELDS_SOCKET},
	{"sock_common", {"skc_prot"}, "struct proto *", "", 8, FIELDS_SOCKET},
	{"sock_common", {"skc_v6_daddr"}, "char ", "[16]", 16, FIELDS_SOCKET | FIELDS_PACKET},
	{"sock_common", {"skc_v6_rcv_saddr"}, "char ", "[16]", 16, FIELDS_SOCKET},
	{"sock_common", {"skc_flags"}, "unsigned long", "", 8, FIELDS_SOCKET},
	{"proto", {"name"}, "char ", "[32]", 32, FIELDS_SOCKET},
	{"sock", {"sk_err"}, "int", "", 4, FIELDS_SOCKET},
	{"inet_sock", {"inet_sport"}, "unsigned short", "", 2, FIELDS_SOCKET},
	{"tcp_sock", {"bytes_received"}, "unsigned long long", "", 8, FIELDS_SOCKET},
	{"tcp_sock", {"bytes_acked"}, "unsigned long long", "", 8, FIELDS_SOCKET},
	{"tcp_sock", {"total_retrans"}, "unsigned int", "", 4, FIELDS_SOCKET},
	{"tcp_sock", {"snd_una"}, "unsigned int", "", 4, FIELDS_SOCKET},
	{"tcp_sock", {"write_seq"}, "unsigned int", "", 4, FIELDS_SOCKET},
	{"sk_buff", {"sk"}, "struct sock_common *", "", 8, FIELDS_PACKET},
	{"sk_buff", {"dev"}, "struct net_device *", "", 8, FIELDS_PACKET},
	{"sk_buff", {"len"}, "unsigned int", "", 4, FIELDS_PACKET},
	{"sk_buff", {"data_len"}, "unsigned int", "", 4, FIELDS_PACKET},
	{"sk_buff", {"protocol"}, "unsigned short", "", 2, FIELDS_PACKET},
	{"sk_buff", {"network_header"}, "unsigned short", "", 2, FIELDS_PACKET},
	{"sk_buff", {"head"}, "unsigned char *", "", 8, FIELDS_PACKET},
	{"sk_buff", {"data"}, "unsigned char *", "", 8, FIELDS_PACKET},
	{"net_device", {"flags"}, "unsigned int", "", 4, FIELDS_PACKET},
	{"net_device", {"nd_net"}, "struct net *", "", 8, FIELDS_PACKET},
};

const size_t field_count = sizeof(field_rows) / sizeof(field_rows[0]);
_Static_assert(sizeof(field_rows) / sizeof(field_rows[0]) <= FIELD_MAX, "FIELD_MAX is too small");

size_t field_index(const char *of, const char *name)
{
	for (size_t i = 0; i < field_count; i++)
		if (!strcmp(field_rows[i].of, of) && !strcmp(field_rows[i].names[0], name))
			return i;
	return 0;
}

bool field_there(const struct field_layout *layout, size_t field)
{
	unsigned int sets = field_rows[field].sets;

	return !sets || (layout->sets & sets && !layout->lacking[field]);
}

int field_offset_find(const struct field_layout *layout, const char *of, const char *name)
{
	const size_t field = field_index(of, name);

	return field_there(layout, field) ? (int)layout->offset[field] : -1;
}

bool field_sets_there(const struct field_layout *layout, unsigned int sets)
{
	const size_t disk = field_index("request", "rq_disk");
	const size_t queue_disk = field_index("request_queue", "disk");

	for (size_t i = 0; i < field_count; i++)
		if (field_rows[i].sets & sets && i != disk && i != queue_disk &&
		    !field_there(layout, i))
			return false;
	return !(sets & FIELDS_BLOCK) || field_there(layout, disk) ||
	       field_there(layout, queue_disk);
}

static const char *field_name(const struct field_layout *layout, size_t field)
{
	return field_rows[field].names[layout->name[field]];
}

/* Returns the field of struct `of` with the lowest offset from `from` on, or -1. */
static int field_after(const struct field_layout *layout, const char *of, uint32_t from)
{
	int next = -1;

	for (size_t i = 0; i < field_count; i++)
		if (!strcmp(field_rows[i].of, of) && field_there(layout, i) &&
		    layout->offset[i] >= from &&
		    (next < 0 || layout->offset[i] < layout->offset[next]))
			next = (int)i;
	return next;
}

static void struct_write(const struct field_layout *layout, const char *of, struct text *to)
{
	uint32_t end = 0, from = 0;
	int field;

	if (field_after(layout, of, 0) < 0)
		return;
	text_add_format(to, "struct %s {\n", of);
	while ((field = field_after(layout, of, from)) >= 0) {
		const struct field_row *row = &field_rows[field];

		if (layout->offset[field] > end)
			text_add_format(to, "\tchar pad_%u[%u];\n", end,
					layout->offset[field] - end);
		text_add_format(to, "\t%s %s%s;\n", row->type, field_name(layout, (size_t)field),
				row->array);
		end = layout->offset[field] + row->bytes;
		from = row->bytes ? end : end + 1;
	}
	text_add_string(to, "};\n");
}

void field_header_write(const struct field_layout *layout, struct text *to)
{
	for (size_t i = 0; i < field_count; i++)
		if (!i || strcmp(field_rows[i].of, field_rows[i - 1].of))
			struct_write(layout, field_rows[i].of, to);
	for (size_t i = 0; i < field_count; i++) {
		const char *of = field_rows[i].of, *name = field_name(layout, i);

		if (!field_there(layout, i))
			continue;
		text_add_format(to, "#define HAVE_%s_%s 1\n", of, name);
		text_add_format(
			to, "_Static_assert(__builtin_offsetof(struct %s, %s) == %u, \"%s.%s\");\n",
			of, name, layout->offset[i], of, name);
	}
}

#define OFFSETS_MAGIC "tsnap offsets 1"

void field_offsets_write(const struct field_layout *layout, const char *release,
			 const char *machine, struct text *to)
{
	text_add_format(to, "%s\nrelease %s\nmachine %s\n", OFFSETS_MAGIC, release, machine);
	for (size_t i = 0; i < field_count; i++)
		if (field_there(layout, i))
			text_add_format(to, "%s.%s %u\n", field_rows[i].of, field_name(layout, i),
					layout->offset[i]);
}

/* Reads a line "struct.member 123" into layout; -EINVAL if it is not of that form. Unknown fields
 * pass: they are another tsnap's. */
static int offsets_line_read(char *line, struct field_layout *layout, bool *found)
{
	char *number = strchr(line, ' '), *member = strchr(line, '.'), *end;
	unsigned long offset;

	if (!number || !member || member > number)
		return -EINVAL;
	*number++ = 0;
	*member++ = 0;
	offset = strtoul(number, &end, 10);
	if (end == number || *end || offset > STRUCT_BYTES_MAX || *number == '-')
		return -EINVAL;
	for (size_t i = 0; i < field_count; i++)
		for (unsigned char n = 0; n < FIELD_NAMES_MAX; n++) {
			const char *name = field_rows[i].names[n];

			if (!name || strcmp(name, member) || strcmp(field_rows[i].of, line))
				continue;
			layout->name[i] = n;
			layout->offset[i] = (uint32_t)offset;
			found[i] = true;
		}
	return 0;
}

static bool fields_overlap(const struct field_layout *layout, size_t i, size_t j)
{
	return !strcmp(field_rows[i].of, field_rows[j].of) &&
	       layout->offset[j] < layout->offset[i] + field_rows[i].bytes &&
	       layout->offset[i] < layout->offset[j] + field_rows[j].bytes;
}

int field_layout_check(const struct field_layout *layout, const char *what, struct error *e)
{
	for (size_t i = 0; i < field_count; i++) {
		if (!field_there(layout, i))
			continue;
		if (layout->offset[i] > STRUCT_BYTES_MAX)
			return error_set(e, EINVAL, EXIT_FAILED,
					 "%s puts %s.%s at byte %u: no kernel has it there", what,
					 field_rows[i].of, field_name(layout, i),
					 layout->offset[i]);
		for (size_t j = 0; j < i; j++)
			if (field_there(layout, j) && fields_overlap(layout, i, j))
				return error_set(
					e, EINVAL, EXIT_FAILED,
					"%s: %s.%s and %s.%s overlap: no kernel has that layout",
					what, field_rows[i].of, field_name(layout, i),
					field_rows[j].of, field_name(layout, j));
	}
	return 0;
}

int field_offsets_read(const char *path, const char *release, const char *machine,
		       struct field_layout *layout, struct error *e)
{
	char text[8192], release_line[192], machine_line[192], *save = NULL;
	ssize_t got = host_file_read(path, text, sizeof(text));
	const char *const head[] = {OFFSETS_MAGIC, release_line, machine_line};
	struct field_layout read = {.sets = layout->sets};
	bool found[FIELD_MAX] = {false};
	char what[ERROR_LINE_SIZE];
	int line_number = 0, result;

	if (got < 0)
		return error_set(e, (int)-got, EXIT_FAILED, "offsets file '%s' can't be read: %s",
				 path, strerror((int)-got));
	snprintf(release_line, sizeof(release_line), "release %s", release);
	snprintf(machine_line, sizeof(machine_line), "machine %s", machine);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (line_number++ < 3) {
			if (strcmp(line, head[line_number - 1]))
				return error_set(
					e, EINVAL, EXIT_FAILED,
					"offsets file '%s' is of another kernel or format: "
					"line %d is '%.60s', this host needs '%s'",
					path, line_number, line, head[line_number - 1]);
			continue;
		}
		if (offsets_line_read(line, &read, found))
			return error_set(e, EINVAL, EXIT_FAILED,
					 "offsets file '%s': line %d is not 'struct.member offset'",
					 path, line_number);
	}
	if (line_number < 3)
		return error_set(e, EINVAL, EXIT_FAILED, "'%s' is not an offsets file", path);
	for (size_t i = 0; i < field_count; i++) {
		read.lacking[i] = !found[i];
		if (!found[i] && !field_rows[i].sets)
			return error_set(e, EINVAL, EXIT_FAILED,
					 "offsets file '%s' lacks %s.%s; write a new one with "
					 "tsnap --write-offsets",
					 path, field_rows[i].of, field_rows[i].names[0]);
	}
	snprintf(what, sizeof(what), "offsets file '%s'", path);
	result = field_layout_check(&read, what, e);
	if (!result)
		*layout = read;
	return result;
}
