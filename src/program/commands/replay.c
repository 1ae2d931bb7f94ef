/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* replay.c - `detent replay`: replays recorded histories with a changed definition. */
#include <detent/tool/machine.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "machine/history_replay.h"
#include "transfer/complete_history.h"
#include "transfer/evolve.h"
#include "json/writer.h"

enum {
    OPTION_RENAMES, /* four of them */
    OPTION_INSTANCE = OPTION_RENAMES + (int)DET_COMPARE_KINDS,
    OPTION_MACHINE,
    OPTION_STORE,
};

static const struct cli_option option_table[] = {
    EVOLVE_OPTIONS,
    [OPTION_INSTANCE] = { "instance", 'i', "ID", NULL, "only this instance" },
    [OPTION_MACHINE] = { "machine", 'm', "NAME", NULL, "name in the store, if it differs" },
    [OPTION_STORE] = STORE_OPTION_URL,
    { NULL, 0, NULL, NULL, NULL },
};

/* One run of the command. The evolution comes first: rerun_of() casts it back. */
struct rerun {
    struct evolve evolve;
    struct det_replay replay;
    const char *id;
    uint64_t reported; /* last event of this instance that differed */
    uint64_t instances, events, drifts, unreadable;
};

static struct rerun *rerun_of(struct evolve *evolve)
{
    return (struct rerun *)evolve;
}

static void print_object(struct rerun *rerun, const struct det_replay_drift *drift)
{
    struct det_json_writer json;

    cli_json_begin(rerun->evolve.cli, &json, "drift");
    det_json_text(&json, "machine", rerun->evolve.stored->name);
    det_json_text(&json, "id", rerun->id);
    det_json_number(&json, "sequence", drift->sequence);
    det_json_text(&json, "event", drift->event);
    det_json_text(&json, "from", drift->from);
    det_json_text(&json, "recorded", drift->recorded);
    det_json_text(&json, "derived", drift->derived);
    det_json_text(&json, "text", drift->text);
    cli_json_end(rerun->evolve.cli, &json);
}

static void report_drift(struct rerun *rerun, const struct det_replay_drift *drift)
{
    struct cli *cli = rerun->evolve.cli;

    rerun->drifts++;
    cli_progress_end(cli);
    if (cli->is_json) {
        print_object(rerun, drift);
        return;
    }
    cli_print_in(cli, CLI_BOLD, "%s", rerun->id);
    cli_print(cli, " event %llu: %s\n", (unsigned long long)drift->sequence, drift->text);
}

/* Replays a recorded event by its names in the new definition. */
static int take_event(void *context, const struct det_store_event *row)
{
    struct rerun *rerun = context;
    const struct evolve *evolve = &rerun->evolve;
    const struct det_machine *stored = evolve->stored;
    struct det_replay_event event = {
        .sequence = row->sequence,
        .from = evolve_rename(evolve, DET_NAME_STATE, stored->states[row->from].name),
        .to = evolve_rename(evolve, DET_NAME_STATE, stored->states[row->to].name),
        .outcome = row->outcome,
        .choice = row->choice,
    };
    struct det_replay_drift drift;

    if (row->event != UINT16_MAX)
        event.event = evolve_rename(evolve, DET_NAME_EVENT, stored->events[row->event].name);
    if (!det_replay_step(&rerun->replay, &event, &drift) && row->sequence > rerun->reported) {
        rerun->reported = row->sequence;
        report_drift(rerun, &drift);
    }
    return cli_is_stopped(evolve->cli) ? 1 : 0;
}

/* Begins at the recorded start, if it is kept; its data was checked before. */
static int begin_replay(struct rerun *rerun, const struct det_store_loaded *loaded)
{
    struct evolve *evolve = &rerun->evolve;
    struct det_store_start start = { .data = loaded->data };
    int r;

    det_replay_init(&rerun->replay, evolve->new);
    r = evolve->store.ops->start(evolve->store.store, loaded->instance, &start);
    if (r < 0)
        return r == DET_ERR_NOT_FOUND ? 0 : r;
    det_replay_begin(
        &rerun->replay, 0,
        evolve_rename(evolve, DET_NAME_STATE, evolve->stored->states[start.state].name));
    return 0;
}

/* `is_last` permits missing events: others may have deleted them meanwhile. */
static int walk_events(struct rerun *rerun, const struct det_store_loaded *loaded, bool is_last)
{
    struct evolve *evolve = &rerun->evolve;
    const struct history_visit history_visit = {
        .loaded = loaded, .allows_holes = is_last, .visit = take_event, .context = rerun
    };
    const char *state = evolve->stored->states[loaded->head.state].name;
    struct det_replay_drift drift;
    int r;

    r = begin_replay(rerun, loaded);
    if (r < 0)
        return r;
    r = complete_events(&evolve->store, &history_visit);
    if (r != 0)
        return r;
    if (!det_replay_end(
            &rerun->replay, loaded->head.sequence, evolve_rename(evolve, DET_NAME_STATE, state),
            &drift))
        report_drift(rerun, &drift);
    rerun->events += rerun->replay.steps;
    return 0;
}

/* Reports an unreadable instance; the others are still replayed. */
static int report_unreadable(struct rerun *rerun, int r)
{
    struct evolve *evolve = &rerun->evolve;

    if (r != DET_ERR_CORRUPT && r != DET_ERR_VERSION)
        return cli_report_store_error(&evolve->store, r, NULL);
    cli_progress_end(evolve->cli);
    rerun->unreadable++;
    cli_report_error(
        evolve->cli, "%s %s cannot be read: %s", evolve->stored->name, rerun->id,
        r == DET_ERR_VERSION ? "it has names that the store's definition does not have"
                             : det_error_text(r));
    return CLI_OK;
}

static int replay_one(struct rerun *rerun, const char *id)
{
    static const struct det_store_rows none = { 0 };
    struct evolve *evolve = &rerun->evolve;
    const struct det_allocator *allocator = evolve->cli->allocator;
    size_t size = det_machine_data(evolve->stored)->size;
    struct det_store_loaded loaded = { .data = det_alloc_zero(allocator, size) };
    const struct cli_store *store = &evolve->store;
    int r = DET_ERR_BUSY;

    if (!loaded.data)
        return cli_no_memory(evolve->cli);
    rerun->id = id;
    rerun->reported = 0;
    for (int i = 1; r == DET_ERR_BUSY && i <= WHOLE_TRIES; i++) {
        r = store->ops->load(store->store, evolve->stored, id, &none, &loaded);
        if (r < 0)
            break;
        r = walk_events(rerun, &loaded, i == WHOLE_TRIES);
        store->ops->release(store->store, loaded.instance);
    }
    det_free(allocator, loaded.data, size);
    if (r > 0)
        return CLI_INTERRUPTED;
    rerun->instances += r == 0;
    return r < 0 ? report_unreadable(rerun, r) : CLI_OK;
}

static int replay_listed(struct evolve *evolve, const struct det_store_listed *row)
{
    struct rerun *rerun = rerun_of(evolve);

    cli_progress(evolve->cli, "instances", rerun->instances, 0);
    return replay_one(rerun, row->id);
}

static void print_summary(struct rerun *rerun)
{
    struct cli *cli = rerun->evolve.cli;
    bool is_fine = rerun->drifts + rerun->unreadable == 0;
    struct det_json_writer json;

    if (!cli->is_json) {
        cli_print_error_in(
            cli, is_fine ? CLI_GREEN : CLI_RED,
            "%s: %llu instance%s, %llu event%s replayed, %llu different\n", rerun->evolve.new->name,
            (unsigned long long)rerun->instances, det_plural(rerun->instances),
            (unsigned long long)rerun->events, det_plural(rerun->events),
            (unsigned long long)rerun->drifts);
        return;
    }
    cli_json_begin(cli, &json, "summary");
    det_json_bool(&json, "ok", is_fine);
    det_json_number(&json, "instances", rerun->instances);
    det_json_number(&json, "events", rerun->events);
    det_json_number(&json, "drifts", rerun->drifts);
    det_json_number(&json, "unreadable", rerun->unreadable);
    cli_json_end(cli, &json);
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const struct evolve_request request = {
        .new_path = args->operands[0],
        .machine = args->values[OPTION_MACHINE],
        .url = args->values[OPTION_STORE],
        .needs_store = true,
        .renames = &args->values[OPTION_RENAMES],
    };
    struct rerun rerun = { .instances = 0 };
    int code = evolve_open(cli, &request, &rerun.evolve);

    if (code == CLI_OK && args->values[OPTION_INSTANCE])
        code = replay_one(&rerun, args->values[OPTION_INSTANCE]);
    else if (code == CLI_OK)
        code = evolve_each(&rerun.evolve, replay_listed);
    cli_progress_end(cli);
    if (code == CLI_OK) {
        print_summary(&rerun);
        code = rerun.drifts + rerun.unreadable > 0 ? CLI_FAILURE : CLI_OK;
    }
    evolve_close(&rerun.evolve);
    return code;
}

extern const struct cli_command cli_command_replay;
const struct cli_command cli_command_replay = {
    .name = "replay",
    .summary = "replay recorded histories with a changed definition",
    .about = "Applies the recorded events of every instance, or of one, to the definition and\n"
             "compares the states that they lead to. Each difference is printed with the number\n"
             "of its event. Guards are not called: of several alternatives, the one that was\n"
             "taken counts. Nothing is changed. Exits with 1 if there is a difference.",
    .operand = { .form = "NEW.fsm", .least = 1, .most = 1, .suffix = ".fsm" },
    .options = option_table,
    .run = run_command,
};
