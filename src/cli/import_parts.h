/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* import_parts.h - what the files of import.h share. */
#ifndef DET_CLI_IMPORT_PARTS_H
#define DET_CLI_IMPORT_PARTS_H

#include "cli/import.h"

void incoming_close(const struct import *import, struct incoming *incoming);

#endif
