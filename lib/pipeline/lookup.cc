// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>

#include "fib/lpm.h"
#include "fib/netdev_view.h"
#include "pipeline/stages.h"

namespace sluice::pipeline {

namespace {

// Packets of one table in a row are looked up together; nearly always that is the whole burst.
template <auto Table, class Addr>
void lookup(Batch<Addr>& batch) noexcept {
    std::size_t first = 0;
    while (first < batch.count) {
        const auto* table = batch.packets[first].in->*Table;
        std::size_t end = first + 1;
        while (end < batch.count && batch.packets[end].in->*Table == table) {
            ++end;
        }
        table->lookup({batch.destinations.data() + first, end - first}, batch.dsts.data() + first);
        first = end;
    }
}

}  // namespace

void ip4_lookup(Batch4& batch) noexcept {
    lookup<&fib::NetdevView::fib4>(batch);
}
void ip6_lookup(Batch6& batch) noexcept {
    lookup<&fib::NetdevView::fib6>(batch);
}

}  // namespace sluice::pipeline
