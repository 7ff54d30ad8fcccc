/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Restores the terminal whatever becomes of the process that draws on it.
 *
 * How the terminal was, and the bytes that bring it back, are prepared before the screen begins:
 * signal handlers and other processes restore it without ncurses. The keeper (keeper.h) has
 * them in memory that it shares with its workers, and restores the terminal after a worker that was
 * killed or given up.
 */
#ifndef TSNAP_KEEPER_TERMINAL_RESCUE_H
#define TSNAP_KEEPER_TERMINAL_RESCUE_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#define RESCUE_BYTES 256

struct terminal_rescue {
	struct termios before; /* modes before the first screen */
	struct termios screen; /* modes of the screen */
	bool saved;	       /* before is filled */
	char bytes[RESCUE_BYTES];
	size_t length;
	_Atomic bool taken; /* the screen has the terminal */
};

/* Uses this memory from now on; a child of fork(2) has memory of its own until it calls this,
 * too. */
void terminal_rescue_use(struct terminal_rescue *shared);
/* Saves the modes, if that was not done yet. 0 or -errno. */
int terminal_rescue_save(void);
/* Prepares the bytes, by the terminal that setupterm(3) has set up, and takes the terminal: from
 * then on signals that end the process, and the lack of memory, restore it. */
void terminal_rescue_begin(void);
void terminal_rescue_end(void);
/* Marks that the screen has the terminal, in its present modes; or that it has given it back. */
void terminal_rescue_take(bool taken);
bool terminal_rescue_taken(void);

/* True if the process may use the terminal: it is in the foreground, or the terminal is not that of
 * its session. */
bool terminal_in_front(void);
/* Restores the terminal if a screen has it, without waiting for it: async-signal-safe, and for any
 * thread. */
void terminal_rescue(void);

#endif
