/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the map of requests in flight (bpf_text/block.h).
 */
#ifndef TSNAP_MAPS_BLOCK_READER_H
#define TSNAP_MAPS_BLOCK_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/record.h"

struct block_reader {
	struct block_key *keys; /* keys of the last reading; NULL, or BLOCK_MAX of them */
	struct block_request *requests;
	size_t count;
};

/* Reads all requests in flight, in any order; a request that begins or ends meanwhile may be
 * missing. batch: maps can be read in batches. 0, or -errno with none read. */
int block_reader_read(struct block_reader *reader, int map, bool batch);
/* Requests in flight that one reading has found; zeroed block_flights have none. */
struct block_flight {
	struct block_key key;
	struct block_request request;
};
struct block_flights {
	struct block_flight *items;
	size_t count, capacity;
};
/* Copies what the reader has read. */
void block_flights_take(struct block_flights *flights, const struct block_reader *reader);
void block_flights_done(struct block_flights *flights);

/* Gives the histogram of each disk to take: dev as in struct block_request. map: KERNEL_MAP_DISKS;
 * -1: there is none. */
void disk_times_read(int map, void (*take)(void *to, uint32_t dev, const struct disk_times *times),
		     void *to);
/* Copies them to a second map, whose programs are attached, too: they count on there. */
void disk_times_carry(int map, int second);

/* Copies the requests in flight to a second map, whose programs are attached, too, but have not
 * seen them begin. */
void block_reader_carry(struct block_reader *reader, int map, int second, bool batch);
void block_reader_done(struct block_reader *reader);

#endif
