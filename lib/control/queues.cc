// SPDX-License-Identifier: BSD-3-Clause
#include "control/queues.h"

#include <algorithm>
#include <memory>
#include <set>

namespace sluice::control {

void Queues::send(std::size_t worker) {
    dataplane_.publish_queues(worker,
                              std::make_unique<const pipeline::RxQueueList>(lists_[worker]));
}

void Queues::publish(Netdev& port) {
    for (std::uint16_t queue = 0; queue < port.device->rx_queues(); ++queue) {
        if (port.polled.size() <= queue) {
            const auto fewest =
                std::ranges::min_element(lists_, {}, [](const auto& list) { return list.size(); });
            port.polled.push_back(static_cast<std::size_t>(fewest - lists_.begin()));
        }
        lists_[port.polled[queue]].push_back(
            {.port = port.device->id().value,
             .queue = queue,
             .netdev = port.id,
             .wakeup = port.device->rx_wakeup(queue).value_or(dpdk::RxWakeup{})});
    }
    for (const std::size_t worker : std::set(port.polled.begin(), port.polled.end())) {
        send(worker);
    }
}

void Queues::rename(const Netdev& port, NetdevId before) {
    for (const std::size_t worker : std::set(port.polled.begin(), port.polled.end())) {
        for (pipeline::RxQueue& queue : lists_[worker]) {
            queue.netdev = queue.netdev == before ? port.id : queue.netdev;
        }
        send(worker);
    }
}

void Queues::withdraw(const Netdev& port) {
    for (const std::size_t worker : std::set(port.polled.begin(), port.polled.end())) {
        std::erase_if(lists_[worker],
                      [&](const pipeline::RxQueue& queue) { return queue.netdev == port.id; });
        send(worker);
    }
}

}  // namespace sluice::control
