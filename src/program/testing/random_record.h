/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* random_record.h - valid values of any record, by the chance of a simulation. */
#ifndef DET_TESTING_RANDOM_RECORD_H
#define DET_TESTING_RANDOM_RECORD_H

#include <detent/record.h>
#include <detent/sim.h>

/* Fills `value`, which is zero, so that det_record_validate() is content with it. */
void cli_random_record(struct det_sim *sim, const struct det_record *record, void *value);

#endif
