/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stack/frame_step.h"
#include "stack/unwinder.h"
#include "stack/walker.h"

int walker_leave_jit(struct walker *walker)
{
	if (walker->exact && walker_return_at_once(walker))
		return 0;
	return frame_step_pointer(walker->machine, &walker->unwinder->memory, &walker->registers);
}
