/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of interrupts: "softirq NET_RX", "hardirq 27 virtio1-input.0 (vring_interrupt)": the
 * softirq's as in /proc/softirqs; the number, what its owners call it, and the handler's function.
 */
#ifndef TSNAP_LIVE_SCAN_LIVE_IRQ_H
#define TSNAP_LIVE_SCAN_LIVE_IRQ_H

#include <stdint.h>

/* Returns the name, interned. number: as irq_span.number (bpf_text/irq.h); handler: 0: not known.
 */
const char *live_irq_name(uint32_t number, uint64_t handler);

#endif
