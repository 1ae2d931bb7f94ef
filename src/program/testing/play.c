/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* play.c - opens a world for a case, carries out its steps, and closes it. */
#include "testing/play.h"

#include "base/assert.h"
#include "base/text.h"
#include "os/os.h"
#include "testing/play_internal.h"
#include "testing/transition_index.h"

/* Effects that may wait for answers at once. */
#define POOL_THREADS 32

static void observe_note(void *context, const struct det_note *note)
{
    struct play *play = context;
    size_t edge = 0;

    /* Answers change only while no step runs, so they are unchanged. */
    if (note->event != UINT16_MAX)
        edge = cli_transition_chosen(play->machine, note->from, note->event, play->guards);
    cli_coverage_note(play->options->coverage, note, edge);
    cli_trace_step(play->options->trace, note);
}

/* The last incident may explain a failed expectation. */
static void receive_incident(void *context, const struct det_incident *incident)
{
    static const char *const sentences[][2] = {
        [DET_INCIDENT_EFFECT_FAILED] = { "an attempt of effect", "failed" },
        [DET_INCIDENT_EFFECT_DEAD] = { "effect", "became a dead letter" },
        [DET_INCIDENT_PRODUCT_REJECTED] = { "the product of effect", "was rejected" },
        [DET_INCIDENT_TIMEOUT_REJECTED] = { "the event of timer", "was rejected" },
        [DET_INCIDENT_EVENT_DEAD] = { "event", "became a dead letter" },
        [DET_INCIDENT_EVENT_FAILED] = { "the deferred event", "was rejected" },
        [DET_INCIDENT_NOT_LOADED] = { "the instance", "cannot be loaded" },
        [DET_INCIDENT_EFFECTS_QUEUED] = { "effects wait for a thread that effect", "holds" },
    };
    const char *const *sentence = sentences[incident->kind];
    struct play *play = context;
    char error[DET_NAME_MAX];

    /* Calls that wait at the end of the case are cancelled, which is not a failure. */
    if (play->stage.is_closing)
        return;
    snprintf(
        play->result->note, sizeof play->result->note, "%s %s %s: %s", sentence[0],
        *incident->name ? incident->name : "of the state", sentence[1],
        case_error_name(incident->code, error));
}

static int open_play(struct play *play)
{
    const struct det_allocator *allocator = play->options->allocator;
    struct det_sim_options sim = {
        .seed = 1,
        .steps_max = play->options->steps_max ? play->options->steps_max : PLAY_STEPS_DEFAULT,
        .allocator = allocator,
    };
    struct det_runtime_options runtime = {
        .allocator = allocator,
        .pool_threads = POOL_THREADS,
        .effects = { .jitter_percent = UINT32_MAX },
        .observe = observe_note,
        .incident = receive_incident,
        .observer = play,
    };

    for (size_t i = 0; i < CLI_STUBS_MAX; i++)
        play->guards[i] = true;
    return cli_stage_open(&play->stage, &sim, &runtime);
}

/* Sends and stops answer alike. */
static void take_result(struct play *play, int r)
{
    play->sent_result = r < 0 ? r : 0;
    if (r < 0)
        play->sent = (struct det_sent){ 0 };
}

static void send_event(struct play *play, const struct case_step *step)
{
    struct det_send_options options = { .event_id = step->id };
    int r;

    play->sent_error = (struct det_error){ 0 };
    if (step->action == CASE_STOP)
        r = det_runtime_cancel(
            play->stage.runtime, play->machine, PLAY_INSTANCE, step->reason, &options, &play->sent,
            &play->sent_error);
    else if (step->action == CASE_SEND)
        r = det_runtime_send(
            play->stage.runtime, play->machine, PLAY_INSTANCE, step->events[0], &options,
            &play->sent, &play->sent_error);
    else
        r = det_runtime_send_all(
            play->stage.runtime, play->machine, PLAY_INSTANCE, step->events, step->event_count,
            &options, &play->sent, &play->sent_error);
    take_result(play, r);
}

/* An unexpected error fails the step. */
static bool check_error(struct play *play, const struct case_step *step)
{
    bool is_expected = step->expect && step->expect->nodes[CASE_EXPECT_ERROR];
    char name[DET_NAME_MAX];

    if (play->sent_result == 0 || is_expected)
        return true;
    return play_fail(
        play, step->node, "it failed: %s: %s", case_error_name(play->sent_result, name),
        play->sent_error.text);
}

static bool act_step(struct play *play, const struct case_step *step, int *r)
{
    switch (step->action) {
    case CASE_NOTHING:
        return true;
    case CASE_SEND:
    case CASE_SEND_ALL:
    case CASE_STOP:
        send_event(play, step);
        *r = det_sim_settle(play->stage.sim);
        return check_error(play, step);
    case CASE_ADVANCE:
        *r = det_sim_advance(play->stage.sim, step->span);
        return true;
    case CASE_ANSWER:
        if (!play_answer(play, step->effect, &step->answer))
            return play_fail(
                play, step->node, "no call of the effect %s waits for an answer",
                play->machine->effects[step->effect].name);
        *r = det_sim_settle(play->stage.sim);
        return true;
    case CASE_LET:
        play_set(play, step->settings);
        return true;
    }
    return true;
}

/* Returns true if the step passed; `r` is an error of the simulation. */
static bool play_step(struct play *play, const struct case_step *step, int *r)
{
    play->result->note[0] = '\0';
    if (!act_step(play, step, r))
        return false;
    if (*r < 0)
        return play_fail(
            play, step->node, "the run was cancelled: %s",
            *r == DET_ERR_LIMIT ? "it does not settle" : det_error_text(*r));
    return !step->expect || play_expect(play, step->expect);
}

static bool start_instance(struct play *play, const struct case_case *one, int *r)
{
    char name[DET_NAME_MAX];

    take_result(
        play, det_runtime_start(
                  play->stage.runtime, play->machine, PLAY_INSTANCE, one->data, NULL, &play->sent,
                  &play->sent_error));
    *r = det_sim_settle(play->stage.sim);
    if (play->sent_result == one->start_error)
        return true;
    if (play->sent_result < 0)
        return play_fail(
            play, one->start_node, "the start failed: %s: %s",
            case_error_name(play->sent_result, name), play->sent_error.text);
    return play_fail(
        play, one->start_node, "the start should have failed: %s",
        case_error_name(one->start_error, name));
}

static int play_steps(struct play *play, const struct case_case *one)
{
    int r = 0;

    play->result->is_ok = start_instance(play, one, &r);
    for (const struct case_step *step = one->steps; step && play->result->is_ok && r == 0;
         step = step->next) {
        play->result->step++;
        play->result->is_ok = play_step(play, step, &r);
        det_assert(play->result->is_ok == (play->result->failure_count == 0));
    }
    det_assert(play->result->step <= one->step_count);
    return r;
}

int play_case(
    const struct case_file *file, const struct case_case *one, const struct det_machine *machine,
    const struct play_options *options, struct play_result *ret)
{
    struct play play = { .machine = machine, .options = options, .result = ret };
    struct cli_stubs stubs = play_stubs(&play);
    int r;

    *ret = (struct play_result){ 0 };
    cli_trace_run(options->trace, machine, one->name);
    r = open_play(&play);
    if (r == 0) {
        det_time from = cli_stage_now(&play.stage);

        play_set(&play, file->settings);
        play_set(&play, one->settings);
        cli_stubs_use(&stubs);
        r = cli_stage_note(&play.stage, play_steps(&play, one));
        ret->virtual_time = cli_stage_now(&play.stage) - from;
    }
    (void)cli_stage_close(&play.stage);
    cli_stubs_use(NULL);
    return r == DET_ERR_NO_MEMORY ? r : 0;
}
