/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract.h - asserts the obligations of a driver's caller, for all drivers. Each driver calls
 * this first; driver/store.h has the meaning of the fields. */
#ifndef DET_STORE_CONTRACT_H
#define DET_STORE_CONTRACT_H

#include <detent/driver/store.h>

/* Asserts the invariants of every commit. The cost does not depend on the number of events. */
void det_contract_commits(struct det_store_commit *const *commits, size_t count);

/* Asserts the arguments of the driver operation of that name. */
void det_contract_load(
    const struct det_machine *machine, const char *id, const struct det_store_loaded *ret);
void det_contract_events(
    const struct det_store_instance *instance,
    int (*visit)(void *context, const struct det_store_event *row));
void det_contract_list(
    const struct det_machine *machine, const struct det_store_query *query,
    int (*visit)(void *context, const struct det_store_listed *row));
void det_contract_due(
    const struct det_machine *machine, const struct det_store_due_query *query,
    int (*visit)(void *context, const struct det_store_due *row), const det_time *ret_next);
void det_contract_lease(
    const struct det_store_lease_change *change, const struct det_store_lease *ret);
void det_contract_prune(const struct det_store_instance *instance, const uint64_t *ret);

#endif
