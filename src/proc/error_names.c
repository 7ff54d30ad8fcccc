/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/error_names.h"
#include "base/names.h"

#include <stdio.h>
#include <string.h>

/* Codes inside the kernel (include/linux/errno.h) that reach no caller: after a signal the kernel
 * turns them into EINTR, or restarts the call. */
static const struct {
	uint32_t number;
	const char *name;
} restarts[] = {
	{512, "ERESTARTSYS"}, {513, "ERESTARTNOINTR"},	      {514, "ERESTARTNOHAND"},
	{515, "ENOIOCTLCMD"}, {516, "ERESTART_RESTARTBLOCK"}, {517, "EPROBE_DEFER"},
	{529, "EIOCBQUEUED"},
};

const char *error_name(uint32_t number)
{
	char digits[16];

	if (!number)
		return NULL;
	for (size_t i = 0; i < sizeof(restarts) / sizeof(*restarts); i++)
		if (restarts[i].number == number)
			return name_of_string(restarts[i].name);
#if __GLIBC_PREREQ(2, 32)
	if (strerrorname_np((int)number))
		return name_of_string(strerrorname_np((int)number));
#endif
	snprintf(digits, sizeof(digits), "%u", number);
	return name_of_string(digits);
}
