/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario_test.h - for suites of scenarios: runs one in virtual time and keeps what it told. */
#ifndef DET_KINDS_SCENARIO_TEST_H
#define DET_KINDS_SCENARIO_TEST_H

#include <detent/driver/loop.h>
#include <detent/sim.h>
#include <detent/tool/documents.h>

#include "kinds/scenario.h"
#include "lib/test.h"
#include "os/os.h"

struct reported {
    enum det_worker_event_kind kind;
    det_time at; /* since the run began */
    char id[128], path[256];
    char from[32], to[32], action[32], reason[DET_WORKER_REASON_MAX + 1];
    uint64_t number;
    int code;
};

#define REPORTED_MAX 20000

struct play {
    uint64_t seed;
    det_time duration; /* 0: that of the scenario */
    /* At these times, since the beginning; each may be NULL. */
    det_time at;
    void (*act)(struct play *play);
    void (*at_end)(struct play *play); /* before any request to stop: the workers as they are */

    struct det_sim *sim;
    struct det_scenario_run *run;
    struct det_timer timer, end_timer;
    det_time began, ended; /* monotonic */
    struct reported *reported;
    size_t count;
    char *notes;
    size_t notes_size;
    char *documents; /* all of them as they were at the end, "kind id role text\n" */
    size_t documents_size;
    uint64_t hash;
    int result;
    struct det_error error;
};

static inline void play_copy(char *target, size_t size, const char *text)
{
    (void)snprintf(target, size, "%s", text ? text : "");
}

static inline void play_event(void *user, const struct det_worker_event *event)
{
    struct play *play = user;
    struct reported *reported = &play->reported[play->count];

    assert_true(play->count < REPORTED_MAX);
    play->count++;
    *reported = (struct reported){ .kind = event->kind,
                                   .at = event->at - play->began,
                                   .number = event->number,
                                   .code = event->code };
    if (event->identity) {
        play_copy(reported->id, sizeof reported->id, event->identity->id);
        play_copy(reported->path, sizeof reported->path, event->identity->path);
    }
    play_copy(reported->from, sizeof reported->from, event->from);
    play_copy(reported->to, sizeof reported->to, event->to);
    play_copy(reported->action, sizeof reported->action, event->action);
    play_copy(reported->reason, sizeof reported->reason, event->reason);
    det_sim_note(play->sim, reported, sizeof *reported);
}

static inline void play_append(char **text, size_t *size, const char *more)
{
    size_t length = strlen(more);

    *text = realloc(*text, *size + length + 1);
    assert_non_null(*text);
    memcpy(*text + *size, more, length + 1);
    *size += length;
}

static inline void play_note(void *user, const struct det_scenario_note *note)
{
    struct play *play = user;

    play_append(&play->notes, &play->notes_size, note->name);
    play_append(&play->notes, &play->notes_size, " ");
    play_append(&play->notes, &play->notes_size, note->text);
    play_append(&play->notes, &play->notes_size, "\n");
}

static inline void play_act(void *argument)
{
    struct play *play = argument;

    play->act(play);
}

static inline void play_check(void *argument)
{
    struct play *play = argument;

    play->at_end(play);
}

static inline int play_begin(void *user, struct det_scenario_run *run, struct det_error *reterr)
{
    struct play *play = user;

    (void)reterr;
    play->run = run;
    if (play->act) {
        play->timer = (struct det_timer){ .run = play_act, .argument = play };
        assert_int_equal(det_loop_timer_set(run->loop, &play->timer, play->began + play->at), 0);
    }
    if (play->at_end) {
        play->end_timer = (struct det_timer){ .run = play_check, .argument = play };
        assert_int_equal(
            det_loop_timer_set(run->loop, &play->end_timer, run->until - DET_MILLISECOND), 0);
    }
    return 0;
}

static inline int play_document(void *context, const struct det_document *document)
{
    struct play *play = context;
    char *line = NULL;
    int size = asprintf(
        &line, "%s %s %s %.*s\n", document->kind, document->id,
        det_document_role_name(document->role), (int)document->size, document->text);

    assert_true(size > 0);
    play_append(&play->documents, &play->documents_size, line);
    free(line);
    return 0;
}

static inline void play_end(void *user, struct det_scenario_run *run)
{
    struct play *play = user;
    struct det_document_query query = { 0 };

    play->ended = det_world_now(run->world, DET_CLOCK_MONOTONIC);
    if (play->act)
        det_loop_timer_cancel(run->loop, &play->timer);
    if (play->at_end)
        det_loop_timer_cancel(run->loop, &play->end_timer);
    assert_int_equal(det_store_documents_list(run->store, &query, play_document, play, NULL), 0);
}

/* Runs it; play_close() frees the recorded output. */
static inline void play_scenario(struct play *play, const struct det_scenario *scenario)
{
    struct det_sim_options sim = { .seed = play->seed ? play->seed : 1 };
    struct det_scenario_options options = {
        .duration = play->duration ? play->duration : scenario->duration,
        .on_event = play_event,
        .on_note = play_note,
        .on_begin = play_begin,
        .on_end = play_end,
        .user = play,
    };

    assert_int_equal(det_sim_open(&sim, &play->sim, NULL), 0);
    play->reported = calloc(REPORTED_MAX, sizeof *play->reported);
    assert_non_null(play->reported);
    play_append(&play->notes, &play->notes_size, "");
    play_append(&play->documents, &play->documents_size, "");
    options.world = det_sim_world(play->sim);
    play->began = det_world_now(options.world, DET_CLOCK_MONOTONIC);
    play->result = det_scenario_run(scenario, &options, &play->error);
    play->hash = det_sim_hash(play->sim);
    det_sim_close(play->sim);
}

static inline void play_named(struct play *play, const char *name)
{
    const struct det_scenario *scenario = det_scenario_find(name);

    assert_non_null(scenario);
    play_scenario(play, scenario);
    if (play->result != 0)
        print_error("%s: %d %s\n", name, play->result, play->error.text);
    assert_int_equal(play->result, 0);
}

static inline void play_close(struct play *play)
{
    free(play->reported);
    free(play->notes);
    free(play->documents);
}

/* How many events of a kind; `id` and `to` (also an action) may be NULL. */
static inline size_t play_count(
    const struct play *play, enum det_worker_event_kind kind, const char *id, const char *to)
{
    size_t count = 0;

    for (size_t i = 0; i < play->count; i++) {
        const struct reported *reported = &play->reported[i];

        count += reported->kind == kind && (!id || !strcmp(reported->id, id)) &&
                 (!to || !strcmp(reported->to, to) || !strcmp(reported->action, to));
    }
    return count;
}

/* Returns the index of the first one from `from` on; the number of all if there is none. */
static inline size_t play_find(
    const struct play *play, size_t from, enum det_worker_event_kind kind, const char *id,
    const char *to)
{
    while (from < play->count) {
        const struct reported *reported = &play->reported[from];

        if (reported->kind == kind && (!id || !strcmp(reported->id, id)) &&
            (!to || !strcmp(reported->to, to) || !strcmp(reported->action, to)))
            break;
        from++;
    }
    return from;
}

/* It went through these states, in this order, perhaps through others in between; NULL ends them.
 * Answers the index of the last transition. */
static inline size_t play_walked(const struct play *play, const char *id, const char *const *states)
{
    size_t at = 0;

    for (; *states; states++) {
        at = play_find(play, at, DET_WORKER_EVENT_TRANSITION, id, *states);
        if (at == play->count)
            print_error("%s did not get to %s\n", id, *states);
        assert_true(at < play->count);
        at++;
    }
    return at - 1;
}
#define play_went(play, id, ...) play_walked(play, id, (const char *const[]){ __VA_ARGS__, NULL })

static inline void play_print(const struct play *play)
{
    for (size_t i = 0; i < play->count; i++) {
        const struct reported *reported = &play->reported[i];

        print_message(
            "%8.3f %s %s %s>%s %s %s n=%llu\n", (double)reported->at / (double)DET_SECOND,
            det_worker_event_name(reported->kind), reported->id, reported->from, reported->to,
            reported->action, reported->reason, (unsigned long long)reported->number);
    }
}

#endif
