/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A packed bundle: a program whose segments with the compiler have no bytes in the file, so that
 * the kernel gives it empty pages there. The pages are one zstd frame, which only the process that
 * compiles unpacks, each time; all else runs as it lies in the file. The file ends with struct
 * pack_end.
 */
#ifndef TSNAP_BUNDLE_PACK_H
#define TSNAP_BUNDLE_PACK_H

#include <stdint.h>

#define PACK_MAGIC "tsnap-zs" /* without its NUL */

struct pack_end {
	uint64_t offset; /* of the frame, at the start of a page */
	uint64_t packed_bytes;
	char magic[8];
};

#endif
