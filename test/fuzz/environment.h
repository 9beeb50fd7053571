// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include "dpdk/eal.h"
#include "dpdk/pool.h"

namespace sluice::test::fuzz {

/// The EAL without hugepages or devices, and the mbufs of three workers; ends the program when
/// there is none to be had.
class Environment {
public:
    explicit Environment(std::string_view program);
    rte_mempool* pool() const { return pool_->raw(); }
    unsigned in_use() const { return pool_->in_use(); }
    ~Environment() { pool_.reset(); }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;
    Environment(Environment&&) = delete;
    Environment& operator=(Environment&&) = delete;

private:
    dpdk::Eal eal_;
    std::unique_ptr<dpdk::PktPool> pool_;
};

}  // namespace sluice::test::fuzz
