// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <random>
#include <string>

#include "config_testing.h"

namespace sluice::config {
namespace {

/// Makes texts that load: what it draws is always consistent.
class RandomText {
public:
    explicit RandomText(std::uint32_t seed) : engine_(seed) {}

    std::string run() {
        std::string text = "version: 1\n";
        const auto ports = 1 + below(4);
        text += "ports:\n";
        for (unsigned p = 0; p < ports; ++p) {
            text +=
                fmt::format("  {}:\n    device: \"net_null{},copy={}\"\n", port(p), p, below(2));
            text += fmt::format("    addresses: [10.{}.0.1/24, \"fd00:{}::1/64\"]\n    mtu: {}\n",
                                p,
                                p,
                                1280 + below(3000));
            text += switches("    ");
        }
        text += "vlans:\n";
        for (unsigned v = 0; v < below(3); ++v) {
            text += fmt::format("  v{}: {{link: {}, id: {}, mtu: {}}}\n",
                                v,
                                port(below(ports)),
                                v + 1,
                                68 + below(1000));
        }
        text += "routes:\n";
        for (unsigned r = 0; r < below(20); ++r) {
            text += route(r, below(ports));
        }
        if (below(2) == 0) {
            text += fmt::format(
                "neighbors: [{{to: 10.0.0.9, dev: {}, lladdr: 02:00:00:00:00:{:02x}}}]\n",
                port(0),
                below(256));
        }
        text +=
            fmt::format("icmp: {{error-rate: {}}}\nforward-class-e: {}\nworkers: {{burst: {}}}\n",
                        below(1000),
                        below(2) == 0,
                        1 + below(256));
        return text;
    }

private:
    unsigned below(unsigned limit) { return static_cast<unsigned>(engine_() % limit); }
    static std::string port(unsigned n) { return std::array{"no", "null", "1e0", "wan.0"}[n]; }
    std::string switches(std::string_view indent) {
        std::string text;
        for (const std::string_view key : {"up",
                                           "forwarding",
                                           "route-localnet",
                                           "bc-forwarding",
                                           "drop-unsolicited-na",
                                           "promiscuous"}) {
            if (below(2) == 0) {
                text += fmt::format("{}{}: {}\n", indent, key, below(2) == 0);
            }
        }
        return text + fmt::format("{}arp-accept: {}\n", indent, below(3));
    }
    std::string route(unsigned n, unsigned p) {
        switch (below(5)) {
            case 0:
                return fmt::format("  - {{to: 192.{}.0.0/16, via: 10.{}.0.2}}\n", n, p);
            case 1:
                return fmt::format(
                    "  - to: \"2001:db8:{}::/48\"\n    via: 'fd00:{}::2'\n    metric: {}\n",
                    n,
                    p,
                    below(9));
            case 2:
                return fmt::format("  - {{to: 192.{}.0.0/16, type: {}}}\n",
                                   n,
                                   below(2) == 0 ? "prohibit" : "blackhole");
            case 3:
                return fmt::format(
                    "  - {{to: 192.{}.0.0/16, via: 9.9.9.9, dev: {}, on-link: true, mtu: 1000}}\n",
                    n,
                    port(p));
            default:
                return fmt::format("  - {{ \"to\": 192.{}.0.0/16 , dev: {} }}\n", n, port(p));
        }
    }
    std::mt19937 engine_;
};

TEST(Emit, RandomConfigurationsComeBackEqual) {
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        const Config config = loaded(RandomText{seed}.run());
        const Config again = loaded(emit(config));
        ASSERT_EQ(again, config) << emit(config);
        ASSERT_EQ(emit(again), emit(config));
        const auto actions = diff(config, again);
        ASSERT_TRUE(actions.has_value());
        ASSERT_TRUE(actions->empty());
    }
}

TEST(Emit, EveryKindOfSettingComesBackEqual) {
    const Config config = loaded(
        "version: 1\ninstance: on\ndpdk: {lcores: [1, 0], hugepages: false, memory-mb: 64, "
        "extra-args: [\"--log-level=a b\", 'x\\\"y']}\n"
        "workers: {idle: poll, burst: 1}\ncontrol: {socket: \"/tmp/a b.sock\"}\nlimits: "
        "{ipv4-routes: 5, ipv6-routes: 6, neighbors: 7}\n"
        "icmp: {error-rate: 0, error-burst: 1}\nforward-class-e: false\n"
        "ports:\n  p0: {device: net_null0, rx-queues: 1, mac: 02:00:00:00:00:01, "
        "accept-untracked-na: 2, addresses: [10.0.0.1/24]}\n"
        "vlans: {v: {link: p0, id: 4094, up: false}}\nroutes: [{to: 9.9.9.9/32, type: local}, {to: "
        "default, family: ipv6, type: unreachable}]\n"
        "neighbors: [{to: \"fe80::1\", dev: v, lladdr: 02:00:00:00:00:02}]\n");
    EXPECT_EQ(loaded(emit(config)), config) << emit(config);
}

TEST(Emit, SaysWhatIsInEffect) {
    const std::string text =
        emit(loaded("version: 1\nports: {p0: {device: net_null0, addresses: "
                    "[10.0.0.1/24]}}\nvlans: {v: {link: p0, id: 1}}\n"
                    "routes: [{to: 192.0.2.0/24, via: 10.0.0.2}]\n"));
    for (const std::string_view line :
         {"instance: t\n",
          "  socket: \"/run/sluice/t.sock\"\n",
          "    forwarding: true\n",
          "  burst: 32\n",
          "  - {to: \"192.0.2.0/24\", via: \"10.0.0.2\", dev: p0, metric: 0}\n"}) {
        EXPECT_NE(text.find(line), std::string::npos) << line << text;
    }
}

}  // namespace
}  // namespace sluice::config
