// SPDX-License-Identifier: BSD-3-Clause
#include "net/checksum.h"
