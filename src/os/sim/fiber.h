/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* fiber.h - a stack and a place in a program: what a simulated thread is when it does not run.
 *
 *      | guard page | stack ....................... |     a stack grows down, into the guard page
 *      mapping      stack                           end
 *
 * Address sanitizer is told of every switch, so that it works across them; thread sanitizer is not,
 * so simulations are not run under it. */
#ifndef DET_OS_SIM_FIBER_H
#define DET_OS_SIM_FIBER_H

#include <detent/base.h>
#include <setjmp.h>
#include <ucontext.h>

struct det_context {
    ucontext_t native; /* where it begins */
    jmp_buf place;     /* where it goes on */
    bool has_place;
    void (*run)(void *argument); /* never returns: it ends in det_context_leave() */
    void *argument;
    void *mapping; /* NULL for the context of whoever opened the simulation */
    size_t mapping_size;
    const void *stack; /* as address sanitizer wants it */
    size_t stack_size;
    void *fake_stack;
    struct det_context *came_from;
};

/* `stack_size` is rounded up to whole pages, and to a least size. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_context_init(
    struct det_context *context, size_t stack_size, void (*run)(void *argument), void *argument);
void det_context_deinit(struct det_context *context);
/* Goes on in `to`; returns when somebody switches back to `from`. */
void det_context_switch(struct det_context *from, struct det_context *to);
/* Goes on in `to` and never comes back. */
_Noreturn void det_context_leave(struct det_context *from, struct det_context *to);

#endif
