// SPDX-License-Identifier: BSD-3-Clause
#include "net/address.h"
