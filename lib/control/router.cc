// SPDX-License-Identifier: BSD-3-Clause
#include "control/router.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include <spdlog/spdlog.h>

#include "config/config.h"
#include "config/diff.h"
#include "control/apply.h"

namespace sluice::control {

Time steady_now() noexcept {
    return std::chrono::steady_clock::now().time_since_epoch();
}

Result<std::string> read_file(const std::string& path) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file.is_open() || file.bad() || errno == EISDIR) {
        return fail(errno == EACCES ? ErrorCode::kPermission : ErrorCode::kNotFound,
                    "{}: {}",
                    path,
                    std::strerror(errno));
    }
    return text;
}

Router::Router(Engine& engine, config::Config running)
    : engine_(engine), running_(std::move(running)) {
    engine_.change_instance(config::instance_of(running_));
}

Result<void> Router::apply(config::Config wanted) {
    const Time began = steady_now();
    take_neighbors();
    if (auto ok = control::apply(engine_, running_, wanted, began); !ok) {
        return ok;
    }
    spdlog::debug("applied in {:.1f} ms",
                  std::chrono::duration<double, std::milli>(steady_now() - began).count());
    running_ = std::move(wanted);
    return {};
}

Result<void> Router::reload(const std::optional<std::string>& file) {
    const std::string path = file.value_or(running_.origin.file);
    const auto text = read_file(path);
    if (!text) {
        return std::unexpected(text.error());
    }
    auto wanted = config::load(*text, path);
    if (!wanted) {
        std::string lines;
        for (const auto& error : wanted.error()) {
            lines += lines.empty() ? "" : "\n";
            lines += error.to_string();
        }
        return std::unexpected(Error{ErrorCode::kInvalid, std::move(lines)});
    }
    if (auto ok = apply(std::move(*wanted)); !ok) {
        return ok;
    }
    spdlog::info("{}: loaded", path);
    return {};
}

std::string Router::effective_config() const {
    take_neighbors();
    return config::emit(running_);
}

config::Netns& Router::config_of(const Netns& netns) {
    return netns.name == kDefaultNetns ? running_.default_netns : running_.netns[netns.name];
}

Result<void> Router::add_netns(const std::string& name) {
    if (const auto made = engine_.add_netns(name); !made) {
        return std::unexpected(made.error());
    }
    running_.netns.try_emplace(name);
    return {};
}

Result<Ticket> Router::delete_netns(const std::string& name) {
    const auto found = engine_.netns().get(name);
    if (!found) {
        return std::unexpected(found.error());
    }
    const auto ticket = engine_.delete_netns(**found);
    if (ticket) {
        auto ended = running_.netns.extract(name);
        for (auto& [port_name, port] : ended.mapped().ports) {
            relink(port_name, name, kDefaultNetns);
            port.addresses.clear();
            running_.default_netns.ports.emplace(port_name, std::move(port));
        }
    }
    return ticket;
}

}  // namespace sluice::control
