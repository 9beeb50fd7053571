// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/id.h"
#include "base/pages.h"
#include "fib/dst.h"
#include "net/address.h"

namespace sluice::control {

/// The dsts that no FIB object owns (U-01), per worker that they were made for and family, in lists
/// by netdev: so that removing a netdev finds them without a look at any other's (U-06). Links are
/// indices beside the dst pool, not in it: workers never read them. Control thread.
class UncachedLists {
public:
    /// Lists per worker and family: kMaxNetdevs is one per netdev, fewer are shared by id modulo
    /// their number, 1 is a single list. A power of two (U-02).
    UncachedLists(std::size_t workers, std::size_t dst_capacity, std::size_t lists = kMaxNetdevs);

    /// The dst must not be listed. It is found from `out` and, where that is another netdev, from
    /// `idev` (U-05). O(1), and so is the rest but flush().
    void add(
        fib::DstIndex dst, std::size_t worker, net::Family family, NetdevId out, NetdevId idev);
    /// Needs to know nothing of the netdevs (U-03). The dst must be listed.
    void remove(fib::DstIndex dst);
    bool listed(fib::DstIndex dst) const noexcept;

    /// Every listed dst whose output netdev or idev is in `gone`: `each(dst, still)` where `still`
    /// says that its other netdev lives, so that it stays listed under that one; else it has left
    /// the lists when `each` runs. Stops after about `limit` visits; call again, with the same set,
    /// until it returns false (U-08). `each` may remove() any dst. What is added over `gone`
    /// between the calls may be missed.
    bool flush(std::span<const NetdevId> gone,
               std::size_t limit,
               const std::function<void(fib::DstIndex dst, bool still)>& each);

    /// `fn(dst)` for each that flush() of `gone` would visit and find to be of one of them; some
    /// come twice. Nothing is unlinked, so one costs little more than what `fn` does (U-04).
    template <class Fn>
    void for_each_of(std::span<const NetdevId> gone, Fn&& fn) {
        begin(gone);
        for (const auto& table : tables_) {
            for (std::size_t i = 0; table != nullptr && i < flushed_.size(); ++i) {
                for (Node node = table->heads[flushed_[i]]; node != 0; node = links_[node].next) {
                    if (is_gone_.test(links_[node].netdev.value)) {
                        fn(fib::DstIndex{std::min(node, other(node))});
                    }
                }
            }
        }
        gone_.clear();
    }

    std::size_t size() const noexcept { return size_; }
    /// Of one netdev as output.
    std::size_t count(std::size_t worker, net::Family family, NetdevId out) const noexcept;
    std::size_t visits() const noexcept { return visits_; }  // by flush() so far, of any dst

private:
    /// A dst's place in the list of one of its netdevs. Node n is that of dst n under its output
    /// netdev, node n + capacity the one under its idev.
    using Node = std::uint32_t;
    struct Link {
        Node next, prev;     // 0: none, since no dst has that index
        std::uint32_t list;  // 1 + its number over all tables; 0: not in a list
        NetdevId netdev;
    };
    static_assert(sizeof(Link) == 16);

    /// Of one worker and family, made with the first dst.
    struct Table {
        std::vector<Node> heads;
        std::vector<std::uint32_t> outputs;  // dsts by output netdev
    };

    std::size_t table_of(std::size_t worker, net::Family family) const noexcept {
        return worker * 2 + (family == net::Family::kIpv6 ? 1 : 0);
    }
    Node other(Node node) const noexcept {
        return node < capacity_ ? node + capacity_ : node - capacity_;
    }
    Node& head(std::uint32_t list) noexcept {
        return tables_[(list - 1) / lists_]->heads[(list - 1) % lists_];
    }
    void link(Node node, std::size_t table, NetdevId netdev);
    void unlink(Node node);
    /// One node of a flush; `next_` may change by what `each` removes.
    void visit(Node node, const std::function<void(fib::DstIndex dst, bool still)>& each);
    void begin(std::span<const NetdevId> gone);

    std::uint32_t capacity_;
    std::uint32_t lists_;
    std::vector<std::unique_ptr<Table>> tables_;
    PageArray<Link> links_;
    std::size_t size_ = 0;
    std::size_t visits_ = 0;

    // Of a flush that is not done: where it goes on.
    std::vector<NetdevId> gone_;
    std::bitset<kMaxNetdevs> is_gone_;
    std::vector<std::uint32_t> flushed_;  // the lists of gone_ in each table, each once
    std::size_t at_ = 0;                  // table and list, counted through
    Node next_ = 0;                       // in that list, once it is begun
    bool begun_ = false;
};

}  // namespace sluice::control
