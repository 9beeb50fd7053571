// SPDX-License-Identifier: BSD-3-Clause
#include "control/request_json.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/result.h"

namespace sluice::control {
namespace {

constexpr std::size_t kDeepest = 4;
constexpr std::size_t kMostKeys = 32;

/// What the library's lexer finds, put together. Its own builder checks neither bounds nor double
/// keys, and one with a callback looks at each value twice.
class Builder {
public:
    // The names are the library's.
    bool null() { return add(Json()); }
    bool boolean(bool value) { return add(value); }
    bool number_integer(Json::number_integer_t value) { return add(value); }
    bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
    bool number_float(Json::number_float_t value, const std::string& /*text*/) {
        return add(value);
    }
    bool string(std::string& value) { return add(std::move(value)); }
    static bool binary(Json::binary_t& /*value*/) { return false; }
    bool start_object(std::size_t /*size*/) { return open(Json::object()); }
    bool start_array(std::size_t /*size*/) { return open(Json::array()); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }
    bool key(std::string& name) {
        const auto& object = open_[depth_ - 1]->get_ref<const Json::object_t&>();
        if (std::ranges::any_of(object, [&](const auto& item) { return item.first == name; })) {
            return refuse(fmt::format("request: key \"{:.80}\" stands there twice", name));
        }
        if (object.size() == kMostKeys) {
            return refuse(fmt::format("request: more than {} keys in an object", kMostKeys));
        }
        key_ = std::move(name);
        return true;
    }
    bool parse_error(std::size_t byte,
                     const std::string& /*token*/,
                     const nlohmann::detail::exception& found) {
        std::string_view what = found.what();
        const std::size_t detail = what.find(": syntax error while parsing ");
        what.remove_prefix(detail == std::string_view::npos
                               ? std::min(what.size(), what.find("] ") + 2)
                               : detail + 2);
        return refuse(fmt::format("request is not JSON: byte {}: {}", byte, what));
    }

    Json root;
    std::string error;

private:
    bool refuse(std::string what) {
        error = std::move(what);
        return false;
    }

    Json& put(Json value) {
        if (depth_ == 0) {
            root = std::move(value);
            return root;
        }
        Json& into = *open_[depth_ - 1];
        if (into.is_array()) {
            return into.get_ref<Json::array_t&>().emplace_back(std::move(value));
        }
        auto& object = into.get_ref<Json::object_t&>();
        object.emplace_back(std::move(key_), std::move(value));
        return object.back().second;
    }

    bool add(Json value) {
        put(std::move(value));
        return true;
    }

    bool open(Json container) {
        constexpr std::size_t kUsualKeys = 8;
        if (depth_ == kDeepest) {
            return refuse(fmt::format("request: nested deeper than {}", kDeepest));
        }
        // Stays where it is while it is open: what holds it does not grow meanwhile.
        Json& at = put(std::move(container));
        if (at.is_object()) {
            at.get_ref<Json::object_t&>().reserve(kUsualKeys);
        }
        open_[depth_++] = &at;
        return true;
    }

    bool close() {
        --depth_;
        return true;
    }

    std::array<Json*, kDeepest> open_{};
    std::size_t depth_ = 0;
    std::string key_;
};

}  // namespace

Result<Json> parse_line(std::string_view line) {
    Builder builder;
    if (!Json::sax_parse(line, &builder)) {
        return fail(ErrorCode::kInvalid, "{}", builder.error);
    }
    return std::move(builder.root);
}

}  // namespace sluice::control
