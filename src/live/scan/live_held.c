/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/live_held.h"
#include "base/clock.h"
#include "base/names.h"
#include "kernel/own_probe.h"

#include <bcc/libbpf.h>
#include <stdio.h>
#include <string.h>

#define TEXTS_MAX 16384
#define TEXT_IDLE_NS (10 * NS_PER_SECOND)

_Static_assert(SAMPLE_HELD_MAX == PROBE_HELD_MAX, "a value for each context");

struct held_text {
	struct cache_entry entry;
	struct probe_text text;
};

void live_held_init(struct live_held *held)
{
	*held = (struct live_held){
		.texts = {.entry_bytes = sizeof(struct held_text), .entries_max = TEXTS_MAX}};
}

void live_held_done(struct live_held *held)
{
	cache_done(&held->texts);
}

void live_held_sweep(struct live_held *held, int64_t now_ns)
{
	cache_sweep(&held->texts, now_ns, TEXT_IDLE_NS);
}

const char *live_probe_text(const struct probe_text *text)
{
	char words[PROBE_TEXT_BYTES + sizeof("...")];
	size_t length = strnlen((const char *)text->words, PROBE_TEXT_BYTES - 1);

	snprintf(words, sizeof(words), "%.*s%s", (int)length, (const char *)text->words,
		 length == PROBE_TEXT_BYTES - 1 ? "..." : "");
	return name_transient_string(words);
}

/* Returns the text with that key; NULL: it could not be read, or is in no map any longer. */
static const char *text_of(struct live_held *held, struct live_context *context, uint64_t key)
{
	struct held_text *known;
	bool added;

	if (!key)
		return NULL;
	known = cache_get(&held->texts, key, context->now.scan_time.now_ns, &added);
	/* an empty entry is one that was not there */
	if (!known->text.words[0] &&
	    bpf_lookup_elem(context->kernel.compiled.maps[KERNEL_MAP_TEXTS], &key, &known->text)) {
		held->lost_count++;
		return NULL;
	}
	return live_probe_text(&known->text);
}

void live_held_fill(struct live_held *held, struct live_context *context,
		    const struct thread_state *record, const struct held_values *copy,
		    struct sample *sample)
{
	const struct own_probes *own = context->config.own;
	struct held_values now = {0};

	if (!copy) {
		held_read(&context->kernel.held, record, context->now.scan_time.now_ns, &now);
		copy = &now;
	}
	for (unsigned int i = 0; own && i < own->count && copy->holds; i++) {
		const struct own_item *item = &own->items[i];

		/* what a detached probe has left is of no probe that ends it */
		if (!(copy->holds >> i & 1) || item->detached || item->probe.result != OWN_HELD)
			continue;
		if (item->probe.type == OWN_STR)
			sample->held.values[i].text = text_of(held, context, copy->values[i]);
		else
			sample->held.values[i].number = (int64_t)copy->values[i];
	}
}
