/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* write_declarations.c - writes the declarations of a machine: states, events, effects, functions,
 * timers, groups. */
#include "machine/write.h"

/* NAME(id, id, ...). */
static void write_ids(
    struct det_writer *writer, const char *const *names, const uint16_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        det_buffer_format(&writer->text, ", %s", names[ids[i]]);
    det_buffer_append_text(&writer->text, ")\n");
}

static const char *health_word(unsigned flags)
{
    return (flags & DET_STATE_GOOD) != 0      ? ", GOOD"
           : (flags & DET_STATE_WARNING) != 0 ? ", WARNING"
           : (flags & DET_STATE_BAD) != 0     ? ", BAD"
           : (flags & DET_STATE_NEUTRAL) != 0 ? ", NEUTRAL"
                                              : "";
}

static void write_states(struct det_writer *writer)
{
    const struct det_machine *machine = writer->machine;
    const unsigned both = DET_STATE_INITIAL | DET_STATE_FINAL;

    det_buffer_append_char(&writer->text, '\n');
    for (size_t i = 0; i < machine->state_count; i++) {
        const struct det_state_def *state = &machine->states[i];

        if ((state->flags & both) == both)
            det_write_fail(
                writer, DET_ERR_UNSUPPORTED,
                "%s of %s is initial and final at once, which a spec cannot express", state->name,
                machine->name);
        det_buffer_format(
            &writer->text, "STATE(%s, %s%s%s)\n", writer->states[i], state->name,
            (state->flags & DET_STATE_INITIAL) != 0 ? ", INITIAL"
            : (state->flags & DET_STATE_FINAL) != 0 ? ", FINAL"
                                                    : "",
            health_word(state->flags));
    }
}

static void write_events(struct det_writer *writer)
{
    const struct det_machine *machine = writer->machine;

    det_buffer_append_char(&writer->text, '\n');
    for (size_t i = 0; i < machine->event_count; i++) {
        const struct det_event_def *event = &machine->events[i];
        const struct det_record *payload = det_record_of(event->payload);

        det_buffer_format(
            &writer->text, "%s(%s, %s", event->is_internal ? "INTERNAL" : "EVENT",
            writer->events[i], event->name);
        if (payload != NULL && payload != det_empty_record())
            det_buffer_format(&writer->text, ", %s", payload->name);
        det_buffer_append_text(&writer->text, ")\n");
    }
}

static void write_policies(struct det_writer *writer)
{
    static const char *const words[] = {
        [DET_UNHANDLED_IGNORE] = "IGNORE",
        [DET_UNHANDLED_DEFER] = "DEFER",
        [DET_UNHANDLED_DEAD_LETTER] = "DEAD_LETTER",
    };
    const struct det_machine *machine = writer->machine;

    det_buffer_append_char(&writer->text, '\n');
    for (size_t i = 0; i < machine->event_count; i++) {
        if (machine->events[i].unhandled != DET_UNHANDLED_ERROR)
            det_buffer_format(
                &writer->text, "UNHANDLED(%s, %s)\n", writer->events[i],
                words[machine->events[i].unhandled]);
    }
}

static void write_effects(struct det_writer *writer)
{
    const struct det_machine *machine = writer->machine;

    det_buffer_append_char(&writer->text, '\n');
    for (size_t i = 0; i < machine->effect_count; i++) {
        const struct det_effect_def *effect = &machine->effects[i];

        det_buffer_format(&writer->text, "EFFECT(%s", effect->name);
        write_ids(writer, writer->events, effect->produces, effect->produces_count);
    }
}

static void write_functions(struct det_writer *writer)
{
    static const struct {
        enum det_write_kind kind;
        const char *word;
    } kinds[] = {
        { DET_WRITE_GUARD, "GUARD" },
        { DET_WRITE_HOOK, "HOOK" },
        { DET_WRITE_UPDATE, "UPDATE" },
        { DET_WRITE_FILL, "FILL" },
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        det_buffer_append_char(&writer->text, '\n');
        for (const struct det_write_thing *thing = writer->lists[kinds[i].kind].first;
             thing != NULL; thing = thing->next)
            det_buffer_format(&writer->text, "%s(%s)\n", kinds[i].word, thing->name);
    }
}

static void write_timers(struct det_writer *writer)
{
    const struct det_machine *machine = writer->machine;

    det_buffer_append_char(&writer->text, '\n');
    for (size_t i = 0; i < machine->timer_count; i++) {
        det_buffer_format(&writer->text, "TIMER(%s, ", machine->timers[i].name);
        det_write_timeout(writer, &machine->timers[i].timeout);
        det_buffer_append_text(&writer->text, ")\n");
    }
}

static void write_groups(struct det_writer *writer)
{
    const struct det_machine *machine = writer->machine;

    det_buffer_append_char(&writer->text, '\n');
    for (size_t i = 0; i < machine->group_count; i++) {
        const struct det_group_def *group = &machine->groups[i];

        det_buffer_format(&writer->text, "GROUP(%s", group->name);
        write_ids(writer, writer->states, group->members, group->member_count);
    }
    det_buffer_append_char(&writer->text, '\n');
    for (size_t i = 0; i < machine->event_group_count; i++) {
        const struct det_group_def *group = &machine->event_groups[i];

        det_buffer_format(&writer->text, "EVENT_GROUP(%s", group->name);
        write_ids(writer, writer->events, group->members, group->member_count);
    }
}

void det_write_declarations(struct det_writer *writer)
{
    write_states(writer);
    write_events(writer);
    write_policies(writer);
    write_effects(writer);
    write_functions(writer);
    write_timers(writer);
    write_groups(writer);
}
