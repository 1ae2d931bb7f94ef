/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* limits.c - `detent limits`: every limit with its default and maximum. */
#include <string.h>

#include <detent/driver/process_guard.h>
#include <detent/journal.h>

#include "base/assert.h"
#include "base/text.h"
#include "config/config.h"
#include "terminal/command.h"
#include "terminal/table.h"
#include "worker/limits.h"
#include "yaml/datum.h"
#include "json/writer.h"

struct limit {
    const char *where, *name;
    uint64_t otherwise, most;
    const char *unit, *about;
    bool is_time;
};

#define NO_LIMIT      0

#define IS_TIME(type) _Generic((type)0, det_time : true, default : false)
#define HTTP_LIMIT(name, type, otherwise, most, unit, about) \
    { "http.limits", #name, (uint64_t)(otherwise), (uint64_t)(most), unit, about, IS_TIME(type) },
#define CONFIG_LIMIT HTTP_LIMIT

/* Fixed limits of stores and definitions are in the headers of the library. */
static const struct limit limits[] = {
#include "config/limits.def"
#include "http/limits.def"
    { "limits", "shutdown", 60 * (uint64_t)DET_SECOND, 3650 * (uint64_t)DET_DAY, "",
      "from the request to stop until tasks and workers are killed", true },
    { "", "close", 10 * (uint64_t)DET_SECOND, 10 * (uint64_t)DET_SECOND, "",
      "after that, until the program exits even if something hangs", true },
    { "", "close_again", (uint64_t)DET_SECOND, (uint64_t)DET_SECOND, "",
      "the same after a second SIGTERM or SIGINT", true },
    { "", "processes", DET_PROCESS_GUARD_MAX, DET_PROCESS_GUARD_MAX, "",
      "concurrent processes of one daemon", false },
    { "", "states", DET_STATES_MAX, DET_STATES_MAX, "", "states of a machine", false },
    { "", "history", 16, DET_HISTORY_MAX, "", "previous states of an instance in memory", false },
    { "", "batch", DET_BATCH_MAX, DET_BATCH_MAX, "", "events in one commit of an instance", false },
    { "", "id", DET_ID_MAX, DET_ID_MAX, "B", "ids of instances, events and jobs", false },
    { "", "tasks", DET_TASKS_MAX, UINT32_MAX, "", "tasks registered or queued (tasks_max)", false },
    { "", "pool_threads", DET_POOL_THREADS, UINT32_MAX, "", "concurrent functions of tasks",
      false },
    { "", "intake", DET_INTAKE_MAX, UINT32_MAX, "",
      "pending calls of other threads to tasks (intake_max)", false },
    { "", "bus", DET_BUS_CAPACITY, 1048576, "", "stored events of tasks (bus_capacity)", false },
    { "", "config_size", DET_DATUM_READ_MAX, DET_DATUM_READ_MAX, "B", "detent.yaml", false },
    { "", "config_values", DET_DATUM_NODES_MAX, DET_DATUM_NODES_MAX, "", "values in detent.yaml",
      false },
    { "limits", "concurrent", NO_LIMIT, 1000000, "", "concurrent attempts of tasks", false },
    { "limits", "slot_depth", 100, 1000000, "", "tasks queued in one slot", false },
    { "limits", "effects", CONFIG_EFFECTS, CONFIG_EFFECTS_MAX, "", "concurrent effects of machines",
      false },
    { "", "worker_depth", DET_WORKER_DEPTH_MAX, DET_WORKER_DEPTH_MAX, "", "workers below workers",
      false },
    { "", "worker_config", DET_DATUM_SIZE_MAX, DET_DATUM_SIZE_MAX, "B", "the config of one worker",
      false },
    { "", "journal_row", DET_JOURNAL_ROW_MAX, DET_JOURNAL_ROW_MAX, "B",
      "data of a row of a journal", false },
    { "", "journal_group", DET_JOURNAL_GROUP_MAX, DET_JOURNAL_GROUP_MAX, "B",
      "rows of a journal that are appended together", false },
    { "", "journal_streams", DET_JOURNAL_STREAMS_MAX, DET_JOURNAL_STREAMS_MAX, "",
      "streams of a journal", false },
    { "", "journal_segment", 64 << 20, DET_JOURNAL_SEGMENT_MAX, "B", "a file of a journal", false },
    { "", "journal_buffer", 4 << 20, DET_JOURNAL_BUFFER_MAX, "B",
      "each of the two buffers of a journal", false },
    { "", "reason", DET_REASON_MAX, DET_REASON_MAX, "B", "why something stopped or failed", false },
};

/* A limit of workers; the library has the default. */
struct worker_limit {
    struct limit limit; /* without its default */
    size_t offset;
    bool is_large; /* 64 bits */
};

#define IS_SPAN(type)  IS_SPAN_##type
#define IS_SPAN_SPAN   true
#define IS_SPAN_COUNT  false
#define IS_SPAN_LARGE  false
#define IS_SPAN_SIZE   false
#define IS_LARGE(type) IS_LARGE_##type
#define IS_LARGE_SPAN  true
#define IS_LARGE_COUNT false
#define IS_LARGE_LARGE true
#define IS_LARGE_SIZE  true
#define OF(member)     offsetof(struct det_worker_limits, member)
#define ROW(member, most, unit, about, is_time, is_large)                                     \
    {                                                                                         \
        { "workers.limits", #member, 0, (uint64_t)(most), unit, about, is_time }, OF(member), \
            is_large                                                                          \
    }
#define WORKER_LIMIT(member, type, least, most, unit, about) \
    ROW(member, most, unit, about, IS_SPAN(type), IS_LARGE(type)),
#define WORKER_BACKOFF(member, about)                                                \
    ROW(member.first, 10 * 365 * DET_DAY, "", about ": the first wait", true, true), \
        ROW(member.max, 10 * 365 * DET_DAY, "", about ": the longest wait", true, true),
#define WORKER_INTENSITY(member, about)                            \
    ROW(member.count, DET_INTENSITY_MAX, "", about, false, false), \
        ROW(member.window, 10 * 365 * DET_DAY, "", about ": within this time", true, true),
static const struct worker_limit worker_limits[] = {
#include "config/worker_limits.def"
};
#undef WORKER_LIMIT
#undef WORKER_BACKOFF
#undef WORKER_INTENSITY

static struct limit worker_limit_at(size_t index)
{
    const struct worker_limit *from = &worker_limits[index];
    struct limit limit = from->limit;
    struct det_worker_limits none = { 0 }, defaults = { 0 };
    const char *place = (const char *)&defaults + from->offset;
    uint32_t small;

    det_assert(
        from->offset + (from->is_large ? sizeof(uint64_t) : sizeof small) <= sizeof defaults);
    (void)!det_worker_limits_resolve(&none, &defaults, NULL);
    if (from->is_large)
        memcpy(&limit.otherwise, place, sizeof limit.otherwise);
    else {
        memcpy(&small, place, sizeof small);
        limit.otherwise = small;
    }
    return limit;
}

static const char *show(const struct limit *limit, uint64_t value, char target[64])
{
    if (value == NO_LIMIT)
        snprintf(target, 64, "none");
    else if (limit->is_time)
        det_format_duration((det_time)value, target, 64);
    else if (strcmp(limit->unit, "B") == 0 && value >= 1024 && value % 1024 == 0)
        snprintf(
            target, 64, "%llu %s", (unsigned long long)(value >> (value % (1 << 20) ? 10 : 20)),
            value % (1 << 20) ? "KiB" : "MiB");
    else
        snprintf(
            target, 64, "%llu%s%s", (unsigned long long)value, *limit->unit ? " " : "",
            limit->unit);
    return target;
}

static void print_object(struct cli *cli, struct det_json_writer *json, const struct limit *limit)
{
    det_json_open(json, NULL, '{');
    det_json_text(json, "type", "limit");
    det_json_text(json, "where", *limit->where ? limit->where : NULL);
    det_json_text(json, "name", limit->name);
    if (limit->otherwise == NO_LIMIT)
        det_json_text(json, "default", NULL);
    else
        det_json_number(json, "default", limit->otherwise);
    det_json_number(json, "most", limit->most);
    det_json_text(json, "unit", limit->is_time ? "ns" : *limit->unit ? limit->unit : NULL);
    det_json_text(json, "about", limit->about);
    det_json_close(json, '}');
    cli_print_line(cli, json);
}

static const struct table_column columns[] = {
    { "limit", 0, false },
    { "default", 0, true },
    { "at most", 0, true },
    { "of", 1, false },
};

static void add_row(struct table *table, const struct limit *limit)
{
    char text[64];

    table_add(table, CLI_BOLD, "%s%s%s", limit->where, *limit->where ? "." : "", limit->name);
    table_add(table, CLI_PLAIN, "%s", show(limit, limit->otherwise, text));
    table_add(table, CLI_PLAIN, "%s", show(limit, limit->most, text));
    table_add(table, CLI_PLAIN, "%s", limit->about);
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct table table;
    struct det_json_writer json;

    const size_t count = sizeof limits / sizeof *limits;

    (void)args;
    table_init(&table, cli, columns, sizeof columns / sizeof *columns);
    det_json_writer_init(&json, cli->allocator);
    for (size_t i = 0; i < count + sizeof worker_limits / sizeof *worker_limits; i++) {
        struct limit limit = i < count ? limits[i] : worker_limit_at(i - count);

        if (cli->is_json)
            print_object(cli, &json, &limit);
        else
            add_row(&table, &limit);
    }
    table_show(&table, NULL);
    det_json_writer_deinit(&json);
    table_deinit(&table);
    return CLI_OK;
}

extern const struct cli_command cli_command_limits;
const struct cli_command cli_command_limits = {
    .name = "limits",
    .summary = "list every limit with its default and maximum",
    .about = "Limits with a path are keys of detent.yaml. What exceeds a limit is refused with\n"
             "the name of the limit; nothing is truncated silently, and nothing hangs.",
    .operand = { .form = "" },
    .options = (const struct cli_option[]){ { NULL, 0, NULL, NULL, NULL } },
    .run = run_command,
};
