/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_pages.h - rows of the log as JSON. */
#ifndef DET_API_LOG_PAGES_H
#define DET_API_LOG_PAGES_H

#include <detent/tool/store.h>

#include "api/api.h"

/* Writes a row as an object. Omits the payload if its definition or its encoding is unknown to this
 * program; redacts sensitive fields. */
void api_log_line(
    struct det_json_writer *json, struct api_reader *reader, const struct det_store_logged *row);

#endif
