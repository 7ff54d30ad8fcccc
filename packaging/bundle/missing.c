/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions that static libraries of some releases need and lack: linked last, so that a library's
 * own come first.
 */
#include <search.h>
#include <stdint.h>
#include <stdlib.h>

/* libdw.a of elfutils 0.191 and 0.192: its trees are those of tsearch(3). The root is their first
 * member; their lock is for builds of elfutils with locks, which no distribution has. */
typedef int compare(const void *one, const void *other);

void *eu_tsearch(const void *key, void **tree, compare *compare);
void *eu_tfind(const void *key, void *const *tree, compare *compare);
void *eu_tdelete(const void *key, void **tree, compare *compare);
void eu_search_tree_init(void **tree);
void eu_search_tree_fini(void **tree, void (*node_free)(void *));

void *eu_tsearch(const void *key, void **tree, compare *compare)
{
	return tsearch(key, tree, compare);
}

void *eu_tfind(const void *key, void *const *tree, compare *compare)
{
	return tfind(key, tree, compare);
}

void *eu_tdelete(const void *key, void **tree, compare *compare)
{
	return tdelete(key, tree, compare);
}

void eu_search_tree_init(void **tree)
{
	*tree = NULL;
}

void eu_search_tree_fini(void **tree, void (*node_free)(void *))
{
	tdestroy(*tree, node_free);
	*tree = NULL;
}

/* Polly, an optimizer of loops that Debian's clang asks for its passes. It has none unless it is
 * switched on, and BPF text has no loops. The struct is that of llvm/Passes/PassPlugin.h. */
struct pass_plugin {
	uint32_t version;
	const char *name, *release;
	void (*add)(void *builder);
};

struct pass_plugin polly_plugin(void) __asm__("_Z18getPollyPluginInfov");

static void nothing_add(void *builder)
{
	(void)builder;
}

struct pass_plugin polly_plugin(void)
{
	return (struct pass_plugin){1, "none", "", nothing_add};
}
