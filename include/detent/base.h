/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* base.h - the foundations of every public header: attributes, time, errors, memory.
 *
 * Conventions of the whole API:
 *   - a function that can fail returns 0 (or a count) or a negative enum det_error_code;
 *   - outputs come last and are written only on success; `reterr`, the very last, only on failure,
 *     and may be NULL. Functions whose code is sufficient have no `reterr`;
 *   - what the callee keeps is named `_take`; everything else is borrowed for the call;
 *   - init/deinit work in the caller's memory, open/close in ours; close accepts NULL;
 *   - stop waits for the end; cancel requests the end and returns;
 *   - the zero value of every options struct is the documented default;
 *   - options, specs and queries end with `reserved`, which must be zero. A later version turns it
 *     into fields of the same size; an older library refuses them (DET_ERR_VERSION). A struct in
 *     one of these, such as a policy, never changes its size;
 *   - tables of functions (driver/) begin with a version; a table for another version is refused
 *     (DET_ERR_VERSION). */
#ifndef DETENT_BASE_H
#define DETENT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define DET_BEGIN extern "C" {
#define DET_END   }
#else
#define DET_BEGIN
#define DET_END
#endif

#define DET_API          __attribute__((visibility("default")))
#define DET_MUST_CHECK   __attribute__((warn_unused_result))
#define DET_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* DET_SCOPED(store) store = NULL; closes it when the variable leaves its scope. */
#define DET_SCOPED(type) __attribute__((cleanup(det_##type##_closep))) struct det_##type *

/* Defines the helper that DET_SCOPED(type) needs from det_<type>_close(). */
#define DET_SCOPED_CLOSE(type)                                    \
    static inline void det_##type##_closep(struct det_##type **p) \
    {                                                             \
        det_##type##_close(*p);                                   \
    }

DET_BEGIN

/* A point in time or a span, in nanoseconds. As wall time it counts from 1970-01-01T00:00:00Z. */
typedef int64_t det_time;

#define DET_MICROSECOND ((det_time)1000)
#define DET_MILLISECOND ((det_time)1000000)
#define DET_SECOND      ((det_time)1000000000)
#define DET_MINUTE      (60 * DET_SECOND)
#define DET_HOUR        (60 * DET_MINUTE)
#define DET_DAY         (24 * DET_HOUR)
/* The longest duration in a spec: ten years. */
#define DET_DELAY_MAX (3650 * DET_DAY)
/* Later than any time: no deadline. */
#define DET_NEVER INT64_MAX

/* Every error of the library; the list with its texts is errors.def. */
enum det_error_code {
#define DET_ERROR(name, number, text) DET_ERR_##name = -(number),
#include <detent/errors.def>
#undef DET_ERROR
};

/* Number of reserved fields at the end of options, specs and queries. */
#define DET_OPTIONS_RESERVED 8

#define DET_ERROR_TEXT_MAX   320
#define DET_OWNER_MAX        64 /* bytes in the name of the holder of a lock or lease */

/* An error, for people (`text`: place, reason, remedy) and for programs (the other fields; a field
 * that does not belong to `code` is zero). Names are borrowed from the machine's definition and
 * live as long as it does. */
struct det_error {
    int code;
    char text[DET_ERROR_TEXT_MAX];
    const char
        *state; /* UNHANDLED, STOPPED, REFUSED, ACTION_FAILED, TIMEOUT, REPLAY: the state of the
                 * instance */
    const char *event;  /* UNHANDLED, REFUSED, ACTION_FAILED, REPLAY: the event sent */
    const char *action; /* REFUSED, ACTION_FAILED, TIMEOUT: the guard or hook that refused */
    int cause;          /* ACTION_FAILED: return value of the hook; IO: errno */
    uint64_t expected;  /* CONFLICT: the expected sequence; REPLAY: sequence of the recorded event;
                         * VERSION: the newest known */
    uint64_t actual;    /* CONFLICT: the sequence found; VERSION, LIMIT: the value found */
    uint64_t offset;    /* MALFORMED, TRUNCATED, CORRUPT, VERSION, LIMIT: byte offset in the
                         * input */
    det_time waited;    /* TIMEOUT: time waited */
    det_time until;     /* LOCKED: end of the lock unless it is renewed, by the store's clock */
    char holder[DET_OWNER_MAX + 1]; /* LOCKED: the holder */
    bool is_id_used; /* CONFLICT: the event id belongs to another request, which the text names */
};

/* "NO_MEMORY", "UNHANDLED", ...; "OK" for 0, "UNKNOWN" for any other number. Never NULL. */
DET_API const char *det_error_name(int code);
/* The general sentence for a code; struct det_error has the specific one. Never NULL. */
DET_API const char *det_error_text(int code);
/* Fills `error` (all other fields zero) and returns `code`, so that a failure is one line. `error`
 * may be NULL. A text that is too long is cut at a character boundary. */
DET_API int det_error_set(struct det_error *error, int code, const char *format, ...)
    DET_PRINTF(3, 4);

/* Allocates, resizes and frees memory, with one function:
 *     resize(context, NULL, 0, n)   a new block of n bytes
 *     resize(context, p, m, n)      grows or shrinks, and may move; on failure p is unchanged
 *     resize(context, p, m, 0)      frees; never fails
 * It returns NULL if out of memory. Blocks are aligned for any type. Any thread that uses the
 * object with this allocator may call it. */
struct det_allocator {
    void *(*resize)(void *context, void *pointer, size_t old_size, size_t new_size);
    void *context;
};

/* The heap of the C library. A NULL allocator means this one everywhere. */
DET_API const struct det_allocator *det_allocator_default(void);

/* Version of the linked library, such as "0.1.0". */
DET_API const char *det_version(void);

DET_END
#endif
