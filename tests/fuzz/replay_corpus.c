/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The main program of a fuzz target without libFuzzer: gives it each file of a folder, whole, cut
 * off at many places, and with bytes changed. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define FILE_MAX (1u << 20)
#define PLACES 50

static int file_replay(const char *folder, const char *name)
{
	static uint8_t bytes[FILE_MAX];
	char path[4096];
	size_t length, step;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "rb");
	if (!file)
		return 0;
	length = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	LLVMFuzzerTestOneInput(bytes, length);
	step = length / PLACES + 1;
	for (size_t at = 0; at < length; at += step) {
		static const uint8_t changes[] = {0, '"', ',', '\n', '\\', 0xff, '9'};

		LLVMFuzzerTestOneInput(bytes, at);
		for (size_t i = 0; i < sizeof(changes); i++) {
			uint8_t before = bytes[at];

			bytes[at] = changes[i];
			LLVMFuzzerTestOneInput(bytes, length);
			bytes[at] = before;
		}
	}
	return 1;
}

int main(int argc, char **argv)
{
	DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *entry;
	int files = 0;

	if (!folder) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			files += file_replay(argv[1], entry->d_name);
	closedir(folder);
	printf("%d files\n", files);
	return files ? 0 : 1;
}
