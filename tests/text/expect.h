/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Expectations of a test: counted, and printed if they are not met. */
#ifndef TSNAP_TESTS_EXPECT_H
#define TSNAP_TESTS_EXPECT_H

#include <stdbool.h>

/* Checks an expectation; returns right, for an if. words: message if it is wrong. */
bool __attribute__((format(printf, 2, 3))) expect(bool right, const char *words, ...);

/* Prints the test's last line: numbers of right and wrong expectations. True: all were right. */
bool expect_sum(void);

#endif
