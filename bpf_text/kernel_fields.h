/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel structs are read here only, one static inline per field. The structs come from the
 * generated header (kernel/field_table.h): just the members used, at this kernel's offsets.
 * HAVE_<struct>_<member> says which of a member's old and new names exists. A read that fails
 * leaves zero. */

static inline __u32 task_tid(struct task_struct *task)
{
	__u32 tid = 0;

	bpf_probe_read_kernel(&tid, sizeof(tid), &task->pid);
	return tid;
}

/* Reads a member of a struct that a typed tracepoint hands over, by a plain load, which the
 * verifier checks. It is in assembly, because libbcc makes a helper call of every load from a
 * kernel pointer that it recognises. */
#define MEMBER_OF_TYPED(type, to, from, of, member) \
	asm volatile("%0 = *(" #type " *)(%1 + %2)" \
		     : "=r"(to)                     \
		     : "r"(from), "i"(__builtin_offsetof(struct of, member)))
#define MEMBER_TYPED(to, from, of, member) MEMBER_OF_TYPED(u32, to, from, of, member)

static inline __u32 task_tid_typed(struct task_struct *task)
{
	__u64 tid;

	MEMBER_TYPED(tid, task, task_struct, pid);
	return tid;
}

static inline __u32 task_tgid(struct task_struct *task)
{
	__u32 tgid = 0;

	bpf_probe_read_kernel(&tgid, sizeof(tgid), &task->tgid);
	return tgid;
}

/* Ids are translated to those that /proc shows, where that is not the first pid namespace's
 * (PID_NAMESPACE).
 *
 * Knobs: PID_NAMESPACE, the address of its struct pid_namespace; PID_NAMESPACE_LEVEL, how deep it
 * lies; PID_NUMBER_BYTES, the size of a struct upid: { int nr; struct pid_namespace *ns; }, with a
 * list node at its end until 4.14.
 */
#ifdef PID_NAMESPACE
static inline __u32 task_shown_tid(struct task_struct *task, __u32 tid)
{
	struct {
		__u32 number, unused;
		__u64 ns;
	} shown = {};
	struct pid *pid = 0;
	__u32 level = 0;

#ifdef HAVE_task_struct_thread_pid
	bpf_probe_read_kernel(&pid, sizeof(pid), &task->thread_pid);
#else
	bpf_probe_read_kernel(&pid, sizeof(pid), (char *)&task->pids + PIDS_LINK_BYTES);
#endif
	bpf_probe_read_kernel(&level, sizeof(level), &pid->level);
	if (level < PID_NAMESPACE_LEVEL)
		return 0;
	bpf_probe_read_kernel(&shown, sizeof(shown),
			      (char *)&pid->numbers + PID_NAMESPACE_LEVEL * PID_NUMBER_BYTES);
	return shown.ns == PID_NAMESPACE ? shown.number : 0;
}

static inline __u32 task_shown_tgid(struct task_struct *task)
{
	struct task_struct *leader = 0;

	bpf_probe_read_kernel(&leader, sizeof(leader), &task->group_leader);
	return task_shown_tid(leader, 0);
}
#else
static inline __u32 task_shown_tid(struct task_struct *task, __u32 tid)
{
	return tid;
}

static inline __u32 task_shown_tgid(struct task_struct *task)
{
	return task_tgid(task);
}
#endif

static inline __u32 task_flags(struct task_struct *task)
{
	__u32 flags = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags), &task->flags);
	return flags;
}

#define STATE_PARKED_BIT 0x40u	    /* TASK_PARKED from 4.14 on */
#define STATE_PARKED_OLD_BIT 0x200u /* TASK_PARKED before 4.14, when 0x40 was TASK_DEAD */

/* `state`, a long, until 5.13; `__state`, an int, from 5.14 on and in some RHEL 8. The bits in use
 * fit the low 32 of the old one. */
static inline __u32 task_state(struct task_struct *task)
{
	__u32 state = 0;

#ifdef HAVE_task_struct___state
	bpf_probe_read_kernel(&state, sizeof(state), &task->__state);
#else
	bpf_probe_read_kernel(&state, sizeof(state), &task->state);
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(4, 14, 0)
	if (state & STATE_PARKED_OLD_BIT)
		state = STATE_PARKED_BIT;
#endif
	return state;
}

static inline __u32 task_state_typed(struct task_struct *task)
{
	__u64 state;

#ifdef HAVE_task_struct___state
	MEMBER_TYPED(state, task, task_struct, __state);
#else
	MEMBER_TYPED(state, task, task_struct, state);
#endif
	return state;
}

/* EXIT_DEAD is 0x10 and EXIT_ZOMBIE 0x20 since 3.15; before, and in RHEL 7's 3.10, they are the
 * other way round. */
static inline __u32 task_exit_state(struct task_struct *task)
{
	__u32 state = 0;

	bpf_probe_read_kernel(&state, sizeof(state), &task->exit_state);
#if LINUX_VERSION_CODE < KERNEL_VERSION(3, 15, 0)
	state = (state & 0x10) << 1 | (state & 0x20) >> 1;
#endif
	return state;
}

static inline __u64 task_kernel_stack(struct task_struct *task)
{
	__u64 stack = 0;

	bpf_probe_read_kernel(&stack, sizeof(stack), &task->stack);
	return stack;
}

/* Start time by the boot time clock, as in field 22 of /proc/TID/stat; `real_start_time` until 5.4,
 * and to 3.16, which RHEL 7's 3.10 is like, a timespec. */
static inline __u64 task_start_boot_ns(struct task_struct *task)
{
	__u64 start_ns = 0;

#if LINUX_VERSION_CODE < KERNEL_VERSION(3, 17, 0)
	__u64 start[2] = {};

	bpf_probe_read_kernel(start, sizeof(start), &task->real_start_time);
	start_ns = start[0] * 1000000000 + start[1];
#elif defined(HAVE_task_struct_start_boottime)
	bpf_probe_read_kernel(&start_ns, sizeof(start_ns), &task->start_boottime);
#else
	bpf_probe_read_kernel(&start_ns, sizeof(start_ns), &task->real_start_time);
#endif
	return start_ns;
}

static inline __u64 task_voluntary_count(struct task_struct *task)
{
	__u64 count = 0;

	bpf_probe_read_kernel(&count, sizeof(count), &task->nvcsw);
	return count;
}

static inline __u32 task_parent_tgid(struct task_struct *task)
{
	struct task_struct *parent = 0;

	bpf_probe_read_kernel(&parent, sizeof(parent), &task->real_parent);
	return task_shown_tgid(parent);
}

/* True if users saw a thread that ends. It has no tid any more as soon as it was waited for, which
 * most threads are at once: its process has one, or else its parent. */
static inline int task_was_shown(struct task_struct *task)
{
#ifdef PID_NAMESPACE
	return task_shown_tid(task, 0) || task_shown_tgid(task) || task_parent_tgid(task);
#else
	return 1;
#endif
}

/* The effective uid, the one that ps and top show. */
static inline __u32 task_uid(struct task_struct *task)
{
	struct cred *cred = 0;
	__u32 uid = 0;

	bpf_probe_read_kernel(&cred, sizeof(cred), &task->cred);
	bpf_probe_read_kernel(&uid, sizeof(uid), &cred->euid);
	return uid;
}

static inline void task_comm(struct task_struct *task, char *comm)
{
	bpf_probe_read_kernel(comm, THREAD_COMM_SIZE, &task->comm);
}

/* Fields that the probes of throttles.bpf.c read, if the plan has them. */
#ifdef HAVE_rq_cpu
static inline __u32 rq_cpu(struct rq *rq)
{
	__u32 cpu = 0;

	bpf_probe_read_kernel(&cpu, sizeof(cpu), &rq->cpu);
	return cpu;
}
#endif

#ifdef HAVE_task_struct_sched_task_group
static inline __u64 task_group_address(struct task_struct *task)
{
	__u64 group = 0;

	bpf_probe_read_kernel(&group, sizeof(group), &task->sched_task_group);
	return group;
}
#endif

#ifdef HAVE_task_struct_prio
static inline __u32 task_priority(struct task_struct *task)
{
	__u32 priority = 0;

	bpf_probe_read_kernel(&priority, sizeof(priority), &task->prio);
	return priority;
}
#endif

/* Returns the address of the struct sock of a descriptor of the present thread; if it has none, of
 * what else a socket would have there. */
#ifdef HAVE_socket_sk
static inline __u64 descriptor_sock(__u64 descriptor)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct files_struct *files = 0;
	struct fdtable *table = 0;
	struct file **open = 0, *file = 0;
	struct socket *socket = 0;
	__u64 sock = 0;

	bpf_probe_read_kernel(&files, sizeof(files), &task->files);
	bpf_probe_read_kernel(&table, sizeof(table), &files->fdt);
	bpf_probe_read_kernel(&open, sizeof(open), &table->fd);
	bpf_probe_read_kernel(&file, sizeof(file), open + descriptor);
	bpf_probe_read_kernel(&socket, sizeof(socket), &file->private_data);
	bpf_probe_read_kernel(&sock, sizeof(sock), &socket->sk);
	return sock;
}
#endif

/* Fields of struct request, if the plan has probes of block devices that are handed one. typed: by
 * a typed tracepoint. */
#ifdef HAVE_request_cmd_flags
static inline __u32 request_flags(struct request *request, int typed)
{
	__u32 flags = 0;

	if (typed)
		MEMBER_TYPED(flags, request, request, cmd_flags);
	else
		bpf_probe_read_kernel(&flags, sizeof(flags), &request->cmd_flags);
	return flags;
}

static inline __u32 request_bytes(struct request *request, int typed)
{
	__u32 bytes = 0;

	if (typed)
		MEMBER_TYPED(bytes, request, request, __data_len);
	else
		bpf_probe_read_kernel(&bytes, sizeof(bytes), &request->__data_len);
	return bytes;
}

/* `rq_disk` until 5.16; the queue's `disk` from 5.14 on. 0: no disk, as of commands to a SCSI
 * controller. */
static inline __u32 request_dev(struct request *request, int typed)
{
	struct gendisk *disk = 0;
	__u32 major = 0, minor = 0;

#ifdef HAVE_request_queue_disk
	struct request_queue *queue = 0;

	if (typed) {
		MEMBER_OF_TYPED(u64, queue, request, request, q);
		MEMBER_OF_TYPED(u64, disk, queue, request_queue, disk);
		MEMBER_TYPED(major, disk, gendisk, major);
		MEMBER_TYPED(minor, disk, gendisk, first_minor);
		return major << 20 | minor;
	}
	bpf_probe_read_kernel(&queue, sizeof(queue), &request->q);
	bpf_probe_read_kernel(&disk, sizeof(disk), &queue->disk);
#else
	bpf_probe_read_kernel(&disk, sizeof(disk), &request->rq_disk);
#endif
	bpf_probe_read_kernel(&major, sizeof(major), &disk->major);
	bpf_probe_read_kernel(&minor, sizeof(minor), &disk->first_minor);
	return major << 20 | minor;
}
#endif
