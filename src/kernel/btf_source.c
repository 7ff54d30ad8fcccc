/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/btf_file.h"
#include "kernel/type_source.h"

#include <errno.h>

static int field_find(const struct btf_file *btf, const struct field_row *row, unsigned char *which,
		      uint32_t *offset)
{
	uint32_t bytes, type = btf_struct_find(btf, row->of, &bytes);

	for (unsigned char n = 0; type && n < FIELD_NAMES_MAX && row->names[n]; n++) {
		int64_t found = btf_member_find(btf, type, row->names[n]);

		if (found < 0 || found + row->bytes > bytes)
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
	struct btf_file btf;
	int result = btf_file_read(path, &btf, e);

	if (result)
		return result;
	for (size_t i = 0; !result && i < field_count; i++) {
		result = field_find(&btf, &field_rows[i], &read.name[i], &read.offset[i]);
		if (result)
			error_set(e, EINVAL, EXIT_FAILED,
				  "BTF '%s' has no %s.%s: it is not of a whole kernel", path,
				  field_rows[i].of, field_rows[i].names[0]);
	}
	btf_file_done(&btf);
	if (!result)
		*layout = read;
	return result;
}
