/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* walk_internal.h - a running walk, shared by its files. */
#ifndef DET_TESTING_WALK_INTERNAL_H
#define DET_TESTING_WALK_INTERNAL_H

#include "testing/random_walk.h"
#include "testing/simulated_runtime.h"
#include "testing/stubs.h"

/* The fold over what was committed. */
struct walk_model {
    bool is_running;
    unsigned state;
    uint64_t sequence;
    void *data;                      /* of the machine's data record */
    det_time timeout_due;            /* DET_NEVER: none */
    det_time timers[DET_TIMERS_MAX]; /* due; DET_NEVER: not armed */
    /* True after a random refusal: it is tried again, after its time. */
    bool is_timeout_refused;
    bool is_timer_refused[DET_TIMERS_MAX];
};

/* One transition, as the aimed walks know it. */
struct walk_transition {
    uint16_t vain; /* not taken: walks that aimed at it; taken: times it was wanted since then */
    bool is_taken;
};

/* Transitions that the walk has not taken, and their distance; walk_steer.c. */
struct walk_steer {
    size_t count; /* of transitions; 0: it is not steered */
    struct walk_transition *transitions;
    uint32_t *distance; /* by state */
    size_t *order;      /* the numbers of the transitions by their states */
    size_t aim; /* the transition that the aimed walk leads to; `count`: any that was not taken */
    bool is_aimed;  /* now: an aimed walk, else one by chance */
    bool is_done;   /* nothing is left to aim at */
    uint64_t spent; /* steps of this aimed walk */
    uint64_t next;  /* the step at which the next aimed walk begins */
};

/* Next step of an aimed walk. */
enum walk_aim {
    WALK_AIM_NONE,    /* chance: no aimed walk is running */
    WALK_AIM_SEND,    /* an event from outside */
    WALK_AIM_WAIT,    /* an event of an effect or a timer */
    WALK_AIM_RESTART, /* a new instance: from here nothing new can be reached */
};

struct walk {
    const struct det_machine *machine;
    const struct walk_options *options;
    struct walk_result *result;
    struct cli_stage stage;

    char instance[32];
    struct walk_model model;
    struct walk_steer steer;
    /* Last answers of the guards, by their index; they stay the same during a decision, so that a
     * guard that is called twice for an event returns the same. */
    bool answers[CLI_STUBS_MAX];
    uint64_t answered_at[CLI_STUBS_MAX];
    uint64_t decisions;   /* completed ones; from 1, so that no guard has answered yet */
    void *event;          /* room for one */
    void *before, *after; /* room for two data structs */
};

/* Records a violation; only the first one counts. Returns false. */
bool walk_fail(struct walk *walk, const char *format, ...) DET_PRINTF(2, 3);

/* walk_model.c */
/* Returns the number of the transition, as in transition_index.h, that the event took. */
size_t walk_model_note(struct walk *walk, const struct det_note *note);
void walk_model_incident(struct walk *walk, const struct det_incident *incident);
/* Compares the settled instance with the model. */
void walk_check(struct walk *walk);
/* State that a rejected event must not change. */
struct walk_view {
    struct det_instance instance;
    uint64_t timers, effects; /* hashes */
};
DET_MUST_CHECK int walk_observe(struct walk *walk, struct walk_view *ret, void *ret_data);
bool walk_is_same(const struct walk *walk, const struct walk_view *a, const struct walk_view *b);

/* walk_steer.c */
DET_MUST_CHECK int walk_steer_open(struct walk *walk);
void walk_steer_close(struct walk *walk);
/* A committed step took this transition. */
void walk_steer_note(struct walk *walk, const struct det_note *note, size_t edge);
/* The next step of an aimed walk; `ret_event` where it is an event. */
enum walk_aim walk_steer_aim(struct walk *walk, unsigned *ret_event);
/* Returns the event of an effect that leads there. */
unsigned walk_steer_product(struct walk *walk, const uint16_t *events, size_t count);

/* walk_stubs.c */
struct cli_stubs walk_stubs(struct walk *walk);

#endif
