/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child_cases.h - what the suites of children share: a loop, one child on it, and all it said. */
#ifndef DET_TASK_CHILD_CASES_H
#define DET_TASK_CHILD_CASES_H

#include "lib/test.h"

#include <signal.h>

#include "os/os.h"
#include "task/child.h"

#define PRINTED_MAX 16384
#define PATIENCE    (10 * DET_MINUTE)

/* The output of a child: lines as "text|" or, cut, "text+"; messages with a comma after each. */
struct witness {
    struct det_loop *loop;
    struct det_child *child;
    char printed[2][PRINTED_MAX];
    size_t sizes[2];
    char news[PRINTED_MAX];
    uint64_t bytes, dropped, lines;
    struct det_process_end end;
    int ends;
};

/* Only as much as fits; the numbers are right all the same. */
static inline void keep(char *target, size_t *size, const char *text, size_t length)
{
    if (*size + length >= PRINTED_MAX)
        length = PRINTED_MAX - 1 - *size;
    memcpy(target + *size, text, length);
    *size += length;
    target[*size] = '\0';
}

static inline void keep_line(void *user, const struct det_line *line)
{
    struct witness *witness = user;
    size_t *size = &witness->sizes[line->stream];

    assert_int_equal(0, witness->ends);
    assert_true(line->size <= DET_LINE_MAX);
    keep(witness->printed[line->stream], size, line->text, line->size);
    keep(witness->printed[line->stream], size, line->is_cut ? "+" : "|", 1);
    witness->bytes += line->size;
    witness->dropped += line->dropped;
    witness->lines++;
}

static inline void keep_news(void *user, const char *message)
{
    struct witness *witness = user;
    size_t size = strlen(witness->news);

    assert_int_equal(0, witness->ends);
    keep(witness->news, &size, message, strlen(message));
    keep(witness->news, &size, ",", 1);
}

static inline void keep_end(void *user, const struct det_process_end *end)
{
    struct witness *witness = user;

    witness->end = *end;
    witness->ends++;
}

static inline struct det_child_events events_of(struct witness *witness)
{
    return (struct det_child_events){
        .on_line = keep_line, .on_notify = keep_news, .on_end = keep_end, .user = witness
    };
}

static inline det_time deadline_of(struct witness *witness)
{
    return det_world_now(det_loop_world(witness->loop), DET_CLOCK_MONOTONIC) + PATIENCE;
}

static inline void turn_until(
    struct witness *witness, bool (*is_so)(const struct witness *witness, const char *text),
    const char *text)
{
    det_time deadline = deadline_of(witness);

    while (!is_so(witness, text)) {
        assert_true(det_loop_turn(witness->loop, deadline) >= 0);
        assert_true(det_loop_now(witness->loop) < deadline);
    }
}

static inline bool has_printed(const struct witness *witness, const char *text)
{
    return strstr(witness->printed[0], text) != NULL;
}

static inline bool has_news(const struct witness *witness, const char *text)
{
    return strstr(witness->news, text) != NULL;
}

static inline bool has_ended(const struct witness *witness, const char *text)
{
    (void)text;
    return witness->ends > 0;
}

static inline void ends_with(struct witness *witness, int code, int signal)
{
    turn_until(witness, has_ended, NULL);
    assert_int_equal(code, witness->end.code);
    assert_int_equal(signal, witness->end.signal);
    assert_int_equal(0, det_child_number(witness->child));
    assert_int_equal(DET_ERR_NOT_FOUND, det_child_kill(witness->child));
    assert_int_equal(DET_ERR_NOT_FOUND, det_child_stop(witness->child));
    /* It comes once: nothing is left on the loop. */
    assert_int_equal(0, det_loop_turn(witness->loop, 0));
    assert_int_equal(1, witness->ends);
}

#endif
