// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/reclaimer.h"
#include "base/result.h"
#include "fib/lpm_memory.h"
#include "fib/lpm_words.h"
#include "net/address.h"

namespace sluice::fib {

/// The trie form and its writer. A node is the root or a group; its words hold the routes that end
/// within its bits, spread over all words they cover unless a longer one is there, and lead on to
/// what is longer. Every store leaves the trie consistent for whoever is searching it: what a word
/// leads to is complete before the word is stored.
template <class Addr>
class Trie {
public:
    using Prefix = net::Prefix<Addr>;

    /// nullptr when the system has no address space left.
    static std::unique_ptr<Trie> create(std::size_t max_routes,
                                        std::size_t max_groups,
                                        Reclaimer& reclaimer);

    /// kLimit when there are too few groups for it, nothing changed.
    Result<void> set(const Prefix& prefix, std::uint32_t value);
    /// The prefix must be there; `covering` is the leaf that takes its place.
    void erase(const Prefix& prefix, std::uint32_t covering);

    TrieView<Addr> view() const noexcept { return {words_.as<std::uint32_t>(), tails_.as<Tail>()}; }
    std::size_t memory_bytes() const noexcept;
    std::size_t groups_in_use() const noexcept { return groups_pool_.in_use(); }
    std::size_t tails_in_use() const noexcept { return tails_pool_.in_use(); }

private:
    /// A node's words are indexed with the address bits before `end_bit`.
    struct Node {
        std::span<std::uint32_t> words;
        unsigned end_bit;
    };
    /// Whether workers can reach what is being changed.
    enum class Seen : bool { kNo, kYes };

    Trie(Mapping words, Mapping tails, std::size_t max_groups, std::size_t max_tails, Reclaimer&);
    Node root() const noexcept;
    Node child(const Node& node, std::uint32_t word) const noexcept;
    Tail& tail(std::uint32_t word) const noexcept;
    static std::size_t index_in(const Node& node, const Addr& address) noexcept;
    static std::span<std::uint32_t> covered(const Node& node, const Prefix& prefix) noexcept;

    std::size_t groups_needed(const Prefix& prefix) const noexcept;
    void set_in(const Node& node, const Prefix& prefix, std::uint32_t leaf, Seen seen);
    void split(
        const Node& node, std::uint32_t& word, const Prefix& prefix, std::uint32_t leaf, Seen);
    std::uint32_t new_tail(const Prefix& prefix, std::uint32_t hit, std::uint32_t miss);
    void erase_in(const Node& node, const Prefix& prefix, std::uint32_t covering);
    void collapse(const Node& parent, std::uint32_t& word);
    /// Replaces the leaves under `word` that `replaces` is true for.
    template <class Replaces>
    void replace_leaves(std::uint32_t& word, std::uint32_t leaf, const Replaces& replaces) const;

    Mapping words_;
    Mapping tails_;
    std::size_t max_groups_;
    SlotPool groups_pool_;
    SlotPool tails_pool_;
};

}  // namespace sluice::fib
