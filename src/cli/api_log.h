/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api_log.h - rows of the log as objects. */
#ifndef DET_CLI_API_LOG_H
#define DET_CLI_API_LOG_H

#include "cli/api.h"

/* A row as an object. Its payload is left out where its definition or its bytes are not known to
 * this program any more; sensitive fields are redacted. */
void api_log_line(struct line *line, struct api_reader *reader, const struct det_store_logged *row);

#endif
