/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* history_replay.h - what was recorded of an instance, derived again by a definition, event by
 * event.
 *
 *      recorded:   from --event, choice--> to, outcome
 *      derived:    table[from][event], the alternative that was chosen
 *
 * Each event is judged from the state it was recorded in, so that one difference is told once and
 * what follows is judged on its own. Guards are not asked: of several alternatives the recorded one
 * counts. Names are what is recorded, so the definition may be another one than the one that
 * decided. */
#ifndef DET_MACHINE_HISTORY_REPLAY_H
#define DET_MACHINE_HISTORY_REPLAY_H

#include <detent/machine.h>

#include "base/text.h"

#define DET_REPLAY_TEXT_MAX 768

/* An event as it was recorded. */
struct det_replay_event {
    uint64_t sequence;
    const char *from, *to;
    const char *event; /* NULL: a stop by hand */
    unsigned outcome;  /* enum det_outcome */
    unsigned choice;
};

/* A difference between what was recorded and what is derived. Borrowed until the next step. */
struct det_replay_drift {
    uint64_t sequence;
    const char *event;    /* NULL: a stop by hand, or not about an event */
    const char *from;     /* NULL: not about an event */
    const char *recorded; /* a state */
    const char *derived;  /* a state; NULL: the definition does not take it */
    const char *text;     /* a sentence */
};

struct det_replay {
    const struct det_machine *machine;
    uint64_t sequence;            /* of the last event; 0: none yet */
    uint64_t steps;               /* events derived */
    char state[DET_NAME_MAX + 1]; /* after it, as recorded */
    char text[DET_REPLAY_TEXT_MAX];
};

/* The alternative with this number, as the runtime counts them; NULL: there are not so many. */
const struct det_transition *det_replay_way(
    const struct det_machine *machine, unsigned state, unsigned event, unsigned choice);
void det_replay_init(struct det_replay *replay, const struct det_machine *machine);
/* Begins behind an event whose state is known, of a snapshot say; or, with 0, in the state that is
 * recorded as the first one. */
void det_replay_begin(struct det_replay *replay, uint64_t sequence, const char *state);
/* The next event. True: as recorded; false: `ret` says what is different. */
bool det_replay_step(
    struct det_replay *replay, const struct det_replay_event *event, struct det_replay_drift *ret);
/* Where the instance stands, after its last event: the same answer. */
bool det_replay_end(
    struct det_replay *replay, uint64_t sequence, const char *state, struct det_replay_drift *ret);

#endif
