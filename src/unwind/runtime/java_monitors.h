/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the monitor ("synchronized") that a thread of HotSpot, Java 8 and later, waits to enter,
 * and the thread that has it.
 *
 * JavaThread::_current_pending_monitor points to the monitor for all of that wait
 * (ObjectMonitor::enter() in src/hotspot/share/runtime/objectMonitor.cpp), and
 * ObjectMonitor::_owner has the owner: before Java 24 the JavaThread, or an address on its stack if
 * it locked the object there before anybody waited (inflate() in synchronizer.cpp); since 24 the
 * thread's JavaThread::_monitor_owner_id; since 21 it may be ANONYMOUS_OWNER, and the owner is the
 * thread that has the object in its LockStack. java_layout finds the fields. A parser reads files
 * and memory; everything in these may be a lie, or change meanwhile.
 */
#ifndef TSNAP_UNWIND_RUNTIME_JAVA_MONITORS_H
#define TSNAP_UNWIND_RUNTIME_JAVA_MONITORS_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/runtime/runtime_request.h"

/* For runtime_finder_init(). */
extern const struct runtime_kind java_monitors;

/* True if the thread waits to enter a monitor. As long as it has the same episode it is taken to
 * wait for the same monitor. */
bool java_monitor_find(struct runtime_finder *monitors, const struct stack_thread *thread,
		       uint64_t episode, struct java_monitor *monitor);

#endif
