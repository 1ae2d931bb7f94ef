/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* executor.h - declarations shared by the files of this folder: the executor, and one run of one
 * component. */
#ifndef DET_SUPERVISE_EXECUTOR_H
#define DET_SUPERVISE_EXECUTOR_H

#include <stdalign.h>

#include <detent/driver/loop.h>
#include <detent/supervise.h>

/* The phase of a component's life. */
enum det_phase {
    DET_PHASE_ENDED, /* or never supervised: the zero value */
    DET_PHASE_PARKED,
    DET_PHASE_READY,   /* in the executor's list */
    DET_PHASE_RUNNING, /* a frame belongs to it */
};

/* The result of a run of a component. */
enum det_over {
    DET_OVER_NOT,
    DET_OVER_PARKED,
    DET_OVER_AGAIN,
    DET_OVER_ENDED,
};

/* One run of one component, on the stack of the loop's thread. Large, and mostly uninitialized. */
struct det_frame {
    struct det_executor *executor;
    struct det_component *component;
    const struct det_component_def *def;
    void *context;
    struct det_frame *below; /* the outer run, whose function offers an event to this component */
    unsigned depth;
    uint32_t rounds; /* rounds of this run, for the budget */
    uint32_t chain;  /* consecutive events produced by actions */
    enum det_over over;
    int first_error; /* of this run */
    int noted;       /* the code passed to det_component_fail() by the running function */
    unsigned produced_first, produced_count;
    bool is_pending;  /* the machine has not received `failure` yet */
    bool is_failing;  /* the failure event, or an event produced by it, is being handled */
    bool has_failure; /* `failure` is set */
    struct det_failure failure;
    char note[DET_ERROR_TEXT_MAX];
    alignas(16) unsigned char event[DET_COMPONENT_EVENT_MAX];
    /* One element more than the limit, for the output of the current action. */
    alignas(16) unsigned char produced[DET_COMPONENT_PRODUCED_MAX + 1][DET_COMPONENT_EVENT_MAX];
};

struct det_executor {
    struct det_loop *loop;
    const struct det_allocator *allocator;
    struct det_executor_options options;
    struct det_component_link all;   /* in the order of their start */
    struct det_component_link ready; /* in the order of execution */
    struct det_frame *frame;         /* the innermost run, or NULL */
    struct det_executor_counts counts;
    struct det_post post; /* runs the ready components */
    bool is_posted, is_closed;
};

/* Makes a parked component run in this or the next turn. */
void det_executor_ready(struct det_component *component);
/* Sets the loop's timer to the earliest deadline, or cancels it. Fails only without memory, and
 * only if the timer was not set. */
DET_MUST_CHECK int det_executor_arm(struct det_component *component);

/* Runs the component until it parks, has used its budget or ends; `offered` first, if not NULL.
 * Returns the value of det_component_offer(). The component may be gone afterwards. */
int det_gateway_run(struct det_component *component, const void *offered);
/* Includes the dispatch functions, as in the component's own turn. */
int det_gateway_deliver(struct det_component *component, const void *event);
/* Ends the component as aborted. */
void det_gateway_abort(struct det_component *component);

/* Begins a run. */
void det_frame_open(struct det_frame *frame, struct det_component *component);
/* Ends a run: the component is parked, ready or ended, according to `over`. Returns the first
 * error. */
int det_frame_close(struct det_frame *frame);
/* Records a failure in this run: the machine gets the failure event, or, if that is what failed,
 * the component ends. The place precedes the reason: "dispatch of running". */
void det_frame_fail(
    struct det_frame *frame, enum det_failure_source source, int code, const char *place, ...)
    DET_PRINTF(4, 5);
/* The failure event was not accepted: the failure stays, and the component ends. */
void det_frame_last_resort(struct det_frame *frame, int code);
/* Keeps the failure of this run for the end of the component. */
void det_frame_keep_failure(struct det_frame *frame);
/* The failure for the end: of this run, or the kept one, which is freed. */
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
