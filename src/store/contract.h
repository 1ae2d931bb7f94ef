/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract.h - what a caller of a driver can get wrong, asserted in one place for all drivers. Each
 * driver calls this first; driver/store.h says what the fields mean. */
#ifndef DET_STORE_CONTRACT_H
#define DET_STORE_CONTRACT_H

#include <detent/driver/store.h>

/* Asserts what holds for every commit. The cost does not depend on the number of events. */
void det_contract_commits(struct det_store_commit *const *commits, size_t count);

#endif
