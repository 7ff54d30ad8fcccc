/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts by which probes of the user's own count events. gcc includes this file; the BPF text gets
 * the same bytes pasted in.
 */
#ifndef TSNAP_PROBE_H
#define TSNAP_PROBE_H

#define PROBE_TEXT_WORDS 16
#define PROBE_TEXT_BYTES (8ul * PROBE_TEXT_WORDS)
#define PROBE_TEXTS_MAX 32768

/* Value of ts_probe_texts, by its hash: a text that is ended by a NUL, and cut if that is its last
 * byte. */
struct probe_text {
	__u64 words[PROBE_TEXT_WORDS];
};

#endif
