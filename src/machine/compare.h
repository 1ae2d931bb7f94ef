/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compare.h - the differences of two definitions of a machine, and which of them could strand
 * instances of the old one.
 *
 *      old, new, renames --> changes: the differences
 *                        --> hazards: stored data that does not fit the new one
 *
 * Things are the same if they have the same name on disk, or were renamed. A hazard names the rows
 * at risk, so that a caller with a store can count them. */
#ifndef DET_MACHINE_COMPARE_H
#define DET_MACHINE_COMPARE_H

#include <detent/machine.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "machine/write.h"

/* The kinds of names. */
#define DET_COMPARE_KINDS ((size_t)DET_NAME_TIMER + 1)

enum det_change_kind {
    DET_CHANGE_ADDED,
    DET_CHANGE_REMOVED,
    DET_CHANGE_CHANGED,
    DET_CHANGE_RENAMED,
};

/* Borrowed for the call. */
struct det_change {
    enum det_change_kind kind;
    const char
        *subject;      /* "state", "event", "effect", "timer", "record", "machine", "transition" */
    const char *name;  /* of a transition: its state; old where it was renamed */
    const char *event; /* of a transition; NULL otherwise */
    const char *text;  /* a sentence */
};

enum det_hazard_kind {
    DET_HAZARD_STATE,  /* running instances in the state */
    DET_HAZARD_EVENT,  /* armed timers that send it, deferred ones, requested effects */
    DET_HAZARD_EFFECT, /* effects that have not ended, including dead letters */
    DET_HAZARD_TIMER,  /* armed ones */
    DET_HAZARD_DATA,   /* all instances */
};

struct det_hazard {
    enum det_hazard_kind kind;
    const char *name; /* old; of DATA: of the record */
    const char *text; /* the predicate: "was removed" */
};

struct det_compare {
    const struct det_machine *old, *new;
    const struct det_allocator *allocator;
    const struct det_rename *renames;
    size_t rename_count;
    void (*change)(void *context, const struct det_change *change);
    void (*hazard)(void *context, const struct det_hazard *hazard);
    void *context;
};

/* Reports changes first, then hazards. Returns DET_ERR_INVALID, with a sentence, if a rename names
 * something that the definitions do not have; DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_compare_machines(
    const struct det_compare *compare, struct det_error *reterr);

/* The rest is internal to the comparison. */

struct det_comparison {
    const struct det_compare *compare;
    const struct det_machine *old, *new;
    struct det_arena arena;
    struct det_buffer text;
    int *maps[DET_COMPARE_KINDS];     /* from an old id to the new one; -1: removed */
    bool *is_kept[DET_COMPARE_KINDS]; /* by new id: an old one has this id now */
    struct det_writer of_old,
        of_new;      /* only the parts that det_write_transition() needs; old things by new names */
    bool *is_warned; /* by old pair */
    bool has_failed; /* out of memory */
};

/* Clears a writer and returns its empty text. */
void det_compare_clear(struct det_comparison *comparison, struct det_writer *writer);
/* Reports a change with the formatted text. */
DET_PRINTF(3, 4)
void det_compare_report(
    struct det_comparison *comparison, struct det_change change, const char *format, ...);
void det_compare_warn(
    struct det_comparison *comparison, enum det_hazard_kind kind, const char *name,
    const char *format, ...) DET_PRINTF(4, 5);

/* Compares the records of the data and of the payloads of events that both have. */
void det_compare_all_records(struct det_comparison *comparison);
void det_compare_record_hazards(struct det_comparison *comparison);
/* Compares transitions, timeouts and hooks of states that both have, and their effect on instances
 * there. */
void det_compare_transitions(struct det_comparison *comparison);
void det_compare_transition_hazards(struct det_comparison *comparison);

#endif
