// SPDX-License-Identifier: BSD-3-Clause
#include "fib/lpm_trie.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sluice::fib {
namespace {

template <class Addr>
inline constexpr std::size_t kRootWords = std::size_t{1} << kRootBits<Addr>;
// Group numbers count from the root, which is so many groups long.
template <class Addr>
inline constexpr std::uint32_t kFirstGroup = kRootWords<Addr> / kGroupWords;

constexpr std::uint64_t high_ones(unsigned bits) noexcept {
    return bits == 0 ? 0 : ~std::uint64_t{0} << (64 - bits);
}

Halves mask_of(unsigned length) noexcept {
    return {high_ones(std::min(length, 64U)), high_ones(length > 64 ? length - 64 : 0)};
}

net::Ipv6Addr address_of(const Halves& halves) noexcept {
    net::Ipv6Addr address;
    for (std::size_t i = 0; i < 8; ++i) {
        address.bytes[i] = static_cast<std::uint8_t>(halves.high >> (56 - 8 * i));
        address.bytes[i + 8] = static_cast<std::uint8_t>(halves.low >> (56 - 8 * i));
    }
    return address;
}

std::uint8_t length_of(const Tail& tail) noexcept {
    return static_cast<std::uint8_t>(tag_of(tail.hit));
}

}  // namespace

template <class Addr>
std::unique_ptr<Trie<Addr>> Trie<Addr>::create(std::size_t max_routes,
                                               std::size_t max_groups,
                                               Reclaimer& reclaimer) {
    Mapping words((kRootWords<Addr> + max_groups * kGroupWords) * sizeof(std::uint32_t));
    // Each tail in use is one route; as many again may be waiting for readers.
    const std::size_t max_tails =
        kHasTails<Addr> ? std::min<std::size_t>(max_routes * 2 + 16, kPayloadMask) : 0;
    Mapping tails;
    if constexpr (kHasTails<Addr>) {
        tails = Mapping(max_tails * sizeof(Tail));
    }
    if (!words || (kHasTails<Addr> && !tails)) {
        return nullptr;
    }
    return std::unique_ptr<Trie>(
        new Trie(std::move(words), std::move(tails), max_groups, max_tails, reclaimer));
}

template <class Addr>
Trie<Addr>::Trie(Mapping words,
                 Mapping tails,
                 std::size_t max_groups,
                 std::size_t max_tails,
                 Reclaimer& reclaimer)
    : words_(std::move(words)),
      tails_(std::move(tails)),
      max_groups_(max_groups),
      groups_pool_(
          kFirstGroup<Addr>, kFirstGroup<Addr> + static_cast<std::uint32_t>(max_groups), reclaimer),
      tails_pool_(0, static_cast<std::uint32_t>(max_tails), reclaimer) {}

template <class Addr>
auto Trie<Addr>::root() const noexcept -> Node {
    return {{words_.as<std::uint32_t>(), kRootWords<Addr>}, kRootBits<Addr>};
}

template <class Addr>
auto Trie<Addr>::child(const Node& node, std::uint32_t word) const noexcept -> Node {
    return {{words_.as<std::uint32_t>() + std::size_t{payload_of(word)} * kGroupWords, kGroupWords},
            node.end_bit + 8};
}

template <class Addr>
Tail& Trie<Addr>::tail(std::uint32_t word) const noexcept {
    return tails_.as<Tail>()[payload_of(word)];
}

template <class Addr>
std::size_t Trie<Addr>::index_in(const Node& node, const Addr& address) noexcept {
    return node.end_bit == kRootBits<Addr> ? root_index(address)
                                           : address.bytes[node.end_bit / 8 - 1];
}

/// For a prefix that ends in the node.
template <class Addr>
std::span<std::uint32_t> Trie<Addr>::covered(const Node& node, const Prefix& prefix) noexcept {
    return node.words.subspan(index_in(node, prefix.address),
                              std::size_t{1} << (node.end_bit - prefix.length));
}

template <class Addr>
template <class Replaces>
void Trie<Addr>::replace_leaves(std::uint32_t& word,
                                std::uint32_t leaf,
                                const Replaces& replaces) const {
    const std::uint32_t now = word;
    if (is_group(now)) {
        for (std::uint32_t& inner : child(root(), now).words) {
            replace_leaves(inner, leaf, replaces);
        }
    } else if (!is_leaf(now)) {
        replace_leaves(tail(now).miss, leaf, replaces);
    } else if (replaces(tag_of(now))) {
        store_word(word, leaf);
    }
}

template <class Addr>
Result<void> Trie<Addr>::set(const Prefix& prefix, std::uint32_t value) {
    const std::size_t needed = groups_needed(prefix);
    if (needed > groups_pool_.available()) {
        return fail(ErrorCode::kLimit,
                    "limit max_groups reached: {} needs {} more, {} of {} are in use, {} wait for "
                    "workers",
                    prefix.to_string(),
                    needed,
                    groups_pool_.in_use(),
                    max_groups_,
                    groups_pool_.waiting());
    }
    // A split makes two at a time.
    if (kHasTails<Addr> && tails_pool_.available() < 2) {
        return fail(ErrorCode::kBusy,
                    "{}: {} freed entries of the table wait for workers, try again",
                    prefix.to_string(),
                    tails_pool_.waiting());
    }
    set_in(root(), prefix, make_word(prefix.length, value), Seen::kYes);
    return {};
}

/// What set_in() is going to take.
template <class Addr>
std::size_t Trie<Addr>::groups_needed(const Prefix& prefix) const noexcept {
    Node node = root();
    std::uint32_t word = 0;
    while (true) {
        if (prefix.length <= node.end_bit) {
            return 0;
        }
        word = node.words[index_in(node, prefix.address)];
        if (!is_group(word)) {
            break;
        }
        node = child(node, word);
    }
    if constexpr (!kHasTails<Addr>) {
        return 1;
    } else {
        if (is_leaf(word)) {
            return 0;
        }
        const Tail& there = tail(word);
        const unsigned shorter = std::min<unsigned>(length_of(there), prefix.length);
        if (length_of(there) == prefix.length && there.holds(key_of(prefix.address))) {
            return 0;
        }
        // One for each byte after the node until one of the two ends or they part.
        const Halves other = there.prefix;
        const Halves mine = key_of(prefix.address);
        std::size_t groups = 0;
        for (unsigned bit = node.end_bit; bit < shorter; bit += 8) {
            const Halves upto = mask_of(bit);
            if (((other.high ^ mine.high) & upto.high) != 0 ||
                ((other.low ^ mine.low) & upto.low) != 0) {
                break;
            }
            ++groups;
        }
        return groups;
    }
}

template <class Addr>
void Trie<Addr>::set_in(const Node& node, const Prefix& prefix, std::uint32_t leaf, Seen seen) {
    if (prefix.length <= node.end_bit) {
        for (std::uint32_t& word : covered(node, prefix)) {
            replace_leaves(word, leaf, [&](std::uint32_t tag) { return tag <= prefix.length; });
        }
        return;
    }
    std::uint32_t& word = node.words[index_in(node, prefix.address)];
    if (is_group(word)) {
        set_in(child(node, word), prefix, leaf, seen);
        return;
    }
    if constexpr (kHasTails<Addr>) {
        if (is_leaf(word)) {
            store_word(word, new_tail(prefix, leaf, word));
            return;
        }
        Tail& there = tail(word);
        if (length_of(there) == prefix.length && there.holds(key_of(prefix.address))) {
            store_word(there.hit, leaf);
            return;
        }
    }
    split(node, word, prefix, leaf, seen);
}

/// Puts a group between `word` and what it says, and the prefix in the group.
template <class Addr>
void Trie<Addr>::split(
    const Node& node, std::uint32_t& word, const Prefix& prefix, std::uint32_t leaf, Seen seen) {
    const std::uint32_t before = word;
    const std::uint32_t group = make_word(kGroupTag, groups_pool_.take());
    const Node inner = child(node, group);
    const std::uint32_t around = is_leaf(before) ? before : tail(before).miss;
    for (std::uint32_t& each : inner.words) {
        store_word(each, around);
    }
    if constexpr (kHasTails<Addr>) {
        const Tail there = tail(before);
        if (seen == Seen::kNo) {
            tails_pool_.release_unseen(payload_of(before));
        }
        set_in(inner, {address_of(there.prefix), length_of(there)}, there.hit, Seen::kNo);
    }
    set_in(inner, prefix, leaf, Seen::kNo);
    store_word(word, group);
    if (kHasTails<Addr> && seen == Seen::kYes) {
        tails_pool_.release(payload_of(before));
    }
}

template <class Addr>
std::uint32_t Trie<Addr>::new_tail(const Prefix& prefix, std::uint32_t hit, std::uint32_t miss) {
    if constexpr (kHasTails<Addr>) {
        const std::uint32_t word = make_word(kTailTag, tails_pool_.take());
        tail(word) = {key_of(prefix.address), mask_of(prefix.length), hit, miss};
        return word;
    } else {
        std::unreachable();
    }
}

template <class Addr>
void Trie<Addr>::erase(const Prefix& prefix, std::uint32_t covering) {
    erase_in(root(), prefix, covering);
}

template <class Addr>
void Trie<Addr>::erase_in(const Node& node, const Prefix& prefix, std::uint32_t covering) {
    if (prefix.length <= node.end_bit) {
        // Within the prefix no other has its length, so the length tells its leaves from the rest.
        for (std::uint32_t& word : covered(node, prefix)) {
            replace_leaves(word, covering, [&](std::uint32_t tag) { return tag == prefix.length; });
        }
        return;
    }
    std::uint32_t& word = node.words[index_in(node, prefix.address)];
    if (is_group(word)) {
        erase_in(child(node, word), prefix, covering);
        collapse(node, word);
        return;
    }
    SLUICE_CHECK(kHasTails<Addr> && !is_leaf(word));
    const std::uint32_t before = word;
    store_word(word, tail(before).miss);
    tails_pool_.release(payload_of(before));
}

/// Takes the group that `word` leads to out again if one word says all that it says: a leaf from
/// before the group or, since tails compare whole addresses, the only tail in it.
template <class Addr>
void Trie<Addr>::collapse(const Node& parent, std::uint32_t& word) {
    const std::uint32_t group = word;
    const std::span<const std::uint32_t> inner = child(parent, group).words;
    std::uint32_t summary = inner.front();
    if (is_group(summary)) {
        return;
    }
    for (const std::uint32_t each : inner) {
        if (each == summary) {
            continue;
        }
        if (is_group(each) || is_leaf(each) == is_leaf(summary)) {
            return;
        }
        const std::uint32_t only_tail = is_leaf(each) ? summary : each;
        if (tail(only_tail).miss != (is_leaf(each) ? each : summary)) {
            return;
        }
        summary = only_tail;
    }
    const std::uint32_t around = is_leaf(summary) ? summary : tail(summary).miss;
    if (tag_of(around) > parent.end_bit) {
        return;
    }
    store_word(word, summary);
    groups_pool_.release(payload_of(group));
}

template <class Addr>
std::size_t Trie<Addr>::memory_bytes() const noexcept {
    return sizeof(*this) +
           (kRootWords<Addr> + groups_pool_.touched() * kGroupWords) * sizeof(std::uint32_t) +
           tails_pool_.touched() * sizeof(Tail) + groups_pool_.memory_bytes() +
           tails_pool_.memory_bytes();
}

template class Trie<net::Ipv4Addr>;
template class Trie<net::Ipv6Addr>;

}  // namespace sluice::fib
