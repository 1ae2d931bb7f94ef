/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* exit_code.c - the exit code for each error of the library. */
#include <detent/base.h>

#include "base/assert.h"
#include "terminal/terminal.h"

int cli_exit_of(int code)
{
    det_assert(code <= 0);
    switch (code) {
    case 0:
        return CLI_OK;
    case DET_ERR_INVALID:
    case DET_ERR_UNSUPPORTED:
    case DET_ERR_MALFORMED:
    case DET_ERR_MISSING_FIELD:
    case DET_ERR_UNKNOWN_FIELD:
    case DET_ERR_DUPLICATE_FIELD:
    case DET_ERR_TYPE:
    case DET_ERR_RANGE:
        return CLI_USAGE;
    case DET_ERR_NOT_FOUND:
        return CLI_NOT_FOUND;
    case DET_ERR_EXISTS:
    case DET_ERR_CONFLICT:
        return CLI_CONFLICT;
    case DET_ERR_TIMEOUT:
        return CLI_TIMEOUT;
    case DET_ERR_UNHANDLED:
    case DET_ERR_STOPPED:
    case DET_ERR_REFUSED:
    case DET_ERR_ACTION_FAILED:
    case DET_ERR_UNBOUND:
    case DET_ERR_LOCKED:
    case DET_ERR_LIMIT:
    case DET_ERR_BUSY:
    case DET_ERR_CONTENTION:
        return CLI_REFUSED;
    case DET_ERR_CANCELLED:
        return CLI_INTERRUPTED;
    default:
        return CLI_FAILURE;
    }
}
