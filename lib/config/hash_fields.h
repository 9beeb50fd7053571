// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>

#include "config/model.h"
#include "config/reader.h"

namespace sluice::config {

/// The words of multipath-hash's `fields`.
inline constexpr std::array<Choice<bool HashFields::*>, 6> kHashFields{{
    {"source", &HashFields::source},
    {"destination", &HashFields::destination},
    {"protocol", &HashFields::protocol},
    {"source-port", &HashFields::source_port},
    {"destination-port", &HashFields::destination_port},
    {"flow-label", &HashFields::flow_label},
}};

}  // namespace sluice::config
