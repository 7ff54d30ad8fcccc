/* Stands in for libFuzzer's main: runs one fuzz target once over each file named. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_BYTES_MAX (1 << 20)

static void replay(const char *path)
{
	uint8_t *read_into = malloc(INPUT_BYTES_MAX), *exact;
	FILE *file = fopen(path, "rb");
	size_t size;

	if (!read_into || !file) {
		perror(path);
		exit(1);
	}
	size = fread(read_into, 1, INPUT_BYTES_MAX, file);
	fclose(file);
	/* a block of just this size lets the address sanitizer see a read past the end */
	exact = realloc(read_into, size ? size : 1);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "%s: no inputs to replay\n", argv[0]);
		return 1;
	}
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%d inputs replayed\n", argc - 1);
	return 0;
}
