/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/type_source.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BTF_BYTES_MAX (256l << 20)
#define NESTING_MAX 8 /* anonymous structs and unions in one another */

/* Bytes from the start of type to the member name, anonymous members searched as well; -1 if there
 * is none. */
static int64_t member_offset(const struct btf *btf, const struct btf_type *type, const char *name,
			     int nesting)
{
	const struct btf_member *member = btf_members(type);

	for (unsigned int i = 0; i < btf_vlen(type); i++, member++) {
		const char *is = btf__name_by_offset(btf, member->name_off);
		uint32_t bits = btf_member_bit_offset(type, i);
		const struct btf_type *inner;
		int64_t offset;

		if (is && !strcmp(is, name))
			return bits % 8 || btf_member_bitfield_size(type, i) ? -1
									     : (int64_t)(bits / 8);
		if ((is && *is) || nesting >= NESTING_MAX)
			continue;
		inner = btf__type_by_id(btf, member->type);
		if (!inner || !btf_is_composite(inner))
			continue;
		offset = member_offset(btf, inner, name, nesting + 1);
		if (offset >= 0)
			return offset + bits / 8;
	}
	return -1;
}

static int field_find(const struct btf *btf, const struct field_row *row, unsigned char *which,
		      uint32_t *offset)
{
	int id = btf__find_by_name_kind(btf, row->of, BTF_KIND_STRUCT);
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (unsigned int)id) : NULL;

	for (unsigned char n = 0; type && n < FIELD_NAMES_MAX && row->names[n]; n++) {
		int64_t found = member_offset(btf, type, row->names[n], 0);

		if (found < 0 || found + row->bytes > type->size)
			continue;
		*which = n;
		*offset = (uint32_t)found;
		return 0;
	}
	return -ENOENT;
}

int btf_layout_read(const char *path, struct field_layout *layout, struct error *e)
{
	struct field_layout read = {0};
	struct stat stat_of;
	struct btf *btf;
	char words[128];
	int result = 0;

	if (stat(path, &stat_of))
		return error_set(e, errno, EXIT_FAILED, "BTF file '%s' can't be read: %s", path,
				 strerror(errno));
	if (!S_ISREG(stat_of.st_mode) || stat_of.st_size > BTF_BYTES_MAX)
		return error_set(e, EINVAL, EXIT_FAILED,
				 "'%s' is not a BTF file: no regular file of at most 256 MB", path);
	btf = btf__parse(path, NULL);
	result = (int)libbpf_get_error(btf);
	if (result) {
		/* libbpf's own error numbers are no errno */
		libbpf_strerror(result, words, sizeof(words));
		return error_set(
			e, EINVAL, EXIT_FAILED,
			"'%s' is not BTF that can be used: %s; give the vmlinux BTF of this "
			"kernel, raw or in ELF",
			path, words);
	}
	for (size_t i = 0; !result && i < field_count; i++) {
		result = field_find(btf, &field_rows[i], &read.name[i], &read.offset[i]);
		if (result)
			error_set(e, EINVAL, EXIT_FAILED,
				  "BTF '%s' has no %s.%s: it is not of a whole kernel", path,
				  field_rows[i].of, field_rows[i].names[0]);
	}
	btf__free(btf);
	if (!result)
		*layout = read;
	return result;
}

int btf_tracepoint_id(const char *event)
{
	struct btf *btf = btf__parse(KERNEL_BTF_PATH, NULL);
	char name[64];
	int id;

	if (libbpf_get_error(btf))
		return -ENOENT;
	/* include/trace/bpf_probe.h makes a typedef of this name for each tracepoint */
	snprintf(name, sizeof(name), "btf_trace_%s", event);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
	btf__free(btf);
	return id > 0 ? id : -ENOENT;
}
