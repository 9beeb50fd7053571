// SPDX-License-Identifier: BSD-3-Clause
#include "net/neighbor_message.h"
