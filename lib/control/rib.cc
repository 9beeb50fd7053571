// SPDX-License-Identifier: BSD-3-Clause
#include "control/rib.h"

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
Result<void> Rib<Addr>::add(const Key& key, RouteTarget& hop) {
    auto* route = new Route<Addr>;
    route->key = key;
    route->hop = &hop;
    route->table = index_;
    routes_.insert(*route);
    if (auto ok = update(key.prefix); !ok) {
        routes_.erase(routes_.iterator_to(*route));
        delete route;
        return ok;
    }
    hop.routes.push_back(*route);
    return {};
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
    routes_.erase(routes_.iterator_to(route));
    hop->routes.erase(hop->routes.iterator_to(route));
    delete &route;
    if (was_active) {
        Route<Addr>* best = first(prefix);
        while (best != nullptr && !best->hop->usable) {
            best = next(*best);
        }
        // Another value for a prefix that is there takes no room, so it cannot fail; and should it,
        // the old value must not stay.
        if (best == nullptr || !lpm_->set(prefix, best->hop->value)) {
            static_cast<void>(lpm_->erase(prefix));
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
        if (auto ok = lpm_->set(prefix, best->hop->value); !ok) {
            return ok;
        }
    } else if (active != nullptr) {
        static_cast<void>(lpm_->erase(prefix));  // it is there
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
const Route<Addr>* Rib<Addr>::match(const Addr& address) const {
    for (int length = Prefix::kBits; length >= 0; --length) {
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
