/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Buckets of durations (latency.h), for histograms of --trace and those of disks.
 */

/* Returns 1 if value is greater than limit, else 0, without a jump; both are below 2^63. The
 * compiler must not see a comparison in it. */
static inline __u64 is_greater(__u64 value, __u64 limit)
{
	__u64 difference = limit - value;

	asm volatile("" : "+r"(difference));
	return difference >> 63;
}

/* floor(log2) in steps, without jumps: each jump would double the ways through the rest of a
 * program, of which old verifiers take just so many. */
static inline __u64 latency_bucket(__u64 ns)
{
	__u64 units = ns >> LATENCY_SHIFT, bucket, step;

	units = (units | -is_greater(units, 0xffffffff)) & 0xffffffff;
	bucket = is_greater(units, 0xffff) << 4;
	units >>= bucket;
	step = is_greater(units, 0xff) << 3;
	units >>= step;
	bucket += step;
	step = is_greater(units, 0xf) << 2;
	units >>= step;
	bucket += step;
	step = is_greater(units, 3) << 1;
	return bucket + step + (units >> step >> 1);
}
