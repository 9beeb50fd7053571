// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rte_version.h>

/// The one place that knows releases. Supported: 22.11 to 26.07; newer ones are expected to work.
#if RTE_VERSION < RTE_VERSION_NUM(22, 11, 0, 0)
#error "sluice needs DPDK 22.11 or later"
#endif
