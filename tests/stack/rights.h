/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions for hostile programs: whoever starts them, they run as a user without rights. */
#ifndef TSNAP_TESTS_STACK_RIGHTS_H
#define TSNAP_TESTS_STACK_RIGHTS_H

#include <grp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NOBODY 65534

static inline void rights_drop(void)
{
	if (geteuid())
		return;
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		exit(EXIT_FAILURE);
	prctl(PR_SET_DUMPABLE, 1);
}

#endif
