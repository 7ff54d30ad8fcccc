/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A page of what was kept: filled, rendered, written; and what is told beside rows. */
#include "run_state.h"
#include "report/value.h"

#include <string.h>

#define SAMPLES_REFUSED "samples in more groups than tsnap keeps"

int run_write(struct run *run, struct error *e)
{
	int err = 0;

	if (!run->out.length)
		return 0;
	if (run->into)
		text_add(run->into, text_string(&run->out), run->out.length);
	else
		err = run_output(run->config->flame, &run->out, e);
	text_clear(&run->out);
	return err;
}

static int64_t since(int64_t now, int64_t before)
{
	return now == ABSENT || before == ABSENT ? now : counted_since(now, before);
}

/* now: as of now; becomes what is new since before. */
static void facts_subtract(struct source_facts *now, const struct source_facts *before)
{
	now->own_cpu_ns = since(now->own_cpu_ns, before->own_cpu_ns);
	now->bpf_ns = since(now->bpf_ns, before->bpf_ns);
	now->bpf_runs = since(now->bpf_runs, before->bpf_runs);
	self_cost_subtract(&now->self, &before->self);
	for (size_t i = 0; i < now->missed_count; i++)
		for (size_t j = 0; j < before->missed_count; j++)
			if (!now->missed[i].standing &&
			    !strcmp(now->missed[i].what, before->missed[j].what))
				now->missed[i].count =
					(uint64_t)counted_since((int64_t)now->missed[i].count,
								(int64_t)before->missed[j].count);
}

static void distribution_take(void *to, const struct trace_kind *kind, const struct sample *who,
			      const struct histogram *histogram)
{
	distribution_table_add(to, kind, who, histogram);
}

/* What --trace measured since the last time. all: until now. */
int run_take_traced(struct run *run, bool all, struct error *e)
{
	struct distribution_table *table = &run->distributions;

	return table->kind_count
		       ? run->source->traced(run->source, all, distribution_table_needs(table),
					     distribution_take, table, e)
		       : 0;
}

static void account_take(void *to, const struct sample *account)
{
	struct run *run = to;

	group_table_add_account(&run->groups, account);
	tally_add_account(&run->tally, account);
}

/* Shows the groups kept since the last page, and starts anew. */
int run_show(struct run *run, struct error *e)
{
	struct source_facts now, page;
	int err = run_take_traced(run, true, e);

	if (err)
		return err;
	if (run->source->account && run->renderer->accounts)
		run->source->account(run->source, account_take, run);
	run->source->describe(run->source, &now);
	page = now;
	facts_subtract(&page, &run->facts_before);
	source_facts_miss_any(&page, SAMPLES_REFUSED, (uint64_t)run->groups.refused);
	run->refused = sum(run->refused, run->groups.refused);
	source_facts_miss_any(&page, "events in more distributions than tsnap keeps",
			      (uint64_t)run->distributions.refused);
	run->page.facts = &page;
	if (run->renderer->grouped) {
		run->facts_before = now;
		grid_fill_groups(&run->grid, &run->groups, &run->tally);
	} else {
		distribution_rows_fill(&run->distributions, &run->tally, &run->grid);
	}
	run->renderer->add(&run->out, &run->page);
	run->page.facts = NULL;
	group_table_clear(&run->groups);
	distribution_table_clear(&run->distributions);
	run->tally = (struct tally){0};
	run->shown++;
	return run_write(run, e);
}

/* Before the first row, as rows and folded stacks have no foot: what none will have. */
void run_tell_absent(struct run *run, void (*tell)(const char *lines))
{
	struct text lines = {0};

	for (size_t i = 0; i < run->facts_before.absent_count; i++) {
		text_add_string(&lines, "absent on this host: ");
		absent_add(&lines, &run->list, &run->facts_before.absent[i]);
		text_add_char(&lines, '\n');
	}
	tell(text_string(&lines));
	text_done(&lines);
}

/* Rows and folded stacks have no foot: tells what was missed, or all of the cost where it was asked
 * for. */
void run_tell_foot(struct run *run, void (*tell)(const char *lines))
{
	struct source_facts facts;
	struct text notes = {0};

	run->source->describe(run->source, &facts);
	source_facts_miss_any(&facts, SAMPLES_REFUSED, (uint64_t)run->refused);
	if (facts.self.asked) {
		facts_subtract(&facts, &run->facts_before);
		page_add_self(&notes, &(struct page){.facts = &facts});
	}
	for (size_t i = 0; i < facts.missed_count && !facts.self.asked; i++) {
		if (!facts.missed[i].count || facts.missed[i].natural)
			continue;
		text_add_string(&notes, "missed: ");
		missed_add(&notes, &facts.missed[i]);
		text_add_char(&notes, '\n');
	}
	tell(text_string(&notes));
	text_done(&notes);
}
