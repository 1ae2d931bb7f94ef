/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* base.h - the foundations of every public header: attributes, time, errors, memory.
 *
 * Conventions of the whole API:
 *   - a function that can fail returns 0 (or a count) or a negative enum det_error_code;
 *   - outputs come last and are written only on success; `reterr` only on failure, and may be NULL;
 *   - what the callee keeps is named `_take`; everything else is borrowed for the call;
 *   - init/deinit work in the caller's memory, open/close in ours; close accepts NULL;
 *   - stop waits until what it stops has ended; cancel asks for the end and returns;
 *   - the zero value of every options struct is the documented default;
 *   - the options of what is opened end with `reserved`, which must be zero. A later version turns
 *     it into options, so that the size stays; a library that is too old refuses them
 *     (DET_ERR_VERSION);
 *   - tables of functions (driver/) begin with a version; what was built for another one is refused
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
/* The longest duration that a spec may name: ten years. */
#define DET_DELAY_MAX (3650 * DET_DAY)
/* Later than anything: "no deadline". */
#define DET_NEVER INT64_MAX

/* Every error of the library; the list with its texts is errors.def. */
enum det_error_code {
#define DET_ERROR(name, number, text) DET_ERR_##name = -(number),
#include <detent/errors.def>
#undef DET_ERROR
};

/* How many fields the options of what is opened keep for later versions. */
#define DET_OPTIONS_RESERVED 8

#define DET_ERROR_TEXT_MAX   320
#define DET_OWNER_MAX        64 /* bytes of the name of the holder of a lock or a lease */

/* What went wrong, for people (`text`: the place, the reason, the remedy) and for programs (the
 * rest; a field that does not belong to `code` is zero). Names are borrowed from the machine's
 * definition and live as long as it does. */
struct det_error {
    int code;
    char text[DET_ERROR_TEXT_MAX];
    const char
        *state; /* UNHANDLED, STOPPED, REFUSED, ACTION_FAILED, TIMEOUT, REPLAY: where it was */
    const char *event;  /* UNHANDLED, REFUSED, ACTION_FAILED, REPLAY: what was sent */
    const char *action; /* REFUSED, ACTION_FAILED, TIMEOUT: the guard or hook that refused */
    int cause;          /* ACTION_FAILED: what the hook returned; IO: errno */
    uint64_t expected;  /* CONFLICT: the sequence we stood on; REPLAY: that of the recorded event;
                           VERSION: the newest known */
    uint64_t actual;    /* CONFLICT: the sequence found; VERSION, LIMIT: the value found */
    uint64_t offset;    /* MALFORMED, TRUNCATED, CORRUPT, VERSION, LIMIT: byte in the input */
    det_time waited;    /* TIMEOUT: how long */
    det_time until;     /* LOCKED: when the lock ends if it is not renewed, by the store's clock */
    char holder[DET_OWNER_MAX + 1]; /* LOCKED: the holder */
    bool is_id_used; /* CONFLICT: the event id was used for another request, which the text names */
};

/* "NO_MEMORY", "UNHANDLED", ...; "OK" for 0, "UNKNOWN" for any other number. Never NULL. */
DET_API const char *det_error_name(int code);
/* The general sentence of a code; the particular one is in struct det_error. Never NULL. */
DET_API const char *det_error_text(int code);
/* Fills `error` (all other fields zero) and returns `code`, so that failing is one line. `error`
 * may be NULL. A text that is too long is cut at a character. */
DET_API int det_error_set(struct det_error *error, int code, const char *format, ...)
    DET_PRINTF(3, 4);

/* Memory comes from here. One function does all three:
 *     resize(context, NULL, 0, n)   a new block of n bytes
 *     resize(context, p, m, n)      moves and grows or shrinks; on failure p stays as it is
 *     resize(context, p, m, 0)      frees; never fails
 * It returns NULL when there is no memory. Blocks are aligned for any type. It may be called from
 * any thread that uses the object it was given to. */
struct det_allocator {
    void *(*resize)(void *context, void *pointer, size_t old_size, size_t new_size);
    void *context;
};

/* The C library's heap: what a NULL allocator means everywhere. */
DET_API const struct det_allocator *det_allocator_default(void);

/* "0.1.0" of the library that is linked. */
DET_API const char *det_version(void);

DET_END
#endif
