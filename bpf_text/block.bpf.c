/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to block devices: queued by a thread, issued to the driver, completed on any CPU.
 *
 * Shared by block_queue.bpf.c, block_issue.bpf.c and block_done.bpf.c.
 *
 * Knobs: BLOCK_ARGUMENT: which argument of block_rq_insert and block_rq_issue is the request: 1,
 * after its queue, until 5.10, and 0 since. LATENCY_KINDS (latency.bpf.c): histograms are kept.
 */

#define REQUEST_OP_MASK 0xffu /* REQ_OP_MASK */

BPF_TABLE("hash", struct block_key, struct block_request, ts_block, BLOCK_MAX);
BPF_TABLE("hash", __u32, struct disk_times, ts_disks, DISKS_MAX);

static inline void request_put(struct block_key *key, struct block_request *request)
{
	__u32 zero = 0;
	struct probe_counters *counters;

	if (!ts_block.update(key, request))
		return;
	counters = ts_counters.lookup(&zero);
	if (counters)
		counters->block_full++;
}

static inline void request_who(struct block_request *request)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct thread_state *thread = thread_find(tid);

	request->tid = tid;
#ifdef PID_NAMESPACE
	if (!thread || !(thread->identity.known & IDENTITY_FULL))
		return;
#else
	request->shown_tid = tid;
#endif
	if (!thread)
		return;
	request->shown_tid = thread->identity.tid;
	request->tgid = thread->identity.tgid;
	request->uid = thread->identity.uid;
	__builtin_memcpy(request->comm, thread->identity.comm, sizeof(request->comm));
}

/* Requests of one thread end on several CPUs at a time, so that the CPU is among the words of its
 * histograms: an atomic operation could count and sum, but not keep a maximum. */
static inline void request_count(struct block_request *request, __u32 kind, __u64 from_ns,
				 __u64 end_ns)
{
#ifdef LATENCY_KINDS
	struct latency_key key = {};

	if (!(LATENCY_KINDS >> kind & 1))
		return;
#ifdef PID_NAMESPACE
	if (!request->shown_tid)
		return;
#endif
	key.kind = kind;
	key.tid = request->tid;
	key.shown_tid = request->shown_tid;
	key.tgid = request->tgid;
	key.uid = request->uid;
	key.what[BLOCK_DEV] = request->dev;
	key.what[BLOCK_OP] = request->op;
	key.what[BLOCK_CPU] = bpf_get_smp_processor_id();
	__builtin_memcpy(key.comm, request->comm, sizeof(key.comm));
	latency_add_amount(&key, end_ns - from_ns, request->bytes);
	slow_event_bytes(&key, request->bytes, end_ns, end_ns - from_ns);
#endif
}

#ifdef LATENCY_KINDS
#define REQUEST_COUNT(request, kind, from_ns, end_ns) request_count(request, kind, from_ns, end_ns)
#else
/* must not be empty: the compiler would then lay out the callers with jumps backwards */
#define REQUEST_COUNT(request, kind, from_ns, end_ns) asm volatile("" ::"r"((end_ns) - (from_ns)))
#endif

static inline void request_queued(struct block_key *key, struct block_request *request)
{
	request->queue_ns = bpf_ktime_get_ns();
	request_who(request);
	request_put(key, request);
}

static inline void request_who_copy(struct block_request *request, struct block_request *from)
{
	request->queue_ns = from->queue_ns;
	request->tid = from->tid;
	request->shown_tid = from->shown_tid;
	request->tgid = from->tgid;
	request->uid = from->uid;
	__builtin_memcpy(request->comm, from->comm, sizeof(request->comm));
}

/* Finds the thread that made a request not seen before. A flush of the device is such a request:
 * the kernel makes it for all threads that want one at the time, and a kernel thread issues it, so
 * it counts for the thread that requested it last. */
static inline void request_who_find(struct block_request *request)
{
	struct block_key key = {.dev = request->dev};
	struct block_request *requested;

	request_who(request);
	if (request->op != BLOCK_FLUSH)
		return;
	requested = ts_block.lookup(&key);
	if (requested)
		request_who_copy(request, requested);
}

/* The driver puts some requests back and gets them again: they are counted once. */
static inline void request_issued(struct block_key *key, struct block_request *known,
				  struct block_request *request)
{
	__u64 now_ns = bpf_ktime_get_ns();

	if (known) {
		request_who_copy(request, known);
		if (known->issue_ns)
			request->queue_ns = 0;
		request->dev = known->dev;
		request->op = known->op;
		known->bytes = request->bytes; /* others may have been merged into it */
		known->issue_ns = now_ns;
	} else {
		request_who_find(request);
		request->issue_ns = now_ns;
		request_put(key, request);
	}
	if (request->queue_ns)
		REQUEST_COUNT(request, LATENCY_BLOCKQ, request->queue_ns, now_ns);
}

static inline struct disk_times *disk_make(__u32 *dev)
{
	struct disk_times fresh = {};

	ts_disks.insert(dev, &fresh);
	return ts_disks.lookup(dev);
}

/* Counts a read or write that has ended, as /proc/diskstats does, which has no more than sums. */
static inline void disk_count(struct block_request *request, __u64 end_ns)
{
	__u32 dev = request->dev;
	__u64 from_ns = request->queue_ns ? request->queue_ns : request->issue_ns, bucket;
	struct disk_times *times;

	if (request->op != BLOCK_READ && request->op != BLOCK_WRITE)
		return;
	times = ts_disks.lookup(&dev);
	if (!times)
		times = disk_make(&dev);
	if (!times)
		return;
	bucket = latency_bucket(end_ns - from_ns);
	asm volatile("%0 &= 31" : "+r"(bucket)); /* as in latency_add_amount() */
	__sync_fetch_and_add(&times->buckets[bucket], 1);
}

static inline void request_done(struct block_key *key)
{
	struct block_request *request = ts_block.lookup(key);
	__u64 now_ns;

	if (!request)
		return;
	/* a request that was never issued was for a flush and nothing else */
	if (request->issue_ns) {
		now_ns = bpf_ktime_get_ns();
		REQUEST_COUNT(request, LATENCY_BLOCK, request->issue_ns, now_ns);
		disk_count(request, now_ns);
	}
	ts_block.delete(key);
}

#ifdef HAVE_request_cmd_flags
static inline __u32 request_fill(struct request *from, struct block_request *request, int typed)
{
	__u32 flags = request_flags(from, typed);

	request->dev = request_dev(from, typed);
	request->op = flags & REQUEST_OP_MASK;
	request->bytes = request_bytes(from, typed);
	return flags;
}
#endif

/* Tracepoints have the bytes of a request for sectors since 4.11; before, of other requests
 * only. */
static inline __u32 event_bytes(__u32 bytes, __u32 sectors)
{
	return bytes ? bytes : sectors << 9;
}

/* blk_fill_rwbs() writes F for a flush that comes before the rest, then the operation */
static inline __u32 request_op_of(char first, char second)
{
	char what = first;

	if (first == 'F' && (second == 'W' || second == 'D' || second == 'R'))
		what = second;
	if (what == 'D' && second == 'E')
		return BLOCK_ERASE;
	return what == 'R'   ? BLOCK_READ
	       : what == 'W' ? BLOCK_WRITE
	       : what == 'F' ? BLOCK_FLUSH
	       : what == 'D' ? BLOCK_DISCARD
			     : BLOCK_OTHER;
}
