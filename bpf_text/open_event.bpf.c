/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each open of a file as an event, with the path as the program gave it. It is read when the call
 * returns: the kernel has just read it, so that its memory is there, and an open that nobody wants
 * costs nothing more.
 *
 * Included where LATENCY_OPENS or LATENCY_OPENED is among LATENCY_KINDS. Knobs: CALL_x, numbers of
 * the calls; those of 32-bit programs are others. READ_USER_STR: the helper is there (5.5).
 */

/* Returns the word of the registers with the path of a call; 0: it opens no file. */
static inline __u32 open_path_word(__u32 call)
{
	if (call == CALL_OPENAT || call == CALL_OPENAT2)
		return THREAD_SECOND_ARGUMENT;
#ifdef CALL_OPEN
	if (call == CALL_OPEN || call == CALL_CREAT)
		return THREAD_FIRST_ARGUMENT;
#endif
	return 0;
}

/* Copies the path into the event of a slot. Returns the number of bytes. */
static inline __u32 open_path_copy(__u64 slot, __u64 path)
{
#ifdef READ_USER_STR
	long bytes = bpf_probe_read_user_str(EVENT_DATA(0), OPEN_PATH_BYTES, (void *)path);

	return bytes > 0 ? bytes : 0;
#else
	__u64 piece[4] = {};

#define PATH_PIECE(AT)                                                        \
	if (bpf_probe_read_user(piece, sizeof(piece), (void *)(path + (AT)))) \
		return AT;                                                    \
	__builtin_memcpy(EVENT_DATA(AT), piece, sizeof(piece));
	PATH_PIECE(0)
	PATH_PIECE(32)
	PATH_PIECE(64)
	PATH_PIECE(96)
	PATH_PIECE(128)
	PATH_PIECE(160)
	PATH_PIECE(192)
	PATH_PIECE(224)
	return OPEN_PATH_BYTES;
#endif
}

/* error: errno; 0: the file was opened. */
static inline void open_ends(struct thread_state *thread, __u32 error, __u64 now_ns,
			     __u64 duration_ns)
{
#if KERNEL_STACK_REGISTERS
	__u32 word = open_path_word(thread->call), bytes;
	struct latency_key key = {};
	struct trace_event *event;
	__u64 path = 0, slot;

	if (!word || !(LATENCY_KINDS & (error ? 1u << LATENCY_OPENS : 1u << LATENCY_OPENED)))
		return;
	if (!latency_key_fill(&key, thread, error ? LATENCY_OPENS : LATENCY_OPENED))
		return;
	key.what[OPENS_CALL] = thread->call;
	key.what[OPENS_ERROR] = error;
	bpf_probe_read_kernel(&path, sizeof(path),
			      (void *)(thread->kernel_stack + KERNEL_STACK_REGISTERS + 8 * word));
	if (!event_begin(&slot, &key, now_ns, duration_ns))
		return;
	bytes = open_path_copy(slot, path);
	event = event_at(slot);
	if (!event)
		return;
	event->data_bytes = bytes;
	event_end(event);
#endif
}
