// SPDX-License-Identifier: BSD-3-Clause
#include "control/rib.h"

#include <iterator>

namespace sluice::control {

static_assert(sizeof(Route<net::Ipv4Addr>) <= 64);
static_assert(sizeof(Route<net::Ipv6Addr>) <= 80);

template <class Addr>
Rib<Addr>::~Rib() {
    routes_.clear_and_dispose([](Route<Addr>* route) {
        route->hop->routes.erase(route->hop->routes.iterator_to(*route));
        delete route;
    });
}

template <class Addr>
Result<void> Rib<Addr>::add(const Key& key, RouteTarget& hop, std::uint8_t protocol) {
    auto* route = new Route<Addr>;
    route->key = key;
    route->hop = &hop;
    route->table = index_;
    route->protocol = protocol;
    const auto it = routes_.insert(*route).first;
    ++counts_[std::to_underlying(key.owner)];
    if (auto ok = is_only(it) ? activate(*route) : update(key.prefix); !ok) {
        routes_.erase(routes_.iterator_to(*route));
        --counts_[std::to_underlying(key.owner)];
        delete route;
        return ok;
    }
    hop.routes.push_back(*route);
    return {};
}

/// No other route has its prefix: what nearly all are, and then one look around saves the search.
template <class Addr>
bool Rib<Addr>::is_only(Set::const_iterator it) const {
    const auto next = std::next(it);
    return (it == routes_.begin() || std::prev(it)->key.prefix != it->key.prefix) &&
           (next == routes_.end() || next->key.prefix != it->key.prefix);
}

template <class Addr>
Result<void> Rib<Addr>::activate(Route<Addr>& route) {
    if (!route.hop->usable) {
        return {};
    }
    auto ok = set(route.key.prefix, route.hop->value);
    route.active = ok.has_value();
    return ok;
}

template <class Addr>
Result<void> Rib<Addr>::replace(Route<Addr>& route, RouteTarget& hop) {
    RouteTarget& old = *route.hop;
    route.hop = &hop;
    if (auto ok = update(route.key.prefix); !ok) {
        route.hop = &old;
        return ok;
    }
    old.routes.erase(old.routes.iterator_to(route));
    hop.routes.push_back(route);
    return {};
}

template <class Addr>
RouteTarget* Rib<Addr>::remove(Route<Addr>& route) {
    RouteTarget* hop = route.hop;
    const Prefix prefix = route.key.prefix;
    const bool was_active = route.active;
    const bool only = is_only(routes_.iterator_to(route));
    --counts_[std::to_underlying(route.key.owner)];
    routes_.erase(routes_.iterator_to(route));
    hop->routes.erase(hop->routes.iterator_to(route));
    delete &route;
    if (was_active && only) {
        erase(prefix);
    } else if (was_active) {
        Route<Addr>* best = first(prefix);
        while (best != nullptr && !best->hop->usable) {
            best = next(*best);
        }
        // Another value for a prefix that is there takes no room, so it cannot fail; and should it,
        // the old value must not stay.
        if (best == nullptr || !set(prefix, best->hop->value)) {
            erase(prefix);
        } else {
            best->active = true;
        }
    }
    return hop;
}

template <class Addr>
Result<void> Rib<Addr>::update(const Prefix& prefix) {
    Route<Addr>* best = nullptr;
    Route<Addr>* active = nullptr;
    for (Route<Addr>* route = first(prefix); route != nullptr; route = next(*route)) {
        if (best == nullptr && route->hop->usable) {
            best = route;
        }
        if (route->active) {
            active = route;
        }
    }
    if (best != nullptr) {
        if (auto ok = set(prefix, best->hop->value); !ok) {
            return ok;
        }
    } else if (active != nullptr) {
        erase(prefix);
    }
    if (active != nullptr) {
        active->active = false;
    }
    if (best != nullptr) {
        best->active = true;
    }
    return {};
}

template <class Addr>
Result<void> Rib<Addr>::set(const Prefix& prefix, std::uint32_t value) {
    if (suppressed_.empty()) {
        return lpm_->set(prefix, value);
    }
    const auto before = lpm_->get(prefix);
    std::vector<fib::LpmTable<Addr>*> changed;
    const auto change = [&](fib::LpmTable<Addr>& lpm) -> Result<void> {
        auto ok = lpm.set(prefix, value);
        if (ok) {
            changed.push_back(&lpm);
        }
        return ok;
    };
    Result<void> ok = change(*lpm_);
    for (Suppressed& suppressed : suppressed_) {
        if (ok && prefix.length > suppressed.length) {
            ok = change(*suppressed.lpm);
        }
    }
    if (!ok) {
        for (fib::LpmTable<Addr>* lpm : changed) {
            // What was there a moment ago has room.
            static_cast<void>(before ? lpm->set(prefix, *before) : lpm->erase(prefix));
        }
    }
    return ok;
}

template <class Addr>
void Rib<Addr>::erase(const Prefix& prefix) {
    static_cast<void>(lpm_->erase(prefix));  // it is there
    for (Suppressed& suppressed : suppressed_) {
        if (prefix.length > suppressed.length) {
            static_cast<void>(suppressed.lpm->erase(prefix));
        }
    }
}

template <class Addr>
Result<const fib::LpmTable<Addr>*> Rib<Addr>::suppressed(std::uint8_t length,
                                                         Reclaimer& reclaimer) {
    for (Suppressed& there : suppressed_) {
        if (there.length == length) {
            ++there.users;
            return there.lpm.get();
        }
    }
    // No limit of its own: it never holds more than the table that it is made from.
    auto lpm = fib::LpmTable<Addr>::create({.max_routes = std::size_t{1} << 24U}, reclaimer);
    if (!lpm) {
        return std::unexpected(lpm.error());
    }
    Result<void> ok;
    lpm_->for_each([&](const Prefix& prefix, std::uint32_t value) {
        if (ok && prefix.length > length) {
            ok = (*lpm)->set(prefix, value);
        }
    });
    if (!ok) {
        return std::unexpected(ok.error());
    }
    suppressed_.push_back({.length = length, .users = 1, .lpm = std::move(*lpm)});
    return suppressed_.back().lpm.get();
}

template <class Addr>
std::unique_ptr<fib::LpmTable<Addr>> Rib<Addr>::drop_suppressed(std::uint8_t length) {
    for (auto it = suppressed_.begin(); it != suppressed_.end(); ++it) {
        if (it->length == length && --it->users == 0) {
            auto lpm = std::move(it->lpm);
            suppressed_.erase(it);
            return lpm;
        }
    }
    return nullptr;
}

template <class Addr>
Route<Addr>* Rib<Addr>::find(const Key& key) {
    const auto it = routes_.find(key);
    return it == routes_.end() ? nullptr : &*it;
}

template <class Addr>
Route<Addr>* Rib<Addr>::first(const Prefix& prefix) {
    const auto it = routes_.lower_bound(Key{prefix, RouteOwner::kConnected, 0, 0});
    return it == routes_.end() || it->key.prefix != prefix ? nullptr : &*it;
}

template <class Addr>
Route<Addr>* Rib<Addr>::next(Route<Addr>& route) {
    const auto it = ++routes_.iterator_to(route);
    return it == routes_.end() || it->key.prefix != route.key.prefix ? nullptr : &*it;
}

template <class Addr>
Route<Addr>* Rib<Addr>::from(const Key& key) {
    const auto it = routes_.lower_bound(key);
    return it == routes_.end() ? nullptr : &*it;
}

template <class Addr>
Route<Addr>* Rib<Addr>::after(Route<Addr>& route) {
    const auto it = ++routes_.iterator_to(route);
    return it == routes_.end() ? nullptr : &*it;
}

template <class Addr>
const Route<Addr>* Rib<Addr>::match(const Addr& address, unsigned shortest) const {
    for (int length = Prefix::kBits; length >= static_cast<int>(shortest); --length) {
        const auto prefix = Prefix::of(address, static_cast<std::uint8_t>(length));
        auto it = routes_.lower_bound(Key{prefix, RouteOwner::kConnected, 0, 0});
        for (; it != routes_.end() && it->key.prefix == prefix; ++it) {
            if (it->active) {
                return &*it;
            }
        }
    }
    return nullptr;
}

template class Rib<net::Ipv4Addr>;
template class Rib<net::Ipv6Addr>;

}  // namespace sluice::control
