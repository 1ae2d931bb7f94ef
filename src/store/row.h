/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row.h - what both SQL drivers need to go between a commit and its rows: names for ids and back,
 * records for structs and back, and names for outcomes. */
#ifndef DET_STORE_ROW_H
#define DET_STORE_ROW_H

#include <detent/driver/store.h>

#include "base/buffer.h"
#include "store/chain.h"

/* "goto", "stay", ...; and back, -1: none of them. */
const char *det_row_outcome_name(unsigned outcome);
int det_row_outcome_find(const char *name);

/* Names of a machine; "" and NULL where the table has them: the state's own timer, a stop by
 * hand. */
const char *det_row_event_name(const struct det_machine *machine, uint16_t event);
const char *det_row_timer_name(const struct det_machine *machine, uint16_t timer);
/* DET_ERR_VERSION when the machine has no such name. A NULL event is UINT16_MAX, "" as a timer is
 * DET_STATE_TIMER. */
DET_MUST_CHECK int det_row_state_find(
    const struct det_machine *machine, const char *name, uint16_t *ret);
DET_MUST_CHECK int det_row_event_find(
    const struct det_machine *machine, const char *name, uint16_t *ret);
DET_MUST_CHECK int det_row_timer_find(
    const struct det_machine *machine, const char *name, uint16_t *ret);
DET_MUST_CHECK int det_row_effect_find(
    const struct det_machine *machine, const char *name, uint16_t *ret);

/* Appends the payload of an event struct to `buffer`, as a record; `ret` is where it stands, valid
 * until the buffer grows: so reserve first, or use offsets. A NULL event has no payload: NULL. */
DET_MUST_CHECK int det_row_payload_encode(
    const struct det_machine *machine, const void *event, struct det_buffer *buffer,
    struct det_chain_bytes *ret);
/* The event struct of a kind, whole: its kind and its payload; without bytes the payload is zero.
 * `event` has the machine's event_size. */
DET_MUST_CHECK int det_row_payload_decode(
    const struct det_machine *machine, uint16_t kind, struct det_chain_bytes payload, void *event);
DET_MUST_CHECK int det_row_data_encode(
    const struct det_machine *machine, const void *data, struct det_buffer *buffer,
    struct det_chain_bytes *ret);
DET_MUST_CHECK int det_row_data_decode(
    const struct det_machine *machine, struct det_chain_bytes bytes, void *data);

#endif
