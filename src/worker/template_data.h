/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_data.h - data with templates in their texts, as one template of YAML. */
#ifndef DET_WORKER_TEMPLATE_DATA_H
#define DET_WORKER_TEMPLATE_DATA_H

#include "yaml/datum.h"

/* A text that consists of one {{ value }} becomes that value: a number stays a number. Other texts
 * with actions stay text, whatever the values. Failures stick in the buffer. */
void det_template_from_data(const struct det_datum *datum, struct det_buffer *buffer);

#endif
