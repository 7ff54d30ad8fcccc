/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Terminals that a bundle knows where the host has no terminfo of them. */
#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>

/* A terminal, and its entry in the form that ncurses takes from the variable TERMINFO. */
static const struct {
	const char *name, *entry;
} terminals[] = {
#include "terminals.inc"
};

int __real_setupterm(const char *name, int descriptor, int *known);
int __wrap_setupterm(const char *name, int descriptor, int *known);

/* What the linker calls in place of setupterm(3) (--wrap). The host's own entry comes first. */
int __wrap_setupterm(const char *name, int descriptor, int *known)
{
	int result = __real_setupterm(name, descriptor, known);

	if (result == OK)
		return result;
	for (size_t i = 0; i < sizeof(terminals) / sizeof(terminals[0]); i++)
		if (!strcmp(terminals[i].name, name)) {
			setenv("TERMINFO", terminals[i].entry, 1);
			return __real_setupterm(name, descriptor, known);
		}
	return result;
}
