/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flood PID COUNT THREAD: puts COUNT records of threads in a nap, which do not exist, into the
 * thread state array of the tsnap with that PID: the cost of a scan with more threads than a test
 * can make. Prints the number of records. */
#include "maps/thread_table.h"

#include <bcc/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_TID 5000000u /* above PID_MAX_LIMIT */

static int map_of_id(uint32_t id)
{
	union bpf_attr attr = {.map_id = id};

	return (int)syscall(SYS_bpf, BPF_MAP_GET_FD_BY_ID, &attr, sizeof(attr));
}

/* Returns a descriptor of the process's map of that name; -1: it has none. */
static int map_of(const char *pid, const char *name, uint32_t *entries)
{
	char path[300], line[128];
	struct dirent *entry;
	DIR *dir;
	int found = -1;

	snprintf(path, sizeof(path), "/proc/%s/fdinfo", pid);
	dir = opendir(path);
	while (dir && found < 0 && (entry = readdir(dir))) {
		unsigned int id = 0;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/fdinfo/%s", pid, entry->d_name);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof(line), file))
			sscanf(line, "map_id: %u", &id);
		if (file)
			fclose(file);
		if (id) {
			struct bpf_map_info info = {0};
			uint32_t size = sizeof(info);
			int map = map_of_id(id);

			if (map >= 0 && !bpf_obj_get_info(map, &info, &size) &&
			    !strcmp(info.name, name)) {
				found = map;
				*entries = info.max_entries;
			}
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

int main(int argc, char **argv)
{
	struct thread_state record = {.identity = {.start_boot_ns = 1, .comm = "flood"}};
	struct thread_table table;
	struct thread_maps maps = {.batch = false};
	uint32_t count, entries = 0, i;

	if (argc != 4) {
		fprintf(stderr, "usage: flood PID COUNT THREAD\n");
		return 2;
	}
	count = (uint32_t)strtoul(argv[2], NULL, 10);
	maps.slots = map_of(argv[1], "ts_slots", &entries);
	maps.free = map_of(argv[1], "ts_free", &entries);
	maps.threads = map_of(argv[1], "ts_threads", &entries);
	if (maps.slots < 0 || maps.free < 0 || maps.threads < 0 ||
	    thread_table_init(&table, &maps, entries)) {
		fprintf(stderr, "flood: %s has no thread state array in shared memory\n", argv[1]);
		return 77;
	}
	/* all records get the ids of one process: records of threads that do not exist are
	 * removed */
	record.identity.tid = record.identity.tgid = (uint32_t)strtoul(argv[3], NULL, 10);
	record.sched.state = 1; /* TASK_INTERRUPTIBLE */
	record.sched.out_ns = 1;
	record.sched.known = SCHED_SWITCHED_OUT;
	THREAD_CALL_NUMBER(record.sched.registers + THREAD_REGISTER_COUNT - THREAD_CALL_COUNT) =
		SYS_clock_nanosleep;
	record.identity.known = IDENTITY_NAME | IDENTITY_FULL;
	for (i = 0; i < count; i++) {
		record.sched.tid = FIRST_TID + i;
		if (thread_table_add(&table, &record))
			break;
	}
	printf("%u\n", i);
	thread_table_done(&table);
	return i == count ? 0 : 1;
}
