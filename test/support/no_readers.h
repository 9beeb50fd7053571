// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include "base/reclaimer.h"

namespace sluice::test {

/// Without readers on other threads a grace period is over at once.
class NoReaders final : public Reclaimer {
public:
    void defer(std::move_only_function<void()> fn) override { fn(); }
    Token start() override { return 0; }
    bool elapsed(Token) override { return true; }
};

}  // namespace sluice::test
