/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row.h - what both SQL drivers need to go between a commit and its rows: names for ids and back,
 * records for structs and back, and names for outcomes, which the program has too. */
#ifndef DET_STORE_ROW_H
#define DET_STORE_ROW_H

#include <detent/driver/store.h>

#include "base/buffer.h"
#include "base/text.h"
#include "store/chain.h"

/* "goto", "stay", ...; and back, -1: none of them. */
const char *det_row_outcome_name(unsigned outcome);
int det_row_outcome_find(const char *name);

/* Names of a machine; "" and NULL where the table has them: the state's own timer, a manual
 * stop. */
const char *det_row_event_name(const struct det_machine *machine, uint16_t event);
const char *det_row_timer_name(const struct det_machine *machine, uint16_t timer);
const char *det_row_effect_name(const struct det_machine *machine, uint16_t effect);
/* Of the event that had the id of the commit; NULL: it is not known. */
const char *det_row_answer_event(const struct det_store_commit *commit);
/* DET_ERR_VERSION when the machine has no such name. A NULL event is UINT16_MAX, "" as a timer is
 * DET_STATE_TIMER. */
DET_MUST_CHECK int det_row_state_find(
    const struct det_machine *machine, const char *name, uint16_t *ret);
DET_MUST_CHECK int det_row_event_find(
    const struct det_machine *machine, const char *name, uint16_t *ret);
DET_MUST_CHECK int det_row_timer_find(
    const struct det_machine *machine, const char *name, uint16_t *ret);
/* As det_machine_find_timer(), and DET_DEFERRED_TIMER, which every machine has. */
int det_row_timer_seek(const struct det_machine *machine, const char *name);
DET_MUST_CHECK int det_row_effect_find(
    const struct det_machine *machine, const char *name, uint16_t *ret);

/* Appends the definition as a canonical text, for `definitions.spec`; nothing for one that only a
 * builder can make. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_row_spec(const struct det_machine *machine, struct det_buffer *buffer);

/* Appends the payload of an event struct to `buffer`, as a record; `ret` is where it stands, valid
 * until the buffer grows: so reserve first, or use offsets. A NULL event, or one whose payload has
 * no fields, has no bytes: NULL. DET_ERR_INVALID when the value is not valid, DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_row_payload_encode(
    const struct det_machine *machine, const void *event, struct det_buffer *buffer,
    struct det_chain_bytes *ret);
/* The event struct of a kind, whole: its kind and its payload; without bytes the payload is zero.
 * `event` has the machine's event_size. What an older version wrote goes to the store's `upcast`
 * first. DET_ERR_CORRUPT; DET_ERR_VERSION, also when `upcast` failed or what it wrote is not valid;
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

/* What chain.h wants to know; the head without its reason, data and hash. */
struct det_chain_event det_row_chain_event(
    const struct det_machine *machine, const char *id, const struct det_store_event *event,
    struct det_chain_bytes payload);
/* The start of a new instance with this data; not recorded where the commit does not have it. */
struct det_chain_start det_row_chain_start(
    const struct det_store_commit *commit, struct det_chain_bytes data);
struct det_chain_head det_row_chain_head(
    const struct det_machine *machine, const char *id, const struct det_store_head *head);

/* And back, with its reason and data, and without a history. DET_ERR_CORRUPT, DET_ERR_VERSION, and
 * what det_row_data_decode() returns. */
DET_MUST_CHECK int det_row_head_read(
    const struct det_store *store, const struct det_machine *machine,
    const struct det_chain_head *head, struct det_store_loaded *ret);

/* The history of a snapshot as its names, separated by one space; and appended to `loaded`,
 * as far as there is room. DET_ERR_VERSION, DET_ERR_CORRUPT. */
DET_MUST_CHECK int det_row_history_write(
    const struct det_machine *machine, const uint16_t *history, size_t count,
    struct det_buffer *buffer);
DET_MUST_CHECK int det_row_history_read(
    const struct det_machine *machine, const char *text, struct det_store_loaded *loaded);

/* Whether there may be a dead effect of this name when the commit sets it. Its events are new, and
 * so are the names of what they ask for; anything else may be there. */
bool det_row_may_be_dead(
    const struct det_store_commit *commit, const struct det_store_effect *effect);
/* The column `origin` of an effect; NULL: its key names this store, or none. */
void det_row_origin(struct det_store_effect *effect, const char *origin);

#endif
