/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reserved.c - the check that reserved parts of options are zero. */
#include "base/reserved.h"

int det_reserved_check(
    const uint64_t reserved[DET_OPTIONS_RESERVED], const char *what, struct det_error *reterr)
{
    for (int i = 0; i < DET_OPTIONS_RESERVED; i++) {
        if (reserved[i] == 0)
            continue;
        return det_error_set(
            reterr, DET_ERR_VERSION,
            "%s: an option is set that detent %s does not know; link the version that the program "
            "was built for, or set unknown fields to zero",
            what, det_version());
    }
    return 0;
}
