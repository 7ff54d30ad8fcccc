/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/btf_types.h"
#include "kernel/type_source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int field_find(const struct btf_types *btf, uint32_t of, size_t field,
		      struct field_layout *layout)
{
	const struct field_row *row = &field_rows[field];

	for (unsigned char n = 0; of && n < FIELD_NAMES_MAX && row->names[n]; n++) {
		int64_t found = btf_member_find(btf, of, row->names[n], row->bytes);

		if (found < 0 || found > STRUCT_BYTES_MAX)
			continue;
		layout->name[field] = n;
		layout->offset[field] = (uint32_t)found;
		return 0;
	}
	return -ENOENT;
}

int btf_layout_read(const char *path, struct field_layout *layout, struct error *e)
{
	struct field_layout read = {.sets = layout->sets};
	struct btf_types btf;
	char what[ERROR_LINE_SIZE];
	uint32_t of = 0;
	int result = btf_types_open(&btf, path, e);

	if (result)
		return result;
	for (size_t i = 0; !result && i < field_count; i++) {
		if (!field_there(&read, i))
			continue;
		if (!i || strcmp(field_rows[i].of, field_rows[i - 1].of))
			of = btf_struct_find(&btf, field_rows[i].of);
		result = field_find(&btf, of, i, &read);
		if (result && field_rows[i].sets) {
			read.lacking[i] = true;
			result = 0;
		}
		if (result)
			error_set(e, EINVAL, EXIT_FAILED,
				  "BTF '%s' has no %s.%s: it is not of a whole kernel", path,
				  field_rows[i].of, field_rows[i].names[0]);
	}
	btf_types_close(&btf);
	snprintf(what, sizeof(what), "BTF '%s'", path);
	if (!result)
		result = field_layout_check(&read, what, e);
	if (!result)
		*layout = read;
	return result;
}
