// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#if defined(__x86_64__)

#include "fib/lpm_lookup_x86.h"
#include "net/address.h"
#include "pipeline/straight.h"

/// Vector twins of straight_length(), as StraightImpl wants them. They need what the vector
/// look-ups need.
namespace sluice::pipeline {

namespace straight_avx2 {
StraightFn<net::Ipv4Addr> ip4;
StraightFn<net::Ipv6Addr> ip6;
}  // namespace straight_avx2

namespace straight_avx512 {
StraightFn<net::Ipv4Addr> ip4;
StraightFn<net::Ipv6Addr> ip6;
}  // namespace straight_avx512

}  // namespace sluice::pipeline

#endif
