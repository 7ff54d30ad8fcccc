/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trials for the rows of feature_table.c, which alone calls them. Each returns 0, or -errno with
 * why filled (FEATURE_WHY_SIZE), and leaves no trace.
 */
#ifndef TSNAP_KERNEL_FEATURE_TRY_H
#define TSNAP_KERNEL_FEATURE_TRY_H

#define FEATURE_WHY_SIZE 160
#define KERNEL_KHEADERS_PATH "/sys/kernel/kheaders.tar.xz"

int try_bpf(char *why);
int try_raw_tracepoint(char *why);
int try_typed_tracepoint(char *why);
int try_tracepoint(char *why);
int try_kprobe(char *why);
int try_switch_first(char *why);
int try_switch_second(char *why);
int try_run_on_cpu(char *why);
int try_perf_clock(char *why);
int try_cpu_samples(char *why);
int try_map_batch(char *why);
int try_thread_slots(char *why);
int try_request_registers(char *why);
int try_read_into_map(char *why);
int try_probe_read_kernel(char *why);
int try_probe_read_user(char *why);
int try_cgroup_id(char *why);
int try_long_program(char *why);
int try_bpf_stats(char *why);
int try_pinned_links(char *why);
int try_block_io_start(char *why);
int try_typed_block_io_start(char *why);
int try_block_merge(char *why);
int try_block_queue_argument(char *why);
int try_kernel_locks(char *why);
int try_btf(char *why);
int try_kheaders(char *why);
int try_unwinder(char *why);

#endif
