/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* history_replay.h - derives the recorded events of an instance again from a definition, one by
 * one.
 *
 *      recorded:   from --event, choice--> to, outcome
 *      derived:    table[from][event], the alternative that was chosen
 *
 * Each event starts from the state it was recorded in, so one difference is reported once and later
 * events are checked independently. Guards are not called: the recorded alternative counts. Records
 * contain names, so the definition may differ from the one that decided. */
#ifndef DET_MACHINE_HISTORY_REPLAY_H
#define DET_MACHINE_HISTORY_REPLAY_H

#include <detent/machine.h>

#include "base/text.h"

#define DET_REPLAY_TEXT_MAX 768

/* A recorded event. */
struct det_replay_event {
    uint64_t sequence;
    const char *from, *to;
    const char *event; /* NULL: a manual stop */
    unsigned outcome;  /* enum det_outcome */
    unsigned choice;
};

/* A difference between the recorded and the derived event. Borrowed until the next step. */
struct det_replay_drift {
    uint64_t sequence;
    const char *event;    /* NULL: a manual stop, or not about an event */
    const char *from;     /* NULL: not about an event */
    const char *recorded; /* a state */
    const char *derived;  /* a state; NULL: the definition does not accept the event */
    const char *text;     /* a sentence */
};

struct det_replay {
    const struct det_machine *machine;
    uint64_t sequence;            /* of the last event; 0: none yet */
    uint64_t steps;               /* events derived */
    char state[DET_NAME_MAX + 1]; /* after it, as recorded */
    char text[DET_REPLAY_TEXT_MAX];
};

/* Returns the alternative with this number, as the runtime counts them; NULL if there is none. */
const struct det_transition *det_replay_transition(
    const struct det_machine *machine, unsigned state, unsigned event, unsigned choice);
void det_replay_init(struct det_replay *replay, const struct det_machine *machine);
/* Begins after an event whose state is known, for instance from a snapshot; or, with 0, in the
 * first recorded state. */
void det_replay_begin(struct det_replay *replay, uint64_t sequence, const char *state);
/* Checks the next event. Returns true if it is as recorded; otherwise `ret` has the difference. */
bool det_replay_step(
    struct det_replay *replay, const struct det_replay_event *event, struct det_replay_drift *ret);
/* Checks the final state of the instance in the same way. */
bool det_replay_end(
    struct det_replay *replay, uint64_t sequence, const char *state, struct det_replay_drift *ret);

#endif
