/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_pages.h - rows of the log as objects. */
#ifndef DET_API_LOG_PAGES_H
#define DET_API_LOG_PAGES_H

#include <detent/tool/store.h>

#include "api/api.h"

/* A row as an object. Its payload is left out where its definition or its bytes are not known to
 * this program any more; sensitive fields are redacted. */
void api_log_line(
    struct det_json_writer *json, struct api_reader *reader, const struct det_store_logged *row);

#endif
