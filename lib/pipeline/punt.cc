// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>

#include "base/drop_reason.h"
#include "dpdk/mbuf.h"
#include "pipeline/stages.h"

namespace sluice::pipeline {

void punt(Context& c, Packet& p) noexcept {
    dpdk::meta(*p.m) = {.ingress = p.in->id, .flags = p.flags, .l3_offset = p.l2_bytes};
    if (c.punted.enqueue({&p.m, 1}) == 0) {
        c.drop(p, DropReason::kPuntFull);
        return;
    }
    stats::bump(c.stats.netdev(p.book).held);
}

}  // namespace sluice::pipeline
