/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* fiber.h - a stack and a saved position: a simulated thread that does not run.
 *
 *      | guard page | stack ....................... |     a stack grows down, into the guard page
 *      mapping      stack                           end
 *
 * AddressSanitizer is informed of every switch, so it works across them; ThreadSanitizer is not, so
 * simulations do not run under it. */
#ifndef DET_OS_SIM_FIBER_H
#define DET_OS_SIM_FIBER_H

#include <detent/base.h>
#include <setjmp.h>
#include <ucontext.h>

struct det_context {
    ucontext_t native; /* start of the first run */
    jmp_buf place;     /* position to resume at */
    bool has_place;
    void (*run)(void *argument); /* never returns: it ends in det_context_leave() */
    void *argument;
    void *mapping; /* NULL for the context of the thread that opened the simulation */
    size_t mapping_size;
    const void *stack; /* in the form that AddressSanitizer requires */
    size_t stack_size;
    void *fake_stack;
    struct det_context *came_from;
};

/* `stack_size` is rounded up to whole pages, with a minimum. DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_context_init(
    struct det_context *context, size_t stack_size, void (*run)(void *argument), void *argument);
void det_context_deinit(struct det_context *context);
/* Resumes `to`; returns when another context switches back to `from`. */
void det_context_switch(struct det_context *from, struct det_context *to);
/* Resumes `to` and never returns. */
_Noreturn void det_context_leave(struct det_context *from, struct det_context *to);

#endif
