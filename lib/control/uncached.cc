// SPDX-License-Identifier: BSD-3-Clause
#include "control/uncached.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/check.h"
#include "base/id.h"
#include "fib/dst.h"
#include "net/address.h"

namespace sluice::control {

UncachedLists::UncachedLists(std::size_t workers, std::size_t dst_capacity, std::size_t lists)
    : capacity_(static_cast<std::uint32_t>(dst_capacity)),
      lists_(static_cast<std::uint32_t>(lists)),
      tables_(workers * 2),
      links_(dst_capacity * 2) {
    SLUICE_CHECK(std::has_single_bit(lists) && lists <= kMaxNetdevs);
    SLUICE_CHECK(dst_capacity <= fib::kMaxDsts);
}

void UncachedLists::link(Node node, std::size_t table, NetdevId netdev) {
    const std::uint32_t at = netdev.value & (lists_ - 1);
    Node& first = tables_[table]->heads[at];
    links_[node] = {.next = first,
                    .prev = 0,
                    .list = static_cast<std::uint32_t>(table) * lists_ + at + 1,
                    .netdev = netdev};
    if (first != 0) {
        links_[first].prev = node;
    }
    first = node;
}

void UncachedLists::unlink(Node node) {
    Link& link = links_[node];
    if (link.next != 0) {
        links_[link.next].prev = link.prev;
    }
    if (link.prev != 0) {
        links_[link.prev].next = link.next;
    } else {
        head(link.list) = link.next;
    }
    if (next_ == node) {
        next_ = link.next;
    }
    if (node < capacity_) {
        --tables_[(link.list - 1) / lists_]->outputs[link.netdev.value];
    }
    link.list = 0;
}

void UncachedLists::add(
    fib::DstIndex dst, std::size_t worker, net::Family family, NetdevId out, NetdevId idev) {
    SLUICE_CHECK(dst != 0 && dst < capacity_ && !listed(dst));
    const std::size_t table = table_of(worker, family);
    if (tables_[table] == nullptr) {
        tables_[table] =
            std::make_unique<Table>(Table{.heads = std::vector<Node>(lists_),
                                          .outputs = std::vector<std::uint32_t>(kMaxNetdevs)});
    }
    link(dst, table, out);
    ++tables_[table]->outputs[out.value];
    if (idev != out) {
        link(dst + capacity_, table, idev);
    }
    ++size_;
}

void UncachedLists::remove(fib::DstIndex dst) {
    SLUICE_CHECK(listed(dst));
    for (const Node node : {dst, dst + capacity_}) {
        if (links_[node].list != 0) {
            unlink(node);
        }
    }
    --size_;
}

bool UncachedLists::listed(fib::DstIndex dst) const noexcept {
    return links_[dst].list != 0 || links_[dst + capacity_].list != 0;
}

std::size_t UncachedLists::count(std::size_t worker,
                                 net::Family family,
                                 NetdevId out) const noexcept {
    const auto& table = tables_[table_of(worker, family)];
    return table == nullptr ? 0 : table->outputs[out.value];
}

void UncachedLists::begin(std::span<const NetdevId> gone) {
    gone_.assign(gone.begin(), gone.end());
    is_gone_.reset();
    flushed_.clear();
    for (const NetdevId netdev : gone) {
        is_gone_.set(netdev.value);
        flushed_.push_back(netdev.value & (lists_ - 1));
    }
    std::ranges::sort(flushed_);
    flushed_.erase(std::ranges::unique(flushed_).begin(), flushed_.end());
    at_ = 0;
    next_ = 0;
    begun_ = false;
}

void UncachedLists::visit(Node node,
                          const std::function<void(fib::DstIndex dst, bool still)>& each) {
    ++visits_;
    if (!is_gone_.test(links_[node].netdev.value)) {
        return;  // of another netdev, in the same list
    }
    const Link& under_other = links_[other(node)];
    const bool still = under_other.list != 0 && !is_gone_.test(under_other.netdev.value);
    const fib::DstIndex dst = std::min(node, other(node));
    if (still) {
        unlink(node);
    } else {
        remove(dst);
    }
    each(dst, still);
}

bool UncachedLists::flush(std::span<const NetdevId> gone,
                          std::size_t limit,
                          const std::function<void(fib::DstIndex dst, bool still)>& each) {
    if (!std::ranges::equal(gone, gone_)) {
        begin(gone);
    }
    const std::size_t end = tables_.size() * flushed_.size();
    std::size_t left = limit;
    for (; at_ < end; ++at_, begun_ = false) {
        const auto& table = tables_[at_ / flushed_.size()];
        if (table == nullptr) {
            continue;
        }
        if (!begun_) {
            begun_ = true;
            next_ = table->heads[flushed_[at_ % flushed_.size()]];
        }
        while (next_ != 0) {
            if (left == 0) {
                return true;
            }
            --left;
            const Node node = next_;
            next_ = links_[node].next;
            visit(node, each);
        }
    }
    gone_.clear();  // the next call begins anew
    return false;
}

}  // namespace sluice::control
