/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A directory for a test, with the files of control groups and a proc tree that says where they
 * are mounted. */
#ifndef TSNAP_TESTS_FAKE_TREE_H
#define TSNAP_TESTS_FAKE_TREE_H

extern char fake_tree[64]; /* path of the tree */

/* Setup and teardown functions for cmocka. */
int fake_tree_begin(void **state);
int fake_tree_end(void **state);
/* Writes a file in the tree, and makes the directories above it. */
void fake_tree_put(const char *name, const char *text);
/* Writes self/mountinfo. lines: with a %s in place of the path. */
void fake_tree_mounts(const char *lines);

#endif
