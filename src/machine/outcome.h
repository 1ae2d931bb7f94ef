/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* outcome.h - the names of outcomes, as in tables, exports and JSON. */
#ifndef DET_MACHINE_OUTCOME_H
#define DET_MACHINE_OUTCOME_H

/* Returns "goto", "stay", ...; the reverse returns -1 for an unknown name. */
const char *det_outcome_name(unsigned outcome);
int det_outcome_find(const char *name);

#endif
