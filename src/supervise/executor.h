/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* executor.h - what the files of this folder share: the executor, and one run of one component. */
#ifndef DET_SUPERVISE_EXECUTOR_H
#define DET_SUPERVISE_EXECUTOR_H

#include <stdalign.h>

#include <detent/driver/loop.h>
#include <detent/supervise.h>

/* Where a component is in its life. */
enum det_phase {
    DET_PHASE_ENDED, /* or never supervised: the zero value */
    DET_PHASE_PARKED,
    DET_PHASE_READY,   /* in the executor's list */
    DET_PHASE_RUNNING, /* a frame is its */
};

/* How a run of a component is over. */
enum det_over {
    DET_OVER_NOT,
    DET_OVER_PARKED,
    DET_OVER_AGAIN,
    DET_OVER_ENDED,
};

/* One run of one component, on the stack of the loop's thread. Large, and mostly left unset. */
struct det_frame {
    struct det_executor *executor;
    struct det_component *component;
    const struct det_component_def *def;
    void *context;
    struct det_frame *below; /* whose function offers an event to this component */
    unsigned depth;
    uint32_t rounds; /* of this run, for the budget */
    uint32_t chain;  /* events in a row that actions produced */
    enum det_over over;
    int first_error; /* of this run */
    int noted;       /* the code that det_component_fail() was given in the function that runs */
    unsigned produced_first, produced_count;
    bool is_pending;  /* the machine has yet to be told of `failure` */
    bool is_failing;  /* the failure event is being handled, with what that produced */
    bool has_failure; /* `failure` is set */
    struct det_failure failure;
    char note[DET_ERROR_TEXT_MAX];
    alignas(16) unsigned char event[DET_COMPONENT_EVENT_MAX];
    /* One place more than may be filled, for what an action writes. */
    alignas(16) unsigned char produced[DET_COMPONENT_PRODUCED_MAX + 1][DET_COMPONENT_EVENT_MAX];
};

struct det_executor {
    struct det_loop *loop;
    const struct det_allocator *allocator;
    struct det_executor_options options;
    struct det_component_link all;   /* in the order of their start */
    struct det_component_link ready; /* in the order in which they run */
    struct det_frame *frame;         /* the innermost run, or NULL */
    struct det_executor_counts counts;
    struct det_post post; /* runs the ready ones */
    bool is_posted, is_closed;
};

/* Makes a parked component run in this or the next turn. */
void det_executor_ready(struct det_component *component);
/* Sets the loop's timer to what comes first, or cancels it. Fails only for memory, and only where
 * the timer was not set. */
DET_MUST_CHECK int det_executor_arm(struct det_component *component);

/* Runs it until it parks, has used its budget or ends; `offered` first, if that is not NULL. What
 * it returns is det_component_offer()'s. The component may be gone afterwards. */
int det_gateway_run(struct det_component *component, const void *offered);
/* The same with the dispatch functions, as in a turn of its own. */
int det_gateway_deliver(struct det_component *component, const void *event);
/* Ends it as aborted. */
void det_gateway_abort(struct det_component *component);

/* Begins a run. */
void det_frame_open(struct det_frame *frame, struct det_component *component);
/* Ends it as `over` says: the component is parked, ready or ended. Returns the first error. */
int det_frame_close(struct det_frame *frame);
/* A failure in this run: the machine will be told, or, where that is what failed, it ends. The
 * place is what stands before the reason: "dispatch of running". */
void det_frame_fail(
    struct det_frame *frame, enum det_failure_source source, int code, const char *place, ...)
    DET_PRINTF(4, 5);
/* The failure event was not taken: the failure stays what it is, and it ends. */
void det_frame_last_resort(struct det_frame *frame, int code);
/* Keeps the failure of this run for the end of the component. */
void det_frame_keep_failure(struct det_frame *frame);
/* The failure for the end: of this run, or the one that was kept, which is freed. */
void det_frame_end_failure(struct det_frame *frame, struct det_failure *ret);

static inline void det_link_init(struct det_component_link *link)
{
    link->next = link->previous = link;
}

static inline bool det_link_is_alone(const struct det_component_link *link)
{
    return link->next == link;
}

static inline void det_link_append(struct det_component_link *head, struct det_component_link *link)
{
    link->previous = head->previous;
    link->next = head;
    head->previous->next = link;
    head->previous = link;
}

static inline void det_link_remove(struct det_component_link *link)
{
    link->previous->next = link->next;
    link->next->previous = link->previous;
    det_link_init(link);
}

#endif
