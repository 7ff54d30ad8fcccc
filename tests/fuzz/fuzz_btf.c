/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hostile BTF file, raw or in ELF: it gives a layout that a kernel can have, or is refused with a
 * message. Also the same bytes as an image with notes. */
#include "fuzz_file.h"
#include "kernel/type_source.h"
#include "kernel/host.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct field_layout layout;
	struct error e = {0};
	struct text header = {0};
	char path[FUZZ_PATH_SIZE];
	int fd = fuzz_file_make(bytes, length, path);

	memset(&layout, 0xaa, sizeof(layout));
	if (btf_layout_read(path, &layout, &e)) {
		must(e.line[0], "an error has words");
		must(layout.offset[0] == 0xaaaaaaaa, "a failure leaves the layout alone");
	} else {
		must(!field_layout_check(&layout, "it", &e), "a kernel can have it");
		field_header_write(&layout, &header);
	}
	version_code_of_vdso(bytes, length);
	close(fd);
	text_done(&header);
	error_done(&e);
	return 0;
}
