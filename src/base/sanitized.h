/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SANITIZED is 1 in a build with sanitizers, which map memory of their own without regard to
 * limits, and whose search for leaks at the end makes system calls that a sandbox refuses. */
#ifndef TSNAP_BASE_SANITIZED_H
#define TSNAP_BASE_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
