/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/saved.h"
#include "base/config_file.h"
#include "screen/command.h"
#include "screen/list.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct saved_view own_views[] = {
	{"activity", "what threads do and wait for", "state,user,pid,comm,syscall", "", false, NULL},
	{"cpu", "who is on a CPU", "user,comm,pid,cpu_s,csw_per_s", "state=ON", false, NULL},
	{"run-queue", "who waits for a CPU", "user,comm,pid,runq_s,runq_avg_us", "state=RQ", false, NULL},
	{"disk", "who waits for storage, and for which files", "comm,syscall,filename,dwait_s",
	 "state=D", false, NULL},
	{"locks", "what sleeping threads that work wait for", "comm,syscall,why,waits_on",
	 "waits_on!=", false, NULL},
	{"network", "who talks to whom", "comm,pid,syscall,connection", "connection!=", false, NULL},
	{"containers", "by container and systemd unit", "container,unit,state", "", false, NULL},
	{"processes", "who starts processes, and what those that ended had used",
	 "user,comm,forks,execs,exits,dead_cpu_s", "", false, NULL},
	{"threads", "each thread", "pid,tid,comm,state,syscall", "", false, NULL},
	{"net", "what connections wait for: the network, the other host, or its program",
	 "comm,remote,net,net_us,retrans,rtt_us", "net!=", false, NULL},
	{"cache", "which files are read from disks, and how much of them is cached or evicted",
	 "comm,filename,file_bytes,cached_bytes,evicted_bytes,refault_bps", "state=D && filename!=",
	 false, NULL},
	{"interrupts", "time that interrupts and the hypervisor take from each CPU",
	 "cpu,seconds,hardirq_s,softirq_s,steal_s", "", false, NULL},
	{"memory", "which processes have memory, in RAM and swapped out, and read it from disks",
	 "pid,exe,user,rss_bytes,rss_anon_bytes,rss_peak_bytes,vm_swap_bytes,majflt,cgroup",
	 "", true, "rss_bytes"},
	{"queries", "in which statements sessions of databases wait, and for what",
	 "app_wait,querysum", "querysum!=", true, NULL},
};
/* clang-format on */

static const char *own_name_at(void *from, size_t at)
{
	return at < sizeof(own_views) / sizeof(own_views[0]) ? own_views[at].name : NULL;
}

const struct saved_view *saved_view_find(const char *name, struct error *e)
{
	const char *one;
	struct text names = {0};

	for (size_t i = 0; (one = own_name_at(NULL, i)); i++) {
		if (!strcmp(one, name)) {
			text_done(&names);
			return &own_views[i];
		}
		text_add_format(&names, "%s%s",
				!i			   ? ""
				: own_name_at(NULL, i + 1) ? ", "
							   : " or ",
				one);
	}
	error_set(e, EINVAL, EXIT_USAGE, "--view %s: NAME must be %s", name, text_string(&names));
	text_done(&names);
	return NULL;
}

/* The view of that name, added if there is none. */
static struct saved_view *view_of(struct saved_views *views, const char *name)
{
	for (size_t i = 0; i < views->count; i++)
		if (!strcmp(views->items[i].name, name))
			return &views->items[i];
	views->items = memory_grow(views->items, &views->capacity, views->count + 1,
				   sizeof(*views->items));
	views->items[views->count] = (struct saved_view){name, "", NULL, "", false, NULL};
	return &views->items[views->count++];
}

void saved_views_begin(struct saved_views *views)
{
	*views = (struct saved_views){0};
	for (size_t i = 0; i < sizeof(own_views) / sizeof(own_views[0]); i++)
		if (!own_views[i].sort)
			*view_of(views, own_views[i].name) = own_views[i];
}

static int value_set(struct saved_view *view, const char *key, const char *value, struct error *e)
{
	struct column_list list = {0};
	struct expression expression = {0};
	int err = 0;

	if (!strcmp(key, "help")) {
		view->help = value;
	} else if (!strcmp(key, "columns")) {
		view->columns = value;
		err = column_list_add(&list, value, true, e);
	} else if (!strcmp(key, "filter")) {
		view->filter = value;
		err = expression_add(&expression, value, e);
		expression_done(&expression);
	} else if (!strcmp(key, "all") && (!strcmp(value, "yes") || !strcmp(value, "no"))) {
		view->all_states = *value == 'y';
	} else {
		err = error_set(e, EINVAL, EXIT_USAGE,
				"expected help, columns, filter, or all = yes or no");
	}
	return err;
}

struct reading {
	struct saved_views *views;
	struct saved_view *view; /* view of the section; NULL before the first section */
};

static int line_take(void *to, char *line, struct error *e)
{
	struct reading *reading = to;
	struct saved_views *views = reading->views;
	char *words, *sign;
	size_t length = strlen(line);

	/* views point into it */
	views->lines = memory_grow(views->lines, &views->line_capacity, views->line_count + 1,
				   sizeof(char *));
	words = views->lines[views->line_count++] = memory_text(line, length);
	sign = strchr(words, '=');
	if (*words == '[' && words[length - 1] == ']') {
		words[length - 1] = '\0';
		reading->view = view_of(views, config_trim(words + 1));
		reading->view->columns = NULL; /* replaces an earlier view */
		reading->view->filter = "";
		return 0;
	}
	if (!reading->view || !sign)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "expected [NAME] of a view, or KEY = VALUE");
	*sign = '\0';
	return value_set(reading->view, config_trim(words), config_trim(sign + 1), e);
}

static int columns_check(const struct saved_views *views, const char *path, struct error *e)
{
	for (size_t i = 0; i < views->count; i++)
		if (!views->items[i].columns)
			return error_set(e, EINVAL, EXIT_USAGE, "%s: the view %s has no columns",
					 path, views->items[i].name);
	return 0;
}

int saved_views_read(struct saved_views *views, const char *path, struct error *e)
{
	struct reading reading = {.views = views};
	int err = config_file_read(path, line_take, &reading, e);

	return err ? err : columns_check(views, path, e);
}

void saved_views_done(struct saved_views *views)
{
	for (size_t i = 0; i < views->line_count; i++)
		free(views->lines[i]);
	free(views->lines);
	free(views->items);
	*views = (struct saved_views){0};
}

void saved_view_add(struct text *text, const struct view *view, const char *name)
{
	const struct question *question = &view->now;

	text_add_format(text, "\n[%s]\ncolumns = ", name);
	for (size_t i = 0; i < question->list.count; i++)
		text_add_format(text, "%s%s", i ? "," : "", question->list.items[i]->name);
	if (question->filter[0])
		text_add_format(text, "\nfilter = %s", question->filter);
	text_add_format(text, "%s\n", question->all_states ? "\nall = yes" : "");
}

/* --- the list of views */

static size_t views_count(const struct view *view, const struct shown *shown)
{
	return view->views ? view->views->count : 0;
}

static void views_item(const struct view *view, const struct shown *shown, size_t item,
		       struct text *name, struct text *help)
{
	const struct saved_view *saved = &view->views->items[item];

	text_add_format(name, "%zu ", item + 1);
	text_add_printable(name, saved->name);
	text_add_printable(help, saved->help);
	text_add_format(help, "%s%s", *saved->help ? ": " : "", saved->columns);
	text_add_string(help, *saved->filter ? ", where " : "");
	text_add_printable(help, saved->filter);
}

/* True if the last step was to such a view. */
static bool view_is_shown(const struct view *view, const char *word)
{
	size_t length = strlen(word);

	return !strncmp(view->now.label, word, length) && view->now.label[length] == ' ';
}

bool saved_view_show(struct view *view, const struct shown *shown, const struct saved_view *saved,
		     const char *word)
{
	struct column_list list = {0};
	struct error e = {0};
	struct question *question;
	uint64_t needs = 0;
	const char *why;

	if (strlen(saved->filter) >= sizeof(view->now.filter))
		return false;
	column_list_add(&list, REPORT_MEASURES_DEFAULT, true, &e);
	column_list_add(&list, saved->columns, true, &e);
	error_done(&e);
	/* a view replaces the one before, which remains only what Backspace goes back from */
	if (view_is_shown(view, word))
		view_undo(view);
	question = view_step(view, "%s %s", word, saved->name);
	question->list = (struct column_list){0};
	for (size_t i = 0; i < list.count; i++)
		if (column_is_there(shown, list.items[i], &why)) {
			question->list.items[question->list.count++] = list.items[i];
		} else if (!*why) {
			question->list.items[question->list.count++] = list.items[i];
			needs |= list.items[i]->needs;
			view_say(view, false, "%s is sampled from now on", list.items[i]->name);
		}
	text_into(question->filter, sizeof(question->filter), saved->filter);
	question->all_states = saved->all_states;
	if (saved->all_states && !shown->source.all_states)
		view_say(view, false,
			 "Idle threads are sampled from now on, at the cost of looking at all");
	if (needs || (saved->all_states && !shown->source.all_states))
		view_load(view, shown, needs, saved->all_states);
	question->sort = NULL;
	question->reversed = false;
	view->row = view->top = view->left = view->column = 0;
	return true;
}

bool view_choose(struct view *view, const struct shown *shown, size_t number)
{
	return number < views_count(view, shown) &&
	       saved_view_show(view, shown, &view->views->items[number], "view");
}

static void views_choose(struct view *view, const struct shown *shown, size_t item)
{
	view_choose(view, shown, item);
}

static const struct list_kind list_views = {
	.title = "Views",
	.hint = "Enter chooses, Esc closes",
	.count = views_count,
	.item = views_item,
	.choose = views_choose,
};

void command_views(struct view *view, const struct shown *shown, int64_t by)
{
	list_open(view, &list_views);
}
