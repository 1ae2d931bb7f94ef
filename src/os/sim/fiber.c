/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* fiber.c - switches stacks: ucontext creates one, and from then on _setjmp() and _longjmp() switch
 * between them. swapcontext() sets the signal mask with a system call each time, which took a fifth
 * of a simulation. Signal masks stay unchanged; simulated threads have none of their own. */

/* _longjmp() switches stacks here, which the fortified variant takes for an error. */
#undef _FORTIFY_SOURCE

#include "os/sim/fiber.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ADDRESS_SANITIZER 1
#endif
#endif

#ifdef WITH_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_MIN ((size_t)32 * 1024)

/* Before a switch: a `from` that never runs again releases its fake stack. */
static void announce_switch(struct det_context *from, struct det_context *to, bool for_good)
{
    to->came_from = from;
#ifdef WITH_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(for_good ? NULL : &from->fake_stack, to->stack, to->stack_size);
#else
    (void)for_good;
#endif
}

/* After a switch, on the new stack. Also reports the bounds of the previous stack, which is the
 * only way to learn those of the first one. */
static void finish_switch(struct det_context *self)
{
#ifdef WITH_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(
        self->fake_stack, &self->came_from->stack, &self->came_from->stack_size);
#else
    (void)self;
#endif
}

/* makecontext() passes only ints. */
static void fiber_entry(unsigned high, unsigned low)
{
    uintptr_t address = (uintptr_t)((uint64_t)high << 32 | low);
    struct det_context *self;

    memcpy(&self, &address, sizeof address);
    finish_switch(self);
    self->run(self->argument);
    det_assert_failed("a simulated thread never returns", __FILE__, __LINE__);
}

int det_context_init(
    struct det_context *context, size_t stack_size, void (*run)(void *argument), void *argument)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t address = (uintptr_t)context;
    char *mapping;

    if (stack_size < STACK_MIN)
        stack_size = STACK_MIN;
    stack_size = (stack_size + page - 1) / page * page;
    mapping = mmap(
        NULL, page + stack_size, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED)
        return DET_ERR_NO_MEMORY;
    if (mprotect(mapping, page, PROT_NONE) < 0 || getcontext(&context->native) < 0) {
        munmap(mapping, page + stack_size);
        return DET_ERR_NO_MEMORY;
    }
    context->run = run;
    context->argument = argument;
    context->mapping = mapping;
    context->mapping_size = page + stack_size;
    context->stack = mapping + page;
    context->stack_size = stack_size;
    context->native.uc_stack.ss_sp = mapping + page;
    context->native.uc_stack.ss_size = stack_size;
    makecontext(
        &context->native, (void (*)(void))fiber_entry, 2, (unsigned)(address >> 32),
        (unsigned)address);
    return 0;
}

void det_context_deinit(struct det_context *context)
{
#ifdef WITH_ADDRESS_SANITIZER
    /* Frames that never returned left their marks, and the next mapping may reuse this address. */
    __asan_unpoison_memory_region(context->stack, context->stack_size);
#endif
    munmap(context->mapping, context->mapping_size);
}

/* Starts the context the first time; afterwards resumes it. */
static _Noreturn void go_to(struct det_context *to)
{
    if (to->has_place)
        _longjmp(to->place, 1);
    setcontext(&to->native);
    det_assert_failed("setcontext() does not return", __FILE__, __LINE__);
}

void det_context_switch(struct det_context *from, struct det_context *to)
{
    announce_switch(from, to, false);
    from->has_place = true;
    if (!_setjmp(from->place))
        go_to(to);
    finish_switch(from);
}

_Noreturn void det_context_leave(struct det_context *from, struct det_context *to)
{
    announce_switch(from, to, true);
    go_to(to);
}
