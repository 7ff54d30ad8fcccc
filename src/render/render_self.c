/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Costs of tsnap itself (--self): in the footer of a report, or text after rows. */
#include "render/renderer.h"
#include "report/value.h"

#define KB 1024

/* Row of the table of BPF programs. */
struct program_shown {
	const char *name, *kind;
	int64_t runs_hz, run_ns, cpu_hundredths, skipped, jited_bytes;
};

#define AT(member) offsetof(struct program_shown, member)

static const struct column program_columns[] = {
	{"program", "PROGRAM", "", KIND_TEXT, ROLE_KEY, 0, 7, AT(name)},
	{"kind", "KIND", "", KIND_TEXT, ROLE_KEY, 0, 4, AT(kind)},
	{"runs_hz", "RUNS/S", "", KIND_NUMBER, ROLE_SUM, 0, 6, AT(runs_hz)},
	{"run_ns", "NS/RUN", "", KIND_NUMBER, ROLE_SUM, 0, 6, AT(run_ns)},
	{"cpu", "%CPU", "", KIND_HUNDREDTHS, ROLE_SUM, 0, 4, AT(cpu_hundredths)},
	{"skipped", "SKIPPED", "", KIND_NUMBER, ROLE_SUM, 0, 7, AT(skipped)},
	{"jited_bytes", "JITED", "", KIND_NUMBER, ROLE_SUM, 0, 5, AT(jited_bytes)},
};

static const struct column map_columns[] = {
	{"map", "KERNEL MEMORY", "", KIND_TEXT, ROLE_KEY, 0, 13, offsetof(struct self_map, name)},
	{"kernel_bytes", "BYTES", "", KIND_NUMBER, ROLE_SUM, 0, 9,
	 offsetof(struct self_map, kernel_bytes)},
};

/* Adds a table of the interval's width, a blank line before it. */
static void table_add(struct text *out, const struct interval *interval,
		      const struct column *columns, size_t count, union value *values, size_t rows)
{
	struct column_list list = {.count = count};
	struct grid grid = {.list = &list, .values = values, .row_count = rows};
	struct interval table = *interval;

	for (size_t i = 0; i < count; i++)
		list.items[i] = &columns[i];
	table.grid = &grid;
	text_add_char(out, '\n');
	interval_add_table(out, &table, rows);
}

static size_t row_read(const struct column *columns, size_t count, const void *from,
		       union value *to)
{
	for (size_t i = 0; i < count; i++)
		to[i] = column_read(&columns[i], from);
	return count;
}

static int64_t ratio_known(int64_t number, int64_t times, int64_t by)
{
	return number == ABSENT || by == ABSENT || !by ? ABSENT : ratio(number, times, by);
}

static struct program_shown program_show(const struct self_program *program, int64_t elapsed_ns)
{
	return (struct program_shown){
		.name = program->name,
		.kind = program->kind,
		.runs_hz = ratio_known(program->runs, NS_PER_SECOND, elapsed_ns),
		.run_ns = ratio_known(program->ns, 1, program->runs),
		.cpu_hundredths = ratio_known(program->ns, 10000, elapsed_ns),
		.skipped = program->skipped,
		.jited_bytes = program->jited_bytes,
	};
}

static void programs_add(struct text *out, const struct interval *interval,
			 const struct self_cost *cost)
{
	enum { COUNT = sizeof(program_columns) / sizeof(program_columns[0]) };
	union value values[(SELF_PROGRAMS_MAX + 1) * COUNT];
	struct self_program all = self_cost_programs(cost);
	struct text line = {0};
	size_t used = 0;

	for (size_t i = 0; i <= cost->program_count; i++) {
		struct program_shown shown = program_show(
			i < cost->program_count ? &cost->programs[i] : &all, cost->at_ns);

		used += row_read(program_columns, COUNT, &shown, &values[used]);
	}
	table_add(out, interval, program_columns, COUNT, values, cost->program_count + 1);
	if (cost->uncounted_why) {
		text_add_string(&line, "Not counted: ");
		text_add_string(&line, cost->uncounted_why);
		interval_add_line(out, interval, &line);
	}
}

static void memory_add(struct text *out, const struct interval *interval,
		       const struct self_cost *cost)
{
	enum { COUNT = sizeof(map_columns) / sizeof(map_columns[0]) };
	union value values[(SELF_MAPS_MAX + 2) * COUNT];
	const struct self_map rest[] = {
		{"programs", cost->programs_bytes},
		{"all", self_cost_kernel_bytes(cost)},
	};
	size_t used = 0;

	for (size_t i = 0; i < cost->map_count + 2; i++)
		used += row_read(map_columns, COUNT,
				 i < cost->map_count ? &cost->maps[i] : &rest[i - cost->map_count],
				 &values[used]);
	table_add(out, interval, map_columns, COUNT, values, cost->map_count + 2);
}

/* Adds a time as "12.3 ms". */
static void ms_add(struct text *line, int64_t ns, int decimals)
{
	text_add_decimals(line, ratio(ns, 1, decimals == 1 ? 100000 : 10000), decimals);
	text_add_string(line, " ms");
}

static void cpu_describe(struct text *line, const struct self_cost *cost)
{
	text_add_string(line, "tsnap itself in ");
	text_add_decimals(line, ratio(cost->at_ns, 100, NS_PER_SECOND), 2);
	text_add_string(line, " s: ");
	ms_add(line, cost->cpu_ns, 1);
	text_add_string(line, " of CPU time, ");
	text_add_decimals(line, ratio(cost->cpu_ns, 10000, cost->at_ns), 2);
	text_add_string(line, " % of one CPU");
}

static void scans_describe(struct text *line, const struct self_cost *cost, int64_t rate_hz)
{
	text_add_format(line, "Scans: %lld", (long long)cost->scans);
	if (cost->scans) {
		text_add_string(line, ", each ");
		ms_add(line, ratio(cost->cpu_ns, 1, cost->scans), 2);
		text_add_string(line, " of that");
	}
	text_add_format(line, "; %lld a second are wanted", (long long)rate_hz);
}

/* Describes the capture window, in which stacks as of the scan time are saved: its share of the
 * time, and the number of stacks saved in it.
 */
static void window_describe(struct text *line, const struct self_cost *cost)
{
	text_add_string(line, "Stacks of switches right before a scan: ");
	text_add_decimals(line, ratio(cost->window_ns, 1000, cost->at_ns), 1);
	text_add_format(line, " %% of the time, %lld stacks a second",
			(long long)ratio(cost->kept_count, NS_PER_SECOND, cost->at_ns));
}

static void start_describe(struct text *line, const struct self_cost *cost)
{
	text_add_string(line, "Start: ");
	ms_add(line, cost->start_cpu_ns, 1);
	text_add_string(line, " of CPU time, and ");
	ms_add(line, cost->child_cpu_ns, 1);
	text_add_string(line, " in the compile child");
}

/* Adds a size as "4988 KB", or "-". */
static void kb_add(struct text *line, int64_t bytes)
{
	if (bytes == ABSENT)
		text_add_char(line, '-');
	else
		text_add_format(line, "%lld KB", (long long)ratio(bytes, 1, KB));
}

static void memory_describe(struct text *line, const struct self_cost *cost)
{
	text_add_string(line, "Memory: ");
	kb_add(line, cost->resident_bytes);
	text_add_string(line, " resident, ");
	kb_add(line, cost->resident_most_bytes);
	text_add_string(line, " at most");
}

static void missed_describe(struct text *line, const struct source_status *status)
{
	text_add_string(line, "Missed: ");
	for (size_t i = 0; i < status->missed_count; i++) {
		text_add_string(line, i ? "; " : "");
		missed_add(line, &status->missed[i]);
	}
}

static void line_end(struct text *out, const struct interval *interval, struct text *line)
{
	interval_add_wrapped(out, interval, text_string(line));
	text_clear(line);
}

void interval_add_self(struct text *out, const struct interval *interval)
{
	const struct source_status *status = interval->status;
	struct text line = {0};

	cpu_describe(&line, &status->self);
	line_end(out, interval, &line);
	scans_describe(&line, &status->self, status->rate_hz);
	line_end(out, interval, &line);
	if (status->self.window_ns != ABSENT) {
		window_describe(&line, &status->self);
		line_end(out, interval, &line);
	}
	start_describe(&line, &status->self);
	line_end(out, interval, &line);
	memory_describe(&line, &status->self);
	line_end(out, interval, &line);
	missed_describe(&line, status);
	line_end(out, interval, &line);
	programs_add(out, interval, &status->self);
	memory_add(out, interval, &status->self);
	text_done(&line);
}
