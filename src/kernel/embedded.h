/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BPF text, embedded byte for byte by cmake/embed.cmake. */
#ifndef TSNAP_KERNEL_EMBEDDED_H
#define TSNAP_KERNEL_EMBEDDED_H

struct embedded_file {
	const char *name; /* "bpf_text/maps.bpf.c" */
	const char *text; /* NUL-terminated */
};

extern const struct embedded_file embedded_files[]; /* ends with a NULL name */

/* Returns the text of bpf_text/<name>; every name that this program uses exists (a unit test checks
 * that). */
const char *embedded_text(const char *name);

#endif
