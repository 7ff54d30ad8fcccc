/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TSNAP_UNWIND_NAME_CLEAN_H
#define TSNAP_UNWIND_NAME_CLEAN_H

/* Replaces ; in a name, which the folded form puts between frames, and control characters. */
static inline void function_name_clean(char *name)
{
	for (; *name; name++) {
		if (*name == ';')
			*name = ':';
		else if ((unsigned char)*name < ' ' || *name == 0x7f)
			*name = '?';
	}
}

#endif
