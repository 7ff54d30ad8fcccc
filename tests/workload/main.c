/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workload.h"

static const struct workload *const tables[] = {
	cpu_workloads,	 sleep_workloads,   process_workloads, crowd_workloads, compat_workloads,
	file_workloads,	 socket_workloads,  wait_workloads,    call_workloads,	probed_workloads,
	piece_workloads, mixed_workloads,   stuck_workloads,   chain_workloads, hostile_workloads,
	path_workloads,	 chained_workloads, service_workloads,
};
#define TABLE_COUNT (sizeof(tables) / sizeof(tables[0]))

static const struct workload *chosen;
static char **options;
static char line[65536];
static size_t line_length;

const char *option_text(const char *key, const char *absent)
{
	size_t length = strlen(key);

	for (char **option = options; *option; option++)
		if (!strncmp(*option, key, length) && (*option)[length] == '=')
			return *option + length + 1;
	return absent;
}

long option_number(const char *key, long absent)
{
	const char *text = option_text(key, NULL);

	return text ? strtol(text, NULL, 0) : absent;
}

void die(const char *what)
{
	fprintf(stderr, "workload %s: %s: %m\n", chosen->name, what);
	_exit(1);
}

void unready(const char *why)
{
	printf("unready %s %s\n", chosen->name, why);
	fflush(stdout);
	_exit(EXIT_UNREADY);
}

static void line_put(const char *text)
{
	size_t length = strlen(text);

	if (line_length + length + 1 >= sizeof(line))
		die("line too long");
	memcpy(line + line_length, text, length);
	line_length += length;
}

void line_begin(const char *word)
{
	line_length = 0;
	line_put(word);
	line_put(" ");
	line_put(chosen->name);
}

void line_add(const char *key, const char *format, ...)
{
	char value[32768], encoded[4];
	va_list ap;

	va_start(ap, format);
	vsnprintf(value, sizeof(value), format, ap);
	va_end(ap);
	line_put(" ");
	line_put(key);
	line_put("=");
	for (const unsigned char *c = (const unsigned char *)value; *c; c++) {
		bool plain = *c > ' ' && *c < 0x7f && *c != '%';

		snprintf(encoded, sizeof(encoded), plain ? "%c" : "%%%02x", *c);
		line_put(encoded);
	}
}

void line_end(void)
{
	line[line_length++] = '\n';
	for (size_t done = 0; done < line_length;) {
		ssize_t n = write(STDOUT_FILENO, line + done, line_length - done);

		if (n < 0)
			die("write");
		done += (size_t)n;
	}
}

void ready_begin(pid_t tid, pid_t pid)
{
	line_begin("ready");
	line_add("tid", "%d", tid);
	line_add("pid", "%d", pid);
}

void ready_call(char state, const char *name, long nr)
{
	line_add("state", "%c", state);
	line_add("syscall", "%s", name);
	line_add("nr", "%ld", nr);
}

static const struct workload *workload_find(const char *name)
{
	for (size_t i = 0; i < TABLE_COUNT; i++)
		for (const struct workload *w = tables[i]; w->name; w++)
			if (!strcmp(w->name, name))
				return w;
	return NULL;
}

static bool options_known(const struct workload *workload)
{
	for (char **option = options; *option; option++) {
		size_t length = strcspn(*option, "=");
		const char *at = *option;
		char key[64];

		if (at[length] != '=' || length + 2 > sizeof(key))
			return false;
		snprintf(key, sizeof(key), "%.*s=", (int)length, at);
		if (strcmp(key, "seconds=") && !strstr(workload->keys, key))
			return false;
	}
	return true;
}

static int usage(FILE *to, int code)
{
	fprintf(to, "usage: workload NAME [key=value...]   (seconds=N: end after N seconds)\n\n");
	for (size_t i = 0; i < TABLE_COUNT; i++)
		for (const struct workload *w = tables[i]; w->name; w++)
			fprintf(to, "  %-16s %s%s%s\n", w->name, w->help, *w->keys ? "; " : "",
				w->keys);
	return code;
}

int main(int argc, char **argv)
{
	if (argc < 2 || !strcmp(argv[1], "--help"))
		return usage(argc < 2 ? stderr : stdout, argc < 2 ? 2 : 0);
	options = argv + 2;
	chosen = workload_find(argv[1]);
	if (!chosen || !options_known(chosen))
		return usage(stderr, 2);
	chosen->run();
	return 0;
}
