// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <vector>

#include "control/dataplane.h"
#include "control/netdevs.h"
#include "pipeline/messages.h"

namespace sluice::control {

/// Which worker polls which RX queue. A queue stays with its worker for life: two workers would
/// poll it at once while it moved. Control thread.
class Queues {
public:
    explicit Queues(Dataplane& dataplane) : dataplane_(dataplane), lists_(dataplane.workers()) {}

    /// Spreads the port's queues, each to the worker with the fewest, and publishes. A port that
    /// had queues before gets the same workers.
    void publish(Netdev& port);
    /// The port has another id than before; its queues stay with their workers.
    void rename(const Netdev& port, NetdevId before);
    /// After the grace period no worker touches the port.
    void withdraw(const Netdev& port);

private:
    void send(std::size_t worker);

    Dataplane& dataplane_;
    std::vector<pipeline::RxQueueList> lists_;
};

}  // namespace sluice::control
