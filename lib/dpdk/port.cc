// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/port.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "dpdk/compat.h"
#include "dpdk/eal.h"
#include "dpdk/error.h"
#include "dpdk/tap.h"

namespace sluice::dpdk {
namespace {

/// "net_tap0,iface=x" -> "net_tap0"; a PCI address gets its domain.
std::string device_name(const std::string& device) {
    std::string name = device.substr(0, device.find(','));
    if (is_pci_device(name) && std::ranges::count(name, ':') == 1) {
        name.insert(0, "0000:");
    }
    return name;
}

/// By device rather than ethdev name: net_ring gives its ports other names than their device's.
std::optional<std::uint16_t> port_of_device(const std::string& name) {
    for (std::uint16_t id = 0; (id = rte_eth_find_next(id)) < RTE_MAX_ETHPORTS; ++id) {
        rte_eth_dev_info info{};
        if (rte_eth_dev_info_get(id, &info) == 0 && info.device != nullptr &&
            name == rte_dev_name(info.device)) {
            return id;
        }
    }
    return std::nullopt;
}

/// Drivers that leave max_mtu open still limit the frame; ethdev then counts header and CRC.
std::uint16_t highest_mtu(const rte_eth_dev_info& info) {
    const std::uint16_t mtu = info.max_mtu != 0 ? info.max_mtu : UINT16_MAX;
    constexpr std::uint32_t kOverhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
    if (mtu != UINT16_MAX || info.max_rx_pktlen <= kOverhead) {
        return mtu;
    }
    return static_cast<std::uint16_t>(std::min<std::uint32_t>(mtu, info.max_rx_pktlen - kOverhead));
}

constexpr std::uint64_t kRssWanted = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP;

}  // namespace

void Port::note(std::string text) {
    if (std::ranges::find(notes_, text) == notes_.end()) {
        notes_.push_back(std::move(text));
    }
}

Result<Port> Port::open(const PortOptions& options, std::span<PktPool* const> pools) {
    Port port;
    if (pools.empty()) {
        return fail(ErrorCode::kInternal, "{}: no packet pool", options.device);
    }
    for (const PktPool* pool : pools) {
        port.pools_.push_back(pool->raw());
    }
    port.rx_queues_ = std::max<std::uint16_t>(options.rx_queues, 1);
    port.tx_queues_ = std::max<std::uint16_t>(options.tx_queues, 1);
    port.rx_descriptors_ = options.rx_descriptors;
    port.tx_descriptors_ = options.tx_descriptors;
    port.promiscuous_ = options.promiscuous;
    port.rx_interrupts_wanted_ = options.rx_interrupts;
    if (auto ok = port.take_device(options.device); !ok) {
        return std::unexpected(std::move(ok.error()));
    }
    if (auto ok = port.configure(options.mtu); !ok) {
        return std::unexpected(std::move(ok.error()));
    }
    if (options.mac) {
        if (auto ok = port.set_mac(*options.mac); !ok) {
            return std::unexpected(std::move(ok.error()));
        }
    }
    return port;
}

Result<void> Port::take_device(const std::string& device) {
    name_ = device_name(device);
    auto id = port_of_device(name_);
    if (id) {
        // PCI devices that the EAL was started with are there already, but nobody has configured
        // them.
        rte_eth_dev_info info{};
        if (rte_eth_dev_info_get(*id, &info) != 0 || info.nb_rx_queues != 0) {
            return fail(ErrorCode::kExists, "device {}: is a port already", name_);
        }
    } else {
        const int result = rte_dev_probe(device.c_str());
        if (result == -EEXIST) {
            return fail(ErrorCode::kExists, "device {}: is attached already", name_);
        }
        if (result < 0) {
            // Drivers seldom hand on why the kernel said no; net_tap calls it an invalid argument.
            const bool rights = geteuid() != 0;
            return fail(rights ? ErrorCode::kPermission : ErrorCode::kDevice,
                        "device {}: cannot be attached: {}{}; the driver's own words are above",
                        device,
                        reason(result),
                        rights ? ", and this is not root" : "");
        }
        id = port_of_device(name_);
        if (!id) {
            return fail(ErrorCode::kDevice, "device {}: is no network device", device);
        }
    }
    id_ = PortId{*id};
    attached_ = true;

    rte_eth_dev_info info{};
    if (const int result = rte_eth_dev_info_get(id_.value, &info); result < 0) {
        return fail(code_of(result), "port {}: {}", name_, reason(result));
    }
    driver_ = info.driver_name != nullptr ? info.driver_name : "";
    tap_ = driver_ == "net_tap";
    max_rx_queues_ = info.max_rx_queues;
    min_mtu_ = info.min_mtu;
    max_mtu_ = highest_mtu(info);
    const auto reduce = [&](std::uint16_t& queues, std::uint16_t most, const char* what) {
        if (most != 0 && queues > most) {  // 0: the driver knows no limit
            note(fmt::format(
                "port {}: {} {} queues asked for, the device has {}", name_, queues, what, most));
            queues = most;
        }
    };
    reduce(rx_queues_, info.max_rx_queues, "RX");
    reduce(tx_queues_, info.max_tx_queues, "TX");

    rte_ether_addr ether{};
    if (rte_eth_macaddr_get(id_.value, &ether) == 0) {
        std::ranges::copy(ether.addr_bytes, mac_.bytes.begin());
    }
    if (tap_) {
        min_mtu_ = tap::kMinMtu;
        max_mtu_ = std::min(max_mtu_, tap::kMaxMtu);
        mac_.bytes[0] = (mac_.bytes[0] ^ 0x04U) | 0x02U;
    }
    return {};
}

bool Port::scatter_needed(std::uint16_t mtu) const noexcept {
    constexpr std::uint32_t kFrameOverhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN + 4 /* tag */;
    std::uint32_t room = UINT16_MAX;
    for (rte_mempool* pool : pools_) {
        room = std::min<std::uint32_t>(room, rte_pktmbuf_data_room_size(pool));
    }
    return mtu + kFrameOverhead + RTE_PKTMBUF_HEADROOM > room;
}

Result<void> Port::check_mtu(std::uint16_t mtu) const {
    if (mtu < min_mtu_ || mtu > max_mtu_) {
        return fail(ErrorCode::kInvalid,
                    "port {}: MTU {} is outside what {} takes, {} to {}",
                    name_,
                    mtu,
                    driver_,
                    min_mtu_,
                    max_mtu_);
    }
    return {};
}

Result<void> Port::configure(std::uint16_t mtu) {
    if (auto ok = check_mtu(mtu); !ok) {
        return ok;
    }
    rte_eth_dev_info info{};
    if (const int result = rte_eth_dev_info_get(id_.value, &info); result < 0) {
        return fail(code_of(result), "port {}: {}", name_, reason(result));
    }
    rte_eth_conf conf{};
    conf.rxmode.mtu = tap_ ? max_mtu_ : mtu;
    if (scatter_needed(mtu) || tap_) {
        conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_SCATTER & info.rx_offload_capa;
        if (conf.rxmode.offloads == 0) {
            note(
                fmt::format("port {}: {} does not say that it receives into several segments; "
                            "frames longer than one may be lost",
                            name_,
                            driver_));
        }
    }
    // MBUF_FAST_FREE is never asked for: a queue sends mbufs of every port's pool, and segmented
    // ones.
    conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS & info.tx_offload_capa;
    if (!tap_ && info.dev_flags != nullptr && (*info.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0) {
        conf.intr_conf.lsc = 1;
    }
    conf.intr_conf.rxq = rx_interrupts_wanted_ || tap_ ? 1 : 0;
    const auto apply = [&] {
        const bool rss = rx_queues_ > 1 && (info.flow_type_rss_offloads & kRssWanted) != 0;
        conf.rxmode.mq_mode = rss ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE;
        conf.rx_adv_conf.rss_conf.rss_hf = rss ? info.flow_type_rss_offloads & kRssWanted : 0;
        return rte_eth_dev_configure(id_.value, rx_queues_, tx_queues_, &conf);
    };
    int result = apply();
    if (result < 0 && rx_queues_ != tx_queues_) {
        // Some devices (net_tap) have queues in pairs only.
        const std::uint16_t pairs = std::max(rx_queues_, tx_queues_);
        note(fmt::format(
            "port {}: {} takes as many RX as TX queues: {} of each rather than {} and {}",
            name_,
            driver_,
            pairs,
            rx_queues_,
            tx_queues_));
        rx_queues_ = tx_queues_ = pairs;
        result = apply();
    }
    if (result < 0) {
        return fail(code_of(result), "port {}: cannot be configured: {}", name_, reason(result));
    }
    rx_offloads_ = conf.rxmode.offloads;
    tx_offloads_ = conf.txmode.offloads;
    if (auto ok = set_up_queues(); !ok) {
        return ok;
    }
    return set_device_mtu(mtu);
}

Result<void> Port::set_up_queues() {
    rte_eth_dev_info info{};
    if (const int result = rte_eth_dev_info_get(id_.value, &info); result < 0) {
        return fail(code_of(result), "port {}: {}", name_, reason(result));
    }
    std::uint16_t rx_descriptors = rx_descriptors_;
    std::uint16_t tx_descriptors = tx_descriptors_;
    if (const int result =
            rte_eth_dev_adjust_nb_rx_tx_desc(id_.value, &rx_descriptors, &tx_descriptors);
        result < 0) {
        return fail(code_of(result), "port {}: descriptors: {}", name_, reason(result));
    }
    if (tap_) {
        // Not a ring: the segments that one frame may take. More only costs time per read.
        rx_descriptors = std::min<std::uint16_t>(rx_descriptors, 64);
    }
    const auto node = static_cast<unsigned>(socket());
    info.default_rxconf.offloads = rx_offloads_;
    info.default_txconf.offloads = tx_offloads_;
    for (std::uint16_t queue = 0; queue < rx_queues_; ++queue) {
        rte_mempool* pool = pools_[queue < pools_.size() ? queue : 0];
        const int result = rte_eth_rx_queue_setup(
            id_.value, queue, rx_descriptors, node, &info.default_rxconf, pool);
        if (result < 0) {
            return fail(code_of(result),
                        "port {}: RX queue {} of {} descriptors: {}",
                        name_,
                        queue,
                        rx_descriptors,
                        reason(result));
        }
    }
    for (std::uint16_t queue = 0; queue < tx_queues_; ++queue) {
        const int result =
            rte_eth_tx_queue_setup(id_.value, queue, tx_descriptors, node, &info.default_txconf);
        if (result < 0) {
            return fail(code_of(result),
                        "port {}: TX queue {} of {} descriptors: {}",
                        name_,
                        queue,
                        tx_descriptors,
                        reason(result));
        }
    }
    return {};
}

Result<void> Port::set_device_mtu(std::uint16_t mtu) {
    if (tap_) {  // configured for the highest; the first start() sets the kernel's end
        mtu_ = mtu;
        return {};
    }
    const int result = rte_eth_dev_set_mtu(id_.value, mtu);
    if (result == -ENOTSUP) {
        // No MTU of its own (net_ring): it carries whatever fits an mbuf.
        note(fmt::format("port {}: {} has no MTU to set", name_, driver_));
    } else if (result < 0) {
        return fail(result == -EBUSY ? ErrorCode::kBusy : ErrorCode::kInvalid,
                    "port {}: {} refuses MTU {} (its maximum: {}): {}",
                    name_,
                    driver_,
                    mtu,
                    max_mtu_,
                    reason(result));
    }
    mtu_ = mtu;
    return {};
}

Port::Port(Port&& other) noexcept
    : name_(std::move(other.name_)),
      driver_(std::move(other.driver_)),
      mac_(other.mac_),
      notes_(std::move(other.notes_)),
      pools_(std::move(other.pools_)),
      rx_offloads_(other.rx_offloads_),
      tx_offloads_(other.tx_offloads_),
      id_(other.id_),
      rx_queues_(other.rx_queues_),
      tx_queues_(other.tx_queues_),
      max_rx_queues_(other.max_rx_queues_),
      rx_descriptors_(other.rx_descriptors_),
      tx_descriptors_(other.tx_descriptors_),
      mtu_(other.mtu_),
      min_mtu_(other.min_mtu_),
      max_mtu_(other.max_mtu_),
      attached_(std::exchange(other.attached_, false)),
      started_(std::exchange(other.started_, false)),
      promiscuous_(other.promiscuous_),
      rx_interrupts_(other.rx_interrupts_),
      promiscuous_needed_(other.promiscuous_needed_),
      rx_interrupts_wanted_(other.rx_interrupts_wanted_),
      tap_(other.tap_),
      running_(std::exchange(other.running_, false)) {}

Port::~Port() {
    if (!attached_) {
        return;
    }
    if (running_) {
        rte_eth_dev_stop(id_.value);
    }
    rte_eth_dev_info info{};
    const bool known = rte_eth_dev_info_get(id_.value, &info) == 0;
    rte_eth_dev_close(id_.value);
    // Closing alone keeps the device, and its devargs: a port of that name could not be opened
    // again.
    if (known && info.device != nullptr) {
        rte_dev_remove(info.device);
    }
}

Result<void> Port::start_device() {
    int result = rte_eth_dev_start(id_.value);
    if (result < 0 && rx_interrupts_wanted_) {
        // The bus driver may have no vector per queue (uio); polling always works.
        note(fmt::format("port {}: does not start with RX interrupts, runs without", name_));
        rx_interrupts_wanted_ = false;
        if (auto ok = configure(mtu_); !ok) {
            return ok;
        }
        result = rte_eth_dev_start(id_.value);
    }
    if (result < 0) {
        return fail(code_of(result), "port {}: does not start: {}", name_, reason(result));
    }
    running_ = true;
    if (tap_) {
        const int error = tap::set_mtu(queue_fd(0).value_or(-1), mtu_);
        if (error != 0) {
            return fail(code_of(-error), "port {}: MTU {}: {}", name_, mtu_, reason(-error));
        }
    }
    return {};
}

Result<void> Port::start() {
    if (started_) {
        return {};
    }
    if (running_) {
        discard_received();
    } else if (auto ok = start_device(); !ok) {
        return ok;
    }
    started_ = true;
    // NDP lives on multicast groups.
    if (auto ok = set_allmulticast(true); !ok) {
        promiscuous_needed_ = true;
        note(fmt::format("port {}: promiscuous, as it takes no all-multicast", name_));
    }
    if (auto ok = set_promiscuous(promiscuous_); !ok) {
        stop();
        return ok;
    }
    // Asked once: ethdev logs an error each time that a device has none.
    rx_interrupts_ = rx_interrupts_wanted_;
    rx_interrupts_ = rx_interrupts_wanted_ = rx_wakeup(0).has_value();
    return {};
}

void Port::stop() {
    started_ = false;
    // A tap whose kernel end was moved could not be started again.
    if (running_ && !tap_) {
        rte_eth_dev_stop(id_.value);
        running_ = false;
    }
}

void Port::discard_received() noexcept {
    // Bounded: what arrives meanwhile is new.
    constexpr int kRounds = 64;
    std::array<rte_mbuf*, 32> burst{};
    for (std::uint16_t queue = 0; queue < rx_queues_; ++queue) {
        for (int round = 0; round < kRounds; ++round) {
            const std::uint16_t n =
                rte_eth_rx_burst(id_.value, queue, burst.data(), std::uint16_t{burst.size()});
            if (n == 0) {
                break;
            }
            rte_pktmbuf_free_bulk(burst.data(), n);
        }
    }
}

}  // namespace sluice::dpdk
