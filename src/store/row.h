/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row.h - conversions between a commit and its rows for both SQL drivers: ids and names,
 * structs and records. */
#ifndef DET_STORE_ROW_H
#define DET_STORE_ROW_H

#include <detent/driver/store.h>

#include "base/buffer.h"
#include "base/text.h"
#include "machine/outcome.h"
#include "store/chain.h"

/* Names of a machine; "" for the state's own timer and NULL for a manual stop, as in the tables. */
const char *det_row_event_name(const struct det_machine *machine, uint16_t event);
const char *det_row_timer_name(const struct det_machine *machine, uint16_t timer);
const char *det_row_effect_name(const struct det_machine *machine, uint16_t effect);
/* The event with the id of the commit; NULL: unknown. */
const char *det_row_answer_event(const struct det_store_commit *commit);
/* DET_ERR_VERSION: the machine does not have the name. A NULL event is UINT16_MAX, the timer "" is
 * DET_STATE_TIMER. */
DET_MUST_CHECK int det_row_state_find(
    const struct det_machine *machine, const char *name, uint16_t *ret);
DET_MUST_CHECK int det_row_event_find(
    const struct det_machine *machine, const char *name, uint16_t *ret);
DET_MUST_CHECK int det_row_timer_find(
    const struct det_machine *machine, const char *name, uint16_t *ret);
/* Like det_machine_find_timer(), plus DET_DEFERRED_TIMER, which every machine has. */
int det_row_timer_seek(const struct det_machine *machine, const char *name);
DET_MUST_CHECK int det_row_effect_find(
    const struct det_machine *machine, const char *name, uint16_t *ret);

/* Appends the canonical text of the definition, for `definitions.spec`; nothing if only a builder
 * can make it. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_row_spec(const struct det_machine *machine, struct det_buffer *buffer);

/* Appends the payload of an event struct to `buffer`, as a record; `ret` points into the buffer
 * until it grows: reserve first, or use offsets. A NULL event, or one whose payload has no fields,
 * gives NULL. DET_ERR_INVALID: the value is not valid; DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_row_payload_encode(
    const struct det_machine *machine, const void *event, struct det_buffer *buffer,
    struct det_chain_bytes *ret);
/* Decodes an event struct: its kind and its payload, which is zero without bytes. `event` has the
 * machine's event_size. Bytes of an older version go to the store's `upcast` first.
 * DET_ERR_CORRUPT; DET_ERR_VERSION, also if `upcast` failed or its result is not valid;
 * DET_ERR_NO_MEMORY of `upcast`. */
DET_MUST_CHECK int det_row_payload_decode(
    const struct det_store *store, const struct det_machine *machine, uint16_t kind,
    struct det_chain_bytes payload, void *event);
DET_MUST_CHECK int det_row_data_encode(
    const struct det_machine *machine, const void *data, struct det_buffer *buffer,
    struct det_chain_bytes *ret);
DET_MUST_CHECK int det_row_data_decode(
    const struct det_store *store, const struct det_machine *machine, struct det_chain_bytes bytes,
    void *data);

/* The structs of chain.h; the head without its reason, data and hash. */
struct det_chain_event det_row_chain_event(
    const struct det_machine *machine, const char *id, const struct det_store_event *event,
    struct det_chain_bytes payload);
/* The start of a new instance with this data; unset if the commit has no start. */
struct det_chain_start det_row_chain_start(
    const struct det_store_commit *commit, struct det_chain_bytes data);
struct det_chain_head det_row_chain_head(
    const struct det_machine *machine, const char *id, const struct det_store_head *head);

/* The reverse, with reason and data, without a history. DET_ERR_CORRUPT, DET_ERR_VERSION, and
 * errors of det_row_data_decode(). */
DET_MUST_CHECK int det_row_head_read(
    const struct det_store *store, const struct det_machine *machine,
    const struct det_chain_head *head, struct det_store_loaded *ret);

/* The history of a snapshot as names, separated by one space; the reverse appends it to `loaded` up
 * to its capacity. DET_ERR_VERSION, DET_ERR_CORRUPT. */
DET_MUST_CHECK int det_row_history_write(
    const struct det_machine *machine, const uint16_t *history, size_t count,
    struct det_buffer *buffer);
DET_MUST_CHECK int det_row_history_read(
    const struct det_machine *machine, const char *text, struct det_store_loaded *loaded);

/* True if a dead effect with this name may exist when the commit sets it. Effects requested by the
 * commit's own events are new; others may exist. */
bool det_row_may_be_dead(
    const struct det_store_commit *commit, const struct det_store_effect *effect);
/* The column `origin` of an effect; NULL: its key names this store or none. */
void det_row_origin(struct det_store_effect *effect, const char *origin);

#endif
