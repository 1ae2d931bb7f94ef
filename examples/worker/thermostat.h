/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* thermostat.h - what others know of the worker. */
#ifndef THERMOSTAT_H
#define THERMOSTAT_H

#define WORKER_SPEC "thermostat.worker"
#include <detent/worker/declare.h>

#endif
