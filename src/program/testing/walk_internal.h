/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* walk_internal.h - a walk under way, as its parts see it. */
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
    /* Whether it fired and was refused by chance: then it is tried again, past its time. */
    bool is_timeout_refused;
    bool is_timer_refused[DET_TIMERS_MAX];
};

/* One transition, as the aimed walks know it. */
struct walk_way {
    uint16_t vain; /* not taken: walks that aimed at it; taken: times it was wanted since then */
    bool is_taken;
};

/* What the walk has not taken yet, and how far it is; walk_steer.c. */
struct walk_steer {
    size_t count; /* of ways; 0: it is not steered */
    struct walk_way *ways;
    uint32_t *distance; /* by state */
    size_t *order;      /* the numbers of the ways by their states */
    size_t aim;         /* the way that the aimed walk leads to; `count`: any that was not taken */
    bool is_aimed;      /* now: an aimed walk, else one by chance */
    bool is_done;       /* nothing is left to aim at */
    uint64_t spent;     /* steps of this aimed walk */
    uint64_t next;      /* the step at which the next aimed walk begins */
};

/* What leads on. */
enum walk_aim {
    WALK_AIM_NONE,    /* chance: no aimed walk is under way */
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
    /* What the guards answered last, by their number; they keep to it while nothing is decided, so
     * that one who is asked twice for an event says the same. */
    bool answers[CLI_STUBS_MAX];
    uint64_t answered_at[CLI_STUBS_MAX];
    uint64_t decisions;   /* that have ended; from 1, so that nobody has answered yet */
    void *event;          /* room for one */
    void *before, *after; /* room for two data structs */
};

/* Notes what does not hold; the first one counts. Returns false. */
bool walk_fail(struct walk *walk, const char *format, ...) DET_PRINTF(2, 3);

/* walk_model.c */
/* Returns the number of the transition, as in transition_index.h, that the event took. */
size_t walk_model_note(struct walk *walk, const struct det_note *note);
void walk_model_trouble(struct walk *walk, const struct det_incident *trouble);
/* Compares the settled instance with the model. */
void walk_check(struct walk *walk);
/* What must not change by an event that is not taken. */
struct walk_view {
    struct det_instance instance;
    uint64_t timers, effects; /* hashes */
};
DET_MUST_CHECK int walk_look(struct walk *walk, struct walk_view *ret, void *ret_data);
bool walk_is_same(const struct walk *walk, const struct walk_view *a, const struct walk_view *b);

/* walk_steer.c */
DET_MUST_CHECK int walk_steer_open(struct walk *walk);
void walk_steer_close(struct walk *walk);
/* A committed step took this way. */
void walk_steer_note(struct walk *walk, const struct det_note *note, size_t way);
/* The next step of an aimed walk; `ret_event` where it is an event. */
enum walk_aim walk_steer_aim(struct walk *walk, unsigned *ret_event);
/* Which of the events of an effect does. */
unsigned walk_steer_product(struct walk *walk, const uint16_t *events, size_t count);

/* walk_stubs.c */
struct cli_stubs walk_stubs(struct walk *walk);

#endif
