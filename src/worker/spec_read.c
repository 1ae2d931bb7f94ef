/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec_read.c - reads a .worker file: the rows of its states and actions, and its words.
 * src/machine reads the text itself, records and places. */
#include "worker/spec_read.h"

#include <string.h>

#include "base/memory.h"
#include "machine/parse_arguments.h"

static const char *const phases[] = {
#define DET_PHASE(name, text) #name,
    DET_PHASES(DET_PHASE)
#undef DET_PHASE
};

static bool is_row(const struct det_node *row, enum det_worker_row kind)
{
    return (unsigned)row->row == (unsigned)kind;
}

/* The argument after the others in NAME(...); NULL: none, or after a finding. */
static const struct det_node *take_extra(struct det_take *take, enum det_worker_extra extra)
{
    const struct det_row_kind *kind = det_worker_extra_kind(extra);
    const struct det_node *node = take->failed ? NULL : take->next;

    if (node == NULL)
        return NULL;
    if (node->kind != DET_NODE_CALL || strcmp(node->text, kind->name) != 0) {
        det_take_fail(take, node, kind->form);
        return NULL;
    }
    take->next = NULL;
    return node;
}

static void read_state(struct det_worker_spec *spec, const struct det_node *row)
{
    struct det_spec *text = spec->text;
    struct det_take take =
        det_take_start(text, row, det_row_kind_in(DET_LANGUAGE_WORKER, DET_WORKER_ROW_STATE));
    struct det_worker_read_state *state = &spec->read[spec->facts.state_count];
    const struct det_node *stop;

    *state = (struct det_worker_read_state){ .row = row, .phase = -1 };
    state->name = det_take_node(&take, "the name of a state");
    state->wire = det_take_node(&take, "a name on disk");
    state->phase = det_take_word(
        &take, phases, sizeof phases / sizeof *phases,
        "a phase: STOPPED, STARTING, RUNNING, DEGRADED or STOPPING");
    stop = take_extra(&take, DET_WORKER_EXTRA_STOP);
    if (stop != NULL) {
        struct det_take inner =
            det_take_start(text, stop, det_worker_extra_kind(DET_WORKER_EXTRA_STOP));

        state->stop = det_take_node(&inner, "a state");
        take.failed |= inner.failed;
    }
    /* A row with a mistake still declares its name, and is not checked further. */
    if (take.failed)
        state->phase = -1;
    if (take.failed && det_parse_is_name(text, row->arguments))
        state->name = row->arguments;
    if (state->name == NULL)
        spec->is_row_lost = true;
    else
        spec->facts.state_count++;
}

static void read_action(struct det_worker_spec *spec, const struct det_node *row)
{
    struct det_spec *text = spec->text;
    struct det_take take =
        det_take_start(text, row, det_row_kind_in(DET_LANGUAGE_WORKER, DET_WORKER_ROW_ACTION));
    struct det_worker_spec_action action = { .name =
                                                 det_take_name(&take, "the name of an action") };
    const struct det_node *timeout;

    action.wire = det_take_name(&take, "a name on disk");
    timeout = take_extra(&take, DET_WORKER_EXTRA_TIMEOUT);
    if (timeout != NULL) {
        struct det_take inner =
            det_take_start(text, timeout, det_worker_extra_kind(DET_WORKER_EXTRA_TIMEOUT));

        action.timeout = det_take_duration(&inner);
    }
    if (action.name == NULL || action.wire == NULL)
        return;
    action.place = det_parse_place(row);
    spec->actions[spec->facts.action_count] = row;
    spec->filled[spec->facts.action_count++] = action;
}

static void report_many(
    struct det_worker_spec *spec, const struct det_node *row, const char *what, int most)
{
    struct det_place place = det_parse_place(row);

    det_parse_report(
        spec->text, DET_RULE_TOO_LARGE, &place, "a worker has at most %d %s", most, what);
}

static void read_row(struct det_worker_spec *spec, const struct det_node *row)
{
    if (is_row(row, DET_WORKER_ROW_STATE)) {
        if (spec->state_rows++ < DET_WORKER_STATES_MAX)
            read_state(spec, row);
        else if (spec->state_rows == DET_WORKER_STATES_MAX + 1)
            report_many(spec, row, "states", DET_WORKER_STATES_MAX);
    } else if (is_row(row, DET_WORKER_ROW_ACTION)) {
        if (spec->action_rows++ < DET_WORKER_ACTIONS_MAX)
            read_action(spec, row);
        else if (spec->action_rows == DET_WORKER_ACTIONS_MAX + 1)
            report_many(spec, row, "actions", DET_WORKER_ACTIONS_MAX);
    }
}

static const struct det_record *record_of(struct det_spec *text, enum det_worker_word word)
{
    const struct det_node *node = text->words[word];

    return node != NULL ? det_parse_record_of(text, node) : NULL;
}

/* The value is the argument of an implicit call. */
static det_time time_of(struct det_spec *text, enum det_worker_word which)
{
    unsigned count;
    const char *word = det_parse_words_of(DET_LANGUAGE_WORKER, &count)[which];
    size_t size = strlen(word) + 1;
    const struct det_node *value = text->words[which];
    struct det_node *call;
    struct det_take take = { .spec = text, .next = value, .index = 1 };

    if (value == NULL)
        return 0;
    call = det_parse_alloc(text, sizeof *call + size);
    if (call == NULL)
        return 0;
    memcpy(call->text, word, size);
    take.call = call;
    return det_take_duration(&take);
}

static void read_words(struct det_worker_spec *spec)
{
    struct det_worker_spec_summary *facts = &spec->facts;
    struct det_spec *text = spec->text;

    for (int i = 0; i < DET_WORKER_WORD_COUNT; i++) {
        if (text->words[i] == NULL)
            text->words[i] = text->guessed_words[i];
    }
    facts->name = det_parse_text(text->words[DET_WORKER_WORD_NAME]);
    facts->prefix = det_parse_text(text->words[DET_WORKER_WORD_PREFIX]);
    facts->deps = det_parse_text(text->words[DET_WORKER_WORD_DEPS]);
    facts->config = record_of(text, DET_WORKER_WORD_CONFIG);
    facts->desired = record_of(text, DET_WORKER_WORD_DESIRED);
    facts->observed = record_of(text, DET_WORKER_WORD_OBSERVED);
    facts->has_derive =
        text->words[DET_WORKER_WORD_DERIVE] != NULL || text->words[DET_WORKER_WORD_CONFIG] != NULL;
    facts->has_children = text->words[DET_WORKER_WORD_CHILDREN] != NULL;
    facts->every = time_of(text, DET_WORKER_WORD_EVERY);
    facts->timeout = time_of(text, DET_WORKER_WORD_TIMEOUT);
    facts->observes_errors = text->words[DET_WORKER_WORD_ERRORS] != NULL;
    facts->is_blind = text->words[DET_WORKER_WORD_BLIND] != NULL;
}

static void read_rows(struct det_worker_spec *spec)
{
    struct det_spec *text = spec->text;

    spec->read = det_parse_alloc(text, DET_WORKER_STATES_MAX * sizeof *spec->read);
    spec->states = det_parse_alloc(text, DET_WORKER_STATES_MAX * sizeof *spec->states);
    spec->actions = det_parse_alloc(text, DET_WORKER_ACTIONS_MAX * sizeof(struct det_node *));
    spec->filled = det_parse_alloc(text, DET_WORKER_ACTIONS_MAX * sizeof *spec->filled);
    spec->facts.states = spec->states;
    spec->facts.actions = spec->filled;
    for (const struct det_node *row = text->rows.first; row != NULL && text->error == 0;
         row = row->next)
        read_row(spec, row);
}

static int read_worker(
    struct det_worker_spec *spec, const char *path, const char *text, size_t size)
{
    bool is_read = det_parse_read(spec->text, path, text, size);

    if (is_read && spec->text->error == 0)
        read_words(spec);
    if (is_read && spec->text->error == 0)
        read_rows(spec);
    if (is_read && spec->text->error == 0)
        det_worker_read_check(spec);
    return det_parse_findings(spec->text);
}

int det_worker_spec_read(
    const char *path, const char *text, size_t size, const struct det_spec_options *options,
    struct det_worker_spec **ret)
{
    static const struct det_spec_options defaults = { .allocator = NULL };
    struct det_worker_spec *spec;
    int r;

    options = options != NULL ? options : &defaults;
    spec = DET_NEW(options->allocator, struct det_worker_spec);
    if (spec == NULL)
        return DET_ERR_NO_MEMORY;
    spec->text = det_parse_open(options, DET_LANGUAGE_WORKER);
    if (spec->text == NULL) {
        DET_DELETE(options->allocator, spec);
        return DET_ERR_NO_MEMORY;
    }
    r = read_worker(spec, path, text, size);
    if (r < 0) {
        det_worker_spec_close(spec);
        return r;
    }
    *ret = spec;
    return 0;
}

void det_worker_spec_close(struct det_worker_spec *spec)
{
    const struct det_allocator *allocator;

    if (spec == NULL)
        return;
    allocator = spec->text->allocator;
    det_spec_close(spec->text);
    DET_DELETE(allocator, spec);
}

const struct det_worker_spec_summary *det_worker_spec_summary(const struct det_worker_spec *spec)
{
    return &spec->facts;
}

const struct det_diagnostics *det_worker_spec_diagnostics(const struct det_worker_spec *spec)
{
    return det_spec_diagnostics(spec->text);
}

bool det_worker_spec_is_valid(const struct det_worker_spec *spec)
{
    return det_worker_spec_diagnostics(spec)->error_count == 0;
}

const char *det_worker_spec_file(const struct det_worker_spec *spec, size_t index)
{
    return det_spec_file(spec->text, index);
}

const struct det_record *det_worker_spec_record(const struct det_worker_spec *spec, size_t index)
{
    return det_spec_record(spec->text, index);
}
