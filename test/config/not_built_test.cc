// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "config_testing.h"

namespace sluice::config {
namespace {

class NotBuilt : public testing::TestWithParam<Refusal> {};

TEST_P(NotBuilt, IsRefusedByName) {
    expect_refused(GetParam().text, GetParam().wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Features,
    NotBuilt,
    testing::Values(Refusal{"metrics",
                            "version: 1\ncontrol: {metrics: 127.0.0.1:9110}\n",
                            {{2, 11, "metrics: not built yet"}}},
                    Refusal{"fpm",
                            "version: 1\ncontrol: {fpm: \"[::1]:2620\"}\n",
                            {{2, 11, "fpm: not built yet"}}},
                    Refusal{"accept_ra_of_vlan",
                            with_ports("vlans:\n  v: {link: p0, id: 1, accept-ra: true}\n"),
                            {{6, 24, "accept-ra: 'true' is not built yet"}}}),
    refusal_name);

// What is not built is read and checked all the same.
INSTANTIATE_TEST_SUITE_P(Syntax,
                         NotBuilt,
                         testing::Values(Refusal{
                             "endpoint",
                             "version: 1\ncontrol: {metrics: 9110}\n",
                             {{2, 11, "not built"}, {2, 20, "'9110' is not an address and port"}}}),
                         refusal_name);

}  // namespace
}  // namespace sluice::config
