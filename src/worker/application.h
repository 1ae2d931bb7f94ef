/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* application.h - the kind of the root of every tree of workers. */
#ifndef DET_WORKER_APPLICATION_H
#define DET_WORKER_APPLICATION_H

#include <detent/worker.h>

const struct det_worker_kind *det_application(void);

#endif
