/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite_events.c - the chain of an instance's events, from the newest back.
 *
 *     instances.last_event --> e9 --previous--> e8 --> ... --> e4 --> 0
 *
 * Who wants them oldest first gets them in chunks: one walk back notes where each chunk begins;
 * then each chunk, the oldest first, is walked again, noted and shown in turn. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/sqlite.h"

#define CHUNK 4096u
/* How many events are looked at for a history; one that mostly stays where it is shows less. */
#define HISTORY_STEPS 4096u

int det_sqlite_event_read(
    struct sqlite_connection *connection, int64_t position, int64_t key, struct sqlite_call *call,
    struct sqlite_event *ret)
{
    int r;

    det_sqlite_call(connection, STATEMENT_EVENT_READ, call);
    det_sqlite_number(call, position);
    det_sqlite_number(call, key);
    r = det_sqlite_step(call);
    if (r <= 0)
        return r < 0 ? r : DET_ERR_CORRUPT;
    ret->previous = det_sqlite_get_number(call, 0);
    ret->event = (struct det_chain_event){
        .sequence = (uint64_t)det_sqlite_get_number(call, 1),
        .version = (uint64_t)det_sqlite_get_number(call, 2),
        .visit = (uint64_t)det_sqlite_get_number(call, 3),
        .from = det_sqlite_get_text(call, 4, false),
        .to = det_sqlite_get_text(call, 5, false),
        .event = det_sqlite_get_text(call, 6, true),
        .outcome = det_sqlite_get_text(call, 7, false),
        .choice = (uint64_t)det_sqlite_get_number(call, 8),
        .is_timeout = det_sqlite_get_number(call, 9) != 0,
        .at = det_sqlite_get_number(call, 10),
        .event_id = det_sqlite_get_text(call, 11, true),
        .cause = det_sqlite_get_text(call, 12, true),
        .payload = det_sqlite_get_bytes(call, 13),
    };
    if (call->code != SQLITE_OK)
        return det_sqlite_error(call->code);
    return det_sqlite_get_hash(call, 14, &ret->hash);
}

/* One event of a walk back, in short. */
struct step {
    int64_t position, previous;
    uint64_t sequence;
};

/* Reads the event at `position`, which must have the sequence that is expected there. */
static int read_step(
    struct sqlite_connection *connection, int64_t key, int64_t position, uint64_t expected,
    struct step *ret)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(connection, STATEMENT_EVENT_STEP, &call);
    det_sqlite_number(&call, position);
    det_sqlite_number(&call, key);
    r = det_sqlite_step(&call);
    ret->position = position;
    if (r > 0) {
        ret->previous = det_sqlite_get_number(&call, 0);
        ret->sequence = (uint64_t)det_sqlite_get_number(&call, 1);
    }
    det_sqlite_end(&call);
    if (r < 0)
        return r;
    return r > 0 && ret->sequence == expected ? 0 : DET_ERR_CORRUPT;
}

/* Where the chain of an instance begins now. */
static int read_last(
    struct sqlite_connection *connection, int64_t key, int64_t *ret_position,
    uint64_t *ret_sequence)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(connection, STATEMENT_INSTANCE_REFRESH, &call);
    det_sqlite_number(&call, key);
    r = det_sqlite_step(&call);
    if (r > 0) {
        *ret_sequence = (uint64_t)det_sqlite_get_number(&call, 0);
        *ret_position = det_sqlite_get_number(&call, 1);
    }
    det_sqlite_end(&call);
    if (r < 0)
        return r;
    return r > 0 ? 0 : DET_ERR_CORRUPT;
}

/* Appends every `stride`-th event behind `after`, at most `limit` of them, from `sequence` back. */
struct range {
    int64_t key, position;
    uint64_t sequence, after;
    size_t stride, limit;
};

static int note_steps(
    struct sqlite_connection *reader, struct range range, struct det_buffer *steps)
{
    struct step step;
    size_t count = 0;
    int r;

    det_buffer_clear(steps);
    while (range.position && range.sequence > range.after && count < range.limit) {
        r = read_step(reader, range.key, range.position, range.sequence, &step);
        if (r < 0)
            return r;
        if (count++ % range.stride == 0)
            det_buffer_append(steps, &step, sizeof step);
        if (det_buffer_status(steps) < 0)
            return det_buffer_status(steps);
        range.position = step.previous;
        range.sequence--;
    }
    return 0;
}

static struct step step_at(const struct det_buffer *steps, size_t index)
{
    struct step step;

    memcpy(&step, steps->data + index * sizeof step, sizeof step);
    return step;
}

struct show {
    const struct sqlite_store *store;
    struct sqlite_connection *reader;
    const struct sqlite_instance *instance;
    int (*visit)(void *context, const struct det_store_event *row);
    void *context;
};

/* The names are those that the machine has for them now. */
static void rename_event(const struct show *show, int64_t position, struct det_chain_event *event)
{
    const struct det_machine *machine = show->instance->machine;
    const struct det_renames *renames = show->store->renames;

    event->from = det_renames_apply(renames, machine, DET_NAME_STATE, position, event->from);
    event->to = det_renames_apply(renames, machine, DET_NAME_STATE, position, event->to);
    event->event = det_renames_apply(renames, machine, DET_NAME_EVENT, position, event->event);
}

static int to_store_event(
    const struct show *show, const struct sqlite_event *row, char *value,
    struct det_store_event *ret)
{
    const struct det_machine *machine = show->instance->machine;
    int outcome = det_row_outcome_find(row->event.outcome);
    int r;

    if (outcome < 0)
        return DET_ERR_CORRUPT;
    *ret = (struct det_store_event){
        .sequence = row->event.sequence,
        .visit = row->event.visit,
        .outcome = (uint16_t)outcome,
        .choice = (uint16_t)row->event.choice,
        .is_timeout = row->event.is_timeout,
        .at = row->event.at,
        .event_id = row->event.event_id,
        .cause = row->event.cause,
    };
    r = det_row_state_find(machine, row->event.from, &ret->from);
    if (r == 0)
        r = det_row_state_find(machine, row->event.to, &ret->to);
    if (r == 0)
        r = det_row_event_find(machine, row->event.event, &ret->event);
    if (r < 0 || ret->event == UINT16_MAX)
        return r;
    ret->value = value;
    return det_row_payload_decode(
        &show->store->store, machine, ret->event, row->event.payload, value);
}

static int show_event(const struct show *show, int64_t position)
{
    const struct det_machine *machine = show->instance->machine;
    struct sqlite_connection *reader = show->reader;
    struct sqlite_event row;
    struct det_store_event event;
    struct sqlite_call call;
    char *value;
    int r;

    det_buffer_clear(&reader->values);
    value = det_buffer_extend(&reader->values, machine->event_size);
    if (!value)
        return DET_ERR_NO_MEMORY;
    r = det_sqlite_event_read(reader, position, show->instance->key, &call, &row);
    if (r == 0) {
        rename_event(show, position, &row.event);
        r = to_store_event(show, &row, value, &event);
    }
    if (r == 0)
        r = show->visit(show->context, &event);
    det_sqlite_end(&call);
    return r;
}

static int show_chunk(
    const struct show *show, const struct step *first, uint64_t after, struct det_buffer *steps)
{
    int r;

    r = note_steps(
        show->reader,
        (struct range){ show->instance->key, first->position, first->sequence, after, 1, CHUNK },
        steps);
    for (size_t i = steps->size / sizeof(struct step); r == 0 && i > 0; i--)
        r = show_event(show, step_at(steps, i - 1).position);
    return r;
}

static int show_all(const struct show *show, uint64_t after)
{
    struct range range = {
        .key = show->instance->key, .after = after, .stride = CHUNK, .limit = SIZE_MAX
    };
    struct det_buffer chunks, steps;
    int r;

    det_buffer_init(&chunks, show->reader->allocator);
    det_buffer_init(&steps, show->reader->allocator);
    r = read_last(show->reader, range.key, &range.position, &range.sequence);
    if (r == 0)
        r = note_steps(show->reader, range, &chunks);
    for (size_t i = chunks.size / sizeof(struct step); r == 0 && i > 0; i--) {
        struct step first = step_at(&chunks, i - 1);

        r = show_chunk(show, &first, after, &steps);
    }
    det_buffer_deinit(&chunks);
    det_buffer_deinit(&steps);
    return r;
}

int det_sqlite_events(
    struct det_store *base, struct det_store_instance *instance, uint64_t after,
    int (*visit)(void *context, const struct det_store_event *row), void *context)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct show show = {
        .store = store, .instance = sqlite_instance_of(instance), .visit = visit, .context = context
    };
    int r;

    r = det_sqlite_reader(store, &show.reader);
    if (r < 0)
        return r;
    r = show_all(&show, after);
    det_sqlite_reader_end(store, show.reader);
    return r;
}

/* History. */

struct past {
    const struct sqlite_store *store;
    uint64_t sequences[DET_HISTORY_MAX]; /* of the event that left the state */
    uint64_t first;                      /* the oldest event that was looked at; 0: none */
    bool is_cut;                         /* older ones were deleted */
};

/* The states of the snapshot go behind those that were left after it. A damaged snapshot is as good
 * as none: it is told by the check of the store. A name that is not known any more ends the
 * history. */
static int splice_history(
    struct sqlite_call *call, const struct det_machine *machine, const struct past *past,
    struct det_store_loaded *loaded)
{
    const char *history = det_sqlite_get_text(call, 15, false);
    det_time taken_at = det_sqlite_get_number(call, 16);
    struct sqlite_head row;
    int r;

    r = det_sqlite_head_read(call, &row);
    if (r < 0)
        return r == DET_ERR_CORRUPT ? 0 : r;
    if (det_chain_snapshot_checksum(&row.head, history, taken_at) != row.checksum)
        return 0;
    while (loaded->history_count > 0 &&
           past->sequences[loaded->history_count - 1] <= row.head.sequence)
        loaded->history_count--;
    r = det_row_history_read(machine, history, loaded);
    return r == DET_ERR_VERSION ? 0 : r;
}

static int add_snapshot_history(
    struct sqlite_connection *reader, const struct sqlite_instance *instance,
    const struct past *past, struct det_store_loaded *loaded)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(reader, STATEMENT_SNAPSHOT_READ, &call);
    det_sqlite_number(&call, instance->key);
    r = det_sqlite_step(&call);
    if (r > 0)
        r = splice_history(&call, instance->machine, past, loaded);
    det_sqlite_end(&call);
    return r;
}

/* Looks at one event; returns 1 to go on with `*position`, 0 when the history is complete. */
static int look_back(
    struct sqlite_call *call, const struct sqlite_instance *instance, struct past *past,
    struct det_store_loaded *loaded, int64_t *position)
{
    uint64_t sequence = (uint64_t)det_sqlite_get_number(call, 1);
    int outcome = det_row_outcome_find(det_sqlite_get_text(call, 2, false));
    const char *state = det_renames_apply(
        past->store->renames, instance->machine, DET_NAME_STATE, *position,
        det_sqlite_get_text(call, 3, false));
    struct det_chain_hash hash;
    int r;

    r = det_sqlite_get_hash(call, 4, &hash);
    if (r < 0)
        return r;
    /* The last one is the one that the head knows. */
    if (!past->first &&
        (sequence != instance->sequence || memcmp(&hash, &instance->hash, sizeof hash) != 0))
        return DET_ERR_CORRUPT;
    if (past->first && sequence != past->first - 1)
        return DET_ERR_CORRUPT;
    past->first = sequence;
    *position = det_sqlite_get_number(call, 0);
    past->is_cut = *position == 0 && sequence > 1;
    if (outcome != DET_GOTO)
        return 1;
    past->sequences[loaded->history_count] = sequence;
    if (det_row_state_find(instance->machine, state, &loaded->history[loaded->history_count]) < 0)
        return 0;
    loaded->history_count++;
    return loaded->history_count < DET_HISTORY_MAX &&
           loaded->history_count < loaded->head.transition_count;
}

int det_sqlite_history(
    const struct sqlite_store *store, struct sqlite_connection *reader,
    const struct sqlite_instance *instance, struct det_store_loaded *loaded)
{
    struct past past = { .store = store,
                         .is_cut = !instance->last_event && instance->sequence > 0 };
    int64_t position = instance->last_event;
    struct sqlite_call call;
    int r = 1;

    for (size_t i = 0; r > 0 && position && i < HISTORY_STEPS; i++) {
        det_sqlite_call(reader, STATEMENT_EVENT_STEP, &call);
        det_sqlite_number(&call, position);
        det_sqlite_number(&call, instance->key);
        r = det_sqlite_step(&call);
        if (r > 0)
            r = look_back(&call, instance, &past, loaded, &position);
        else if (r == 0)
            r = DET_ERR_CORRUPT;
        det_sqlite_end(&call);
    }
    if (r <= 0 || !past.is_cut)
        return r < 0 ? r : 0;
    return add_snapshot_history(reader, instance, &past, loaded);
}

/* Pruning. */

struct pruning {
    struct sqlite_instance *instance;
    uint64_t sequence;
    det_time answers_before;
    uint64_t deleted;
};

/* The sequence up to which events may go: that of the snapshot, if there is a good one. */
static int read_limit(struct sqlite_store *store, struct pruning *pruning)
{
    struct sqlite_call call;
    struct sqlite_head row = { .head.sequence = 0 };
    int r;

    det_sqlite_call(&store->writer, STATEMENT_SNAPSHOT_READ, &call);
    det_sqlite_number(&call, pruning->instance->key);
    r = det_sqlite_step(&call);
    if (r > 0) {
        r = det_sqlite_head_read(&call, &row);
        if (r == 0 && det_chain_snapshot_checksum(
                          &row.head, det_sqlite_get_text(&call, 15, false),
                          det_sqlite_get_number(&call, 16)) != row.checksum)
            r = DET_ERR_CORRUPT;
    }
    det_sqlite_end(&call);
    if (row.head.sequence < pruning->sequence)
        pruning->sequence = row.head.sequence;
    return r;
}

static int run_on(
    struct sqlite_store *store, enum sqlite_statement statement, int64_t first, int64_t second)
{
    struct sqlite_call call;

    det_sqlite_call(&store->writer, statement, &call);
    det_sqlite_number(&call, first);
    if (sqlite3_bind_parameter_count(call.statement) > 1)
        det_sqlite_number(&call, second);
    return det_sqlite_run(&call);
}

/* Finds the newest event that goes; the one before it in the walk, if any, begins the chain. */
static int find_cut(
    struct sqlite_store *store, const struct pruning *pruning, struct step *kept, struct step *cut)
{
    const struct sqlite_instance *instance = pruning->instance;
    uint64_t sequence = instance->sequence;
    int r;

    *kept = (struct step){ .previous = instance->last_event };
    while (kept->previous && sequence > pruning->sequence) {
        r = read_step(&store->writer, instance->key, kept->previous, sequence--, kept);
        if (r < 0)
            return r;
    }
    *cut = (struct step){ .position = kept->previous, .sequence = sequence };
    return 0;
}

static int delete_from(struct sqlite_store *store, struct pruning *pruning, struct step cut)
{
    int64_t key = pruning->instance->key;
    struct step step;
    int r;

    while (cut.position) {
        r = read_step(&store->writer, key, cut.position, cut.sequence, &step);
        if (r == 0)
            r = run_on(store, STATEMENT_EVENT_DELETE, cut.position, key);
        if (r < 0)
            return r;
        pruning->deleted++;
        cut.position = step.previous;
        cut.sequence--;
    }
    return 0;
}

static int run_prune(struct sqlite_store *store, void *context)
{
    struct pruning *pruning = context;
    struct sqlite_instance *instance = pruning->instance;
    struct step kept = { 0 }, cut = { 0 };
    int r;

    r = det_sqlite_instance_refresh(store, instance);
    if (r == 0)
        r = read_limit(store, pruning);
    if (r == 0)
        r = find_cut(store, pruning, &kept, &cut);
    if (r == 0)
        r = run_on(store, STATEMENT_ANSWER_FORGET, instance->key, pruning->answers_before);
    if (r < 0 || !cut.position)
        return r;
    r = kept.position ? run_on(store, STATEMENT_EVENT_CUT, kept.position, instance->key)
                      : run_on(store, STATEMENT_INSTANCE_CUT, instance->key, 0);
    /* Every handle reads again where its chain begins. */
    store->prunings++;
    return r < 0 ? r : delete_from(store, pruning, cut);
}

int det_sqlite_prune(
    struct det_store *base, struct det_store_instance *instance, uint64_t sequence,
    det_time answers_before, uint64_t *ret)
{
    struct pruning pruning = { sqlite_instance_of(instance), sequence, answers_before, 0 };
    int r;

    r = det_sqlite_alone(sqlite_store_of(base), run_prune, &pruning);
    if (r < 0)
        return r;
    *ret = pruning.deleted;
    return 0;
}
