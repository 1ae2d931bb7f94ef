/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* play_stubs.c - the functions of a definition, answered by a case. */
#include <string.h>

#include "base/assert.h"
#include "os/os.h"
#include "testing/play_internal.h"

static bool answer_guard(void *context, unsigned index, const void *data, const void *event)
{
    const struct play *play = context;

    (void)data;
    (void)event;
    return play->guards[index];
}

static int answer_hook(void *context, unsigned index, const void *data, const void *event)
{
    const struct play *play = context;

    (void)data;
    (void)event;
    return play->hooks[index];
}

static void answer_update(void *context, unsigned index, void *data, const void *event)
{
    struct play *play = context;

    (void)event;
    if (play->updates[index])
        case_fields_apply(play->updates[index], data);
    else
        play->idle_update = case_function_name(play->machine, CASE_UPDATE, index);
}

static void answer_fill(void *context, unsigned index, const struct det_move *move, void *event)
{
    const struct play *play = context;
    const struct case_fields *fields = play->fills[index];
    const struct det_event_def *def = &play->machine->events[det_event_kind(event)];

    (void)move;
    if (fields && det_record_of(def->payload) == fields->record)
        case_fields_apply(fields, (char *)event + def->payload_offset);
}

/* Calls are answered in the order in which they began to wait. */
static void add_call(struct play *play, struct play_call *call)
{
    struct play_call **tail = &play->waiting;

    while (*tail)
        tail = &(*tail)->next;
    *tail = call;
}

static void remove_call(struct play *play, const struct play_call *call)
{
    struct play_call **at = &play->waiting;

    while (*at && *at != call)
        at = &(*at)->next;
    det_assert(*at == call);
    *at = call->next;
}

/* Call it with the mutex held. NULL if the case has ended. */
static const struct case_answer *await_answer(struct play *play, unsigned effect)
{
    struct play_call call = { .effect = effect };

    add_call(play, &call);
    while (!call.answer && !play->stage.is_closing)
        (void)det_condition_wait(
            play->stage.world, play->stage.changed, play->stage.mutex, DET_NEVER);
    remove_call(play, &call);
    return call.answer;
}

static const struct case_answer *next_answer(struct play *play, unsigned effect)
{
    static const struct case_answer wait = { .reply = CASE_WAIT };
    const struct case_answer *answer = play->effects[effect];

    if (!answer)
        return &wait;
    if (answer->next)
        play->effects[effect] = answer->next;
    return answer;
}

static int answer_effect(
    void *context, unsigned index, const struct det_effect_call *call, void *ret)
{
    struct play *play = context;
    const struct case_answer *answer;
    int result = DET_EFFECT_DONE;

    (void)call;
    det_mutex_lock(play->stage.world, play->stage.mutex);
    answer = next_answer(play, index);
    if (answer->reply == CASE_WAIT)
        answer = await_answer(play, index);
    if (answer && answer->after)
        cli_stage_spend(&play->stage, answer->after);
    if (!answer || play->stage.is_closing)
        result = DET_ERR_CANCELLED;
    else if (answer->reply == CASE_FAIL)
        result = answer->error;
    else if (answer->reply == CASE_PRODUCE) {
        memcpy(ret, answer->event, play->machine->event_size);
        result = DET_EFFECT_PRODUCED;
    }
    det_mutex_unlock(play->stage.world, play->stage.mutex);
    return result;
}

struct cli_stubs play_stubs(struct play *play)
{
    return (struct cli_stubs){
        .guard = answer_guard,
        .hook = answer_hook,
        .update = answer_update,
        .fill = answer_fill,
        .effect = answer_effect,
        .context = play,
    };
}

void play_set(struct play *play, const struct case_setting *settings)
{
    for (; settings; settings = settings->next) {
        det_assert(settings->index < CLI_STUBS_MAX);
        switch (settings->function) {
        case CASE_GUARD:
            play->guards[settings->index] = settings->is_yes;
            break;
        case CASE_HOOK:
            play->hooks[settings->index] = settings->result;
            break;
        case CASE_UPDATE:
            play->updates[settings->index] = settings->fields;
            break;
        case CASE_FILL:
            play->fills[settings->index] = settings->fields;
            break;
        case CASE_EFFECT:
            play->effects[settings->index] = settings->answers;
            break;
        case CASE_FUNCTION_COUNT:
            break;
        }
    }
}

bool play_answer(struct play *play, unsigned effect, const struct case_answer *answer)
{
    struct play_call *call;

    det_mutex_lock(play->stage.world, play->stage.mutex);
    for (call = play->waiting; call && (call->effect != effect || call->answer); call = call->next)
        continue;
    if (call)
        call->answer = answer;
    det_condition_broadcast(play->stage.world, play->stage.changed);
    det_mutex_unlock(play->stage.world, play->stage.mutex);
    return call != NULL;
}
