/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_stream.c - rows of a flow as Server-Sent Events, without loss across runs.
 *
 *     loop of a flow --api_notice_flow: new rows--> http thread: each idle follower gets a page
 *     follower: not caught up, and its connection is drained --> lane: its next page
 *
 * The id of an event is "<run>~<position>". A follower reads a run to its end before the next one;
 * `run` announces it.
 *
 * Invariants
 *   1. Every published row was acknowledged by the journal. The place (run, position) of a follower
 *      only grows; every matching row before it was sent once, unless retention has dropped rows,
 *      which `lost` reports.
 *   2. No page is read for a follower whose connection has unsent bytes.
 *   3. A notice that comes while a page is read is remembered: no row waits for a later one. */
#include "api/flow_stream.h"

#include <string.h>

#include <detent/driver/loop.h>

#include "api/api_internal.h"
#include "api/flow_reading.h"
#include "api/stream_feed.h"
#include "base/assert.h"
#include "base/memory.h"
#include "daemon/daemon.h"

#define PAGE_ROWS  512
#define PAGE_BYTES (64 << 10)
/* Rows that are read for a page of a stream with few of them. */
#define BUDGET 50000

struct flow_follower {
    struct api_feed feed; /* first */
    struct det_list node;
    struct api_flows *flows;
    const char *name, *stream; /* in the arena of the call */
    uint64_t run, position;    /* run 0: the end of the last run, not known yet */
    bool is_noticed;
    /* The page. */
    struct api_lane_job job;
    struct det_json_writer text;
    uint64_t page_run, page_position;
    bool has_more;
    struct det_error error;
    int result;
};

struct api_flows {
    struct api *api;
    struct det_list followers;
    atomic_size_t count;
    atomic_bool is_noticed;
    struct det_post notice;
};

static struct flow_follower *follower_of(struct api_feed *feed)
{
    return (struct flow_follower *)(void *)feed;
}

/* In a lane. */

static void append_head(struct flow_follower *follower, const char *name)
{
    det_buffer_format(
        &follower->text.text,
        "id: %llu~%llu\nevent: %s\ndata: ", (unsigned long long)follower->page_run,
        (unsigned long long)follower->page_position, name);
    follower->text.needs_comma = false;
}

/* A line break ends a field of Server-Sent Events; in JSON it is a space. */
static void append_end(struct flow_follower *follower, size_t begin)
{
    struct det_buffer *text = &follower->text.text;

    for (size_t i = begin; det_buffer_status(text) == 0 && i < text->size; i++) {
        if (text->data[i] == '\n' || text->data[i] == '\r')
            text->data[i] = ' ';
    }
    det_buffer_append_text(text, "\n\n");
}

static int append_row(void *user, struct flow_view *view, const struct det_journal_row *row)
{
    struct flow_follower *follower = user;
    size_t begin;

    if (follower->text.text.size >= PAGE_BYTES)
        return 1;
    follower->page_position = row->position;
    append_head(follower, "row");
    begin = follower->text.text.size;
    flow_row_write(view, &follower->text, NULL, row);
    append_end(follower, begin);
    return det_buffer_status(&follower->text.text);
}

/* An event with one number. */
static void append_number(
    struct flow_follower *follower, const char *name, const char *key, uint64_t number)
{
    append_head(follower, name);
    det_json_open(&follower->text, NULL, '{');
    det_json_number(&follower->text, key, number);
    det_json_close(&follower->text, '}');
    det_buffer_append_text(&follower->text.text, "\n\n");
}

/* Reads a page of one run. */
static int read_run(
    struct flow_follower *follower, struct flow_reading *reading, struct det_error *reterr)
{
    const struct flow_rows_query query = { .stream = follower->stream,
                                           .after = follower->page_position,
                                           .limit = PAGE_ROWS,
                                           .budget = BUDGET };
    uint64_t begin = det_journal_begin(reading->view.journal);
    struct flow_rows_page page;
    int r;

    if (query.after + 1 < begin)
        append_number(follower, "lost", "rows", begin - 1 - query.after);
    r = flow_rows_read(&reading->view, &query, append_row, follower, &page, reterr);
    /* A stage has no stream before its first row. */
    if (r == DET_ERR_NOT_FOUND)
        return 0;
    follower->has_more = r == 0 && page.has_more;
    if (r == 0)
        follower->page_position = page.next;
    return r;
}

/* The follower begins at the end of the run, or continues in the run of its place. */
static int begin_run(struct flow_follower *follower, const struct flow_reading *reading)
{
    if (follower->page_run == 0) {
        follower->page_run = reading->view.run;
        follower->page_position = det_journal_acknowledged(reading->view.journal);
        append_number(follower, "hello", "run", follower->page_run);
        return 1;
    }
    return 0;
}

static bool is_memory(const struct flow_reading *reading)
{
    return !reading->hold.folder;
}

/* The last run is after that of the follower, which has all rows of its own. */
static void enter_next(struct flow_follower *follower, const struct flow_reading *last)
{
    follower->page_run = is_memory(last) ? last->view.run : follower->page_run + 1;
    follower->page_position = 0;
    follower->has_more = true;
    append_number(follower, "run", "run", follower->page_run);
}

static int read_page_of(struct flow_follower *follower, struct det_error *reterr)
{
    struct api *api = follower->flows->api;
    struct flow_reading last, own;
    int r = flow_reading_open(api, follower->name, 0, &last, reterr);

    if (r < 0)
        return r;
    if (!last.view.journal || begin_run(follower, &last)) {
        flow_reading_close(&last);
        return 0;
    }
    if (follower->page_run >= last.view.run) {
        r = read_run(follower, &last, reterr);
        flow_reading_close(&last);
        return r;
    }
    r = is_memory(&last) ? DET_ERR_NOT_FOUND
                         : flow_reading_open(api, follower->name, follower->page_run, &own, reterr);
    if (r == 0 && own.view.journal)
        r = read_run(follower, &own, reterr);
    if (r == 0)
        flow_reading_close(&own);
    if (r == DET_ERR_NOT_FOUND)
        r = 0;
    if (r == 0 && !follower->has_more)
        enter_next(follower, &last);
    flow_reading_close(&last);
    return r;
}

static void read_page(void *argument)
{
    struct flow_follower *follower = argument;

    follower->result = read_page_of(follower, &follower->error);
    if (follower->result == 0)
        follower->result = det_buffer_status(&follower->text.text);
}

/* On the http thread. */

static void on_over(struct api_feed *feed)
{
    struct flow_follower *follower = follower_of(feed);

    det_list_remove(&follower->node);
    atomic_fetch_sub(&follower->flows->count, 1);
}

static void release_text(struct api_feed *feed)
{
    det_json_writer_deinit(&follower_of(feed)->text);
}

static void finish_page(void *argument);

static void feed_follower(struct flow_follower *follower)
{
    if (follower->feed.is_catching || !follower->is_noticed ||
        api_feed_waiting(&follower->feed) > 0)
        return;
    follower->feed.is_catching = true;
    follower->is_noticed = false;
    follower->has_more = false;
    follower->page_run = follower->run;
    follower->page_position = follower->position;
    det_buffer_clear(&follower->text.text);
    follower->job =
        (struct api_lane_job){ .run = read_page, .done = finish_page, .argument = follower };
    api_lane_submit(follower->flows->api, API_READS, &follower->job);
}

static void finish_page(void *argument)
{
    struct flow_follower *follower = argument;
    const struct det_buffer *text = &follower->text.text;

    if (!api_feed_page_done(&follower->feed))
        return;
    /* Dropping frees the follower at once. */
    if (follower->job.is_dropped || follower->result < 0) {
        api_feed_drop(
            &follower->feed, follower->result == DET_ERR_NOT_FOUND
                                 ? "the flow was removed"
                                 : "the journal of the flow cannot be read");
        return;
    }
    follower->run = follower->page_run;
    follower->position = follower->page_position;
    follower->is_noticed |= follower->has_more;
    if (text->size && api_feed_write(&follower->feed, text->data, text->size) < 0)
        return;
    feed_follower(follower);
}

static void on_drained(struct api_feed *drained)
{
    feed_follower(follower_of(drained));
}

static void on_notice(void *argument)
{
    struct api_flows *flows = argument;
    struct det_list *next;

    atomic_store(&flows->is_noticed, false);
    for (struct det_list *node = flows->followers.next; node != &flows->followers; node = next) {
        struct flow_follower *follower = DET_CONTAINER(node, struct flow_follower, node);

        next = node->next;
        follower->is_noticed = true;
        feed_follower(follower);
    }
}

void api_notice_flow(struct up *up)
{
    struct det_world *world = up_world(up);
    struct api *api;

    if (!atomic_load_explicit(&up_api_place(up)->listener, memory_order_relaxed))
        return;
    det_mutex_lock(world, up_api_place(up)->listener_lock);
    api = up_api_place(up)->listener;
    if (api && atomic_load_explicit(&api->flows->count, memory_order_relaxed) &&
        !atomic_exchange(&api->flows->is_noticed, true))
        det_loop_post(api->loop, &api->flows->notice);
    det_mutex_unlock(world, up_api_place(up)->listener_lock);
}

/* Following. */

/* Reads "3~120", or "120" in the last run; leaves `follower` unchanged if there is none. */
static bool read_place(const char *text, struct flow_follower *follower)
{
    const char *mark = strchr(text, '~');

    if (!mark || mark - text > 6 ||
        det_parse_u64(det_view_of(text, (size_t)(mark - text)), &follower->run) < 0 ||
        det_parse_u64(det_view_text(mark + 1), &follower->position) < 0)
        return false;
    return follower->run > 0 && follower->position <= INT64_MAX;
}

static bool read_cursor(struct api_call *call, struct flow_follower *follower)
{
    const char *last = http_header(http_request(call->exchange), "last-event-id");
    const char *after = last ? last : api_query(call, "after");

    if (!after || read_place(after, follower))
        return true;
    api_fail(
        call, DET_ERR_INVALID, "'%s' must be the id of an event: run~position, such as 1~0",
        last ? "Last-Event-ID" : "after");
    return false;
}

/* On the loop of the daemon. */
static void find_flow(struct up *up, struct api_call *call)
{
    const char *stream = api_query(call, "stream");
    struct up_flow_hold hold;
    struct det_error error;

    if (up_flow_hold(up, call->parameters[0], &hold) < 0) {
        api_fail(call, DET_ERR_NOT_FOUND, "there is no flow '%s'", call->parameters[0]);
        return;
    }
    if (stream && !api_flow_has_stream(hold.definition->flow, stream)) {
        (void)api_flow_fail_stream(hold.definition->flow, call->parameters[0], stream, &error);
        api_fail(call, DET_ERR_NOT_FOUND, "%s", error.text);
    }
    up_flow_release(up, &hold);
}

static void begin_stream(struct api_call *call)
{
    static const struct api_feed_ops ops = { .drained = on_drained,
                                             .over = on_over,
                                             .release = release_text };
    struct api_flows *flows = call->api->flows;
    struct flow_follower *follower = det_arena_alloc(&call->arena, sizeof *follower);

    if (!follower)
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
    /* The client may have left while the daemon was asked. */
    if (!follower || !call->exchange || !read_cursor(call, follower) ||
        !api_feed_begin(&follower->feed, call, &ops)) {
        api_finish(call);
        return;
    }
    follower->flows = flows;
    follower->name = call->parameters[0];
    follower->stream = api_query(call, "stream");
    follower->is_noticed = true;
    det_json_writer_init(&follower->text, call->api->allocator);
    det_list_init(&follower->node);
    det_list_append(&flows->followers, &follower->node);
    atomic_fetch_add(&flows->count, 1);
    feed_follower(follower);
}

void api_get_flow_stream(struct api_call *call)
{
    struct flow_follower checked = { 0 };
    const char *stream;

    if (api_query_stream(call, &stream) && read_cursor(call, &checked))
        api_on_daemon(call, find_flow, begin_stream);
    else
        api_finish(call);
}

/* Opening and closing. */

int api_flows_open(struct api *api, struct det_error *reterr)
{
    struct api_flows *flows = DET_NEW(api->allocator, struct api_flows);

    if (!flows)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    flows->api = api;
    det_list_init(&flows->followers);
    flows->notice = (struct det_post){ .run = on_notice, .argument = flows };
    api->flows = flows;
    return 0;
}

void api_flows_close(struct api *api)
{
    if (api->flows)
        DET_DELETE(api->allocator, api->flows);
    api->flows = NULL;
}
