// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/reclaimer.h"
#include "base/result.h"
#include "fib/dst.h"
#include "fib/lpm.h"
#include "net/address.h"

namespace sluice::fib {

/// What rules may read of a packet's transport header. Zero: none to read (a fragment, another
/// protocol); ports in host order. One word, so that it is not put together in memory, where a
/// wider load would wait for its narrow stores.
struct alignas(8) Transport {
    std::uint8_t protocol = 0;
    bool has_ports = false;
    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;
};

struct PolicyPorts {
    std::uint16_t first = 0;
    std::uint16_t last = 0xffff;
    friend bool operator==(const PolicyPorts&, const PolicyPorts&) = default;
};

/// One policy rule as given to Policy::compile(). What is absent matches everything.
template <class Addr>
struct PolicyRule {
    std::optional<net::Prefix<Addr>> from{};
    std::optional<net::Prefix<Addr>> to{};
    std::optional<std::uint8_t> dscp{};
    std::optional<std::uint32_t> mark{};
    std::optional<std::uint8_t> protocol{};
    std::optional<PolicyPorts> source_ports{};
    std::optional<PolicyPorts> destination_ports{};

    /// One of three: go on with another mark; a fixed answer; a table to look in, and if it has no
    /// route, the next rule. A suppressed prefix length is a table without the short prefixes.
    std::optional<std::uint32_t> set_mark{};
    std::uint32_t answer = kNoRoute;
    const LpmTable<Addr>* table = nullptr;
};

/// The rules that packets of one ingress meet, compiled. A decision is made from the destination,
/// the DSCP and the *rule class* alone, a small number that stands for all else that the rules read
/// (C-40): that is what makes its result cacheable under these three, by construction: decide() is
/// given nothing else that differs between packets of one ingress. The mark starts as the
/// ingress's, and what rules make of it follows from the three. Immutable; published by pointer and
/// destroyed by its owner through the Reclaimer. The tables must outlive it.
template <class Addr>
class Policy {
public:
    static constexpr std::size_t kMaxRules = 256;
    /// Classes that fit into a cache key.
    static constexpr unsigned kClassBits = 12;

    /// Control thread. `rules` in the order in which they are asked, the last resort (the main or
    /// VRF's table) included; those of other ingresses left out. `mark`: of the ingress. kLimit:
    /// more than kMaxRules, or what they tell apart has 2^32 combinations. kInvalid: a rule that
    /// does nothing.
    static Result<std::unique_ptr<const Policy>> compile(std::span<const PolicyRule<Addr>> rules,
                                                         std::uint32_t mark,
                                                         Reclaimer& reclaimer);
    ~Policy();
    Policy(const Policy&) = delete;
    Policy& operator=(const Policy&) = delete;
    Policy(Policy&&) = delete;
    Policy& operator=(Policy&&) = delete;

    /// Whether a rule reads the source, the transport header; else classify() needs none.
    bool reads_source() const noexcept { return reads_source_; }
    bool reads_transport() const noexcept { return reads_transport_; }
    /// False: there are more classes than a cache key has room for, so its packets bypass the
    /// cache.
    bool cacheable() const noexcept { return cacheable_; }

    /// The class of a packet of which nothing is known: no source, no transport header.
    std::uint32_t unknown_class() const noexcept { return unknown_class_; }

    // Worker threads.

    /// classes[i] becomes the rule class of a packet. `sources` and `transports` may be null when
    /// they are not read.
    void classify(const Addr* sources,
                  const Transport* transports,
                  std::uint32_t* classes,
                  std::size_t count) const noexcept;
    /// values[i] becomes what the rules say (a table's value; kNoRoute when none has an answer).
    void decide(const Addr* destinations,
                const std::uint8_t* dscps,
                const std::uint32_t* classes,
                std::uint32_t* values,
                std::size_t count) const noexcept;

private:
    Policy() = default;
    struct Compiled;
    std::unique_ptr<Compiled> compiled_;
    bool reads_source_ = false;
    bool reads_transport_ = false;
    bool cacheable_ = true;
    std::uint32_t unknown_class_ = 0;
};

using Ipv4Policy = Policy<net::Ipv4Addr>;
using Ipv6Policy = Policy<net::Ipv6Addr>;

}  // namespace sluice::fib
