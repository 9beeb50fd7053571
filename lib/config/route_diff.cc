// SPDX-License-Identifier: BSD-3-Clause
#include "config/route_diff.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>

namespace sluice::config {
namespace {

using Pointers = std::vector<const Route*>;

auto prefix_key(const Route& r) {
    return std::tie(r.to, r.table);
}

bool key_less(const Route* a, const Route* b) {
    return std::tie(a->to, a->table, a->metric) < std::tie(b->to, b->table, b->metric);
}

Pointers sorted(std::span<const Route> routes) {
    Pointers pointers;
    pointers.reserve(routes.size());
    for (const Route& route : routes) {
        pointers.push_back(&route);
    }
    if (!std::is_sorted(pointers.begin(), pointers.end(), key_less)) {
        std::sort(pointers.begin(), pointers.end(), key_less);
    }
    return pointers;
}

/// All routes of one prefix and table, both sides by ascending metric.
void diff_prefix(std::span<const Route* const> from,
                 std::span<const Route* const> to,
                 const std::function<bool(const Route&)>& uprooted,
                 RouteDiff& out) {
    Pointers gone;
    Pointers come;
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < from.size() || j < to.size()) {
        if (j == to.size() || (i < from.size() && from[i]->metric < to[j]->metric)) {
            gone.push_back(from[i++]);
        } else if (i == from.size() || to[j]->metric < from[i]->metric) {
            come.push_back(to[j++]);
        } else if (uprooted(*from[i])) {
            out.removed.push_back(from[i++]);
            out.added.push_back(to[j++]);
        } else {
            if (*from[i] != *to[j]) {
                out.replaced.emplace_back(from[i], to[j]);
            }
            ++i;
            ++j;
        }
    }
    if (gone.size() == 1 && come.size() == 1 && !uprooted(*gone.front())) {
        out.replaced.emplace_back(gone.front(), come.front());
        return;
    }
    out.removed.insert(out.removed.end(), gone.begin(), gone.end());
    out.added.insert(out.added.end(), come.begin(), come.end());
}

}  // namespace

RouteDiff diff_routes(const std::vector<Route>& from,
                      const std::vector<Route>& to,
                      const std::function<bool(const Route&)>& uprooted) {
    // Between two versions of a large file little differs: what they begin and end with alike need
    // not be sorted.
    const auto same = [&](const Route& a, const Route& b) { return a == b && !uprooted(a); };
    const auto [from_begin, to_begin] =
        std::mismatch(from.begin(), from.end(), to.begin(), to.end(), same);
    const auto [from_rend, to_rend] = std::mismatch(from.rbegin(),
                                                    std::make_reverse_iterator(from_begin),
                                                    to.rbegin(),
                                                    std::make_reverse_iterator(to_begin),
                                                    same);
    const Pointers before = sorted({from_begin, from_rend.base()});
    const Pointers after = sorted({to_begin, to_rend.base()});

    RouteDiff result;
    auto i = before.begin();
    auto j = after.begin();
    while (i != before.end() || j != after.end()) {
        const bool from_first =
            j == after.end() || (i != before.end() && prefix_key(**i) < prefix_key(**j));
        const Route& first = from_first ? **i : **j;
        const auto other = [&](const Route* r) { return prefix_key(*r) != prefix_key(first); };
        const auto i_end = std::find_if(i, before.end(), other);
        const auto j_end = std::find_if(j, after.end(), other);
        diff_prefix({i, i_end}, {j, j_end}, uprooted, result);
        i = i_end;
        j = j_end;
    }
    return result;
}

}  // namespace sluice::config
