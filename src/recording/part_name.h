/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of recorded files: HOST_20261122T15Z-001.samples.csv.zst. Files of one host, hour (UTC) and
 * number are a part: they hold rows of the same scans. A part ends with its hour, or before that
 * when it gets large or its columns change. A part_list has those of a directory.
 */
#ifndef TSNAP_RECORDING_PART_NAME_H
#define TSNAP_RECORDING_PART_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "recording/frame.h"

#define PART_HOST_SIZE 65
#define PART_STEM_SIZE 108
#define PART_NAME_SIZE 128
#define PART_HOUR_US (3600 * 1000000ll)
#define PART_NUMBER_MAX 999999

struct part_name {
	char host[PART_HOST_SIZE]; /* letters, digits, dots and dashes */
	int64_t hour_us;	   /* begin of the hour, UTC */
	int number;		   /* number of the part within the hour, from 1 */
	enum record_kind kind;
};

/* The begin of the hour of that time. */
int64_t part_hour(int64_t time_us);
/* Makes the form of a host's name that file names have. */
void part_host(const char *name, char host[PART_HOST_SIZE]);
/* Writes what the names of a part's files have in common: HOST_20261122T15Z-001. */
void part_stem_write(const struct part_name *part, char stem[PART_STEM_SIZE]);
void part_name_write(const struct part_name *part, char name[PART_NAME_SIZE]);
/* Reads a name; false: not the name of a recorded file. */
bool part_name_read(const char *name, struct part_name *part);
/* Compares by host, time and kind. Returns as strcmp(3). */
int part_name_compare(const struct part_name *a, const struct part_name *b);

struct part_file {
	struct part_name name;
	uint64_t bytes;
	uid_t user;
};

/* A zeroed list is empty. */
struct part_list {
	struct part_file *files; /* files in the order of part_name_compare() */
	size_t count, capacity;
	size_t strange; /* links, directories and the like with names of recorded files */
};

/* Reads the directory; the caller keeps the descriptor. 0 or -errno. */
int part_list_read(struct part_list *list, int directory);
void part_list_done(struct part_list *list);

#endif
