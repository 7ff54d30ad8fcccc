/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System V semaphores and message queues, by the id that ipcs(1) shows, and POSIX message queues,
 * by name. The kernel does not show which thread could wake a waiting one; of a semaphore it shows
 * who changed it last. */
#include "waits/wait_object.h"

#include <sys/sem.h>

static void semaphores_describe(struct wait *wait)
{
	struct sembuf operation;
	int64_t pid;

	text_add_format(wait->text, "semaphores %d", (int)wait->arg[0]);
	/* one operation: of several it is not known which one waits */
	if (wait->numbers_only || wait->arg[2] != 1 || !wait->waits->own_ids ||
	    !wait_shares_namespace(wait, "ipc", 0) ||
	    !wait_memory_read(wait, wait_address(wait, 1), &operation, sizeof(operation)))
		return;
	pid = semctl((int)wait->arg[0], operation.sem_num, GETPID);
	if (pid > 0)
		wait_add_thread(wait, ", last changed by ", pid);
}

const struct wait_object semaphores_object = {
	.kind = WAIT_LOCK,
	.serves = SERVES_LOCK,
	.calls =
		(const struct wait_call[]){
			{"semop", semaphores_describe, 0},
			{"semtimedop", semaphores_describe, 3},
			{"semtimedop_time64", semaphores_describe, 3},
			{0},
		},
	.threads_end = true,
};

static void messages_describe(struct wait *wait)
{
	text_add_format(wait->text, "message queue %d", (int)wait->arg[0]);
}

/* The descriptor is that of a file in mqueue, mq_overview(7), which need not be mounted. */
static void named_messages_describe(struct wait *wait)
{
	text_add_format(wait->text, "message queue%s%s", wait->link ? " " : "",
			wait->link ? wait->link : "");
}

const struct wait_object messages_object = {
	.kind = WAIT_EVENT,
	.calls =
		(const struct wait_call[]){
			{"msgrcv", messages_describe, 0},
			{"msgsnd", messages_describe, 0},
			{"mq_timedreceive", named_messages_describe, 4},
			{"mq_timedreceive_time64", named_messages_describe, 4},
			{"mq_timedsend", named_messages_describe, 4},
			{"mq_timedsend_time64", named_messages_describe, 4},
			{0},
		},
	.file_type = "mqueue", /* in poll(2) and the like */
	.describe = named_messages_describe,
	.threads_end = true,
};
