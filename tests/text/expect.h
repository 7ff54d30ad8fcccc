/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Expectations of a test: counted, and told where they are not met. */
#ifndef TSNAP_TESTS_EXPECT_H
#define TSNAP_TESTS_EXPECT_H

#include <stdbool.h>

/* right, for an if; words tell what is wrong. */
bool __attribute__((format(printf, 2, 3))) expect(bool right, const char *words, ...);

/* Prints the test's last line: how many expectations were right and wrong. True: all were right. */
bool expect_sum(void);

#endif
