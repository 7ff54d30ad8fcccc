/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SANITIZED: whether this is a build with sanitizers, whose own memory is mapped without regard to
 * limits and whose look for leaks at the end takes calls that a sandbox refuses. */
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
