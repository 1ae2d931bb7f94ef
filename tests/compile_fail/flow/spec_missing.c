/* expect: write #define FLOW_SPEC */
/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

#ifndef MENDED
#else
#define FLOW_SPEC "yard.flow"
#endif
#include <detent/flow/declare.h>
