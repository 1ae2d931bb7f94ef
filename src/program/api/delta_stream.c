/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* delta_stream.c - changes of documents as Server-Sent Events, after a sync id, without loss.
 *
 *     poll --> lane: the newest sync id --> head
 *                                            |
 *     follower: cursor < head, and its connection is drained --> lane: its next page
 *
 * Invariants
 *   1. Every published delta was read from the store, so it is durable. The cursor of a follower
 *      only grows; every matching delta before the cursor was sent once, or the follower was sent
 *      `bootstrap`, since the store has dropped some of them.
 *   2. No page is read for a follower whose connection has unsent bytes.
 *   3. A page is in the memory of its follower, which is kept until the page is done. */
#include <detent/driver/loop.h>

#include "api/api_internal.h"
#include "api/document_pages.h"
#include "api/stream_feed.h"
#include "base/assert.h"
#include "base/memory.h"

#define POLL_SPAN  (100 * DET_MILLISECOND)
#define PAGE_ROWS  512
#define PAGE_BYTES (64 << 10)

struct follower {
    struct api_feed feed; /* first */
    struct det_list node;
    struct api_deltas *deltas;
    struct det_document_query query; /* texts in the arena of the call */
    uint64_t cursor;
    uint64_t head_read; /* number of the first read of the head after it joined */
    bool is_waiting;    /* waits for the head */
    bool is_revealed;
    /* The page. */
    struct api_lane_job job;
    struct det_json_writer text;
    struct det_document_position position;
    uint64_t last;
    size_t count;
    bool is_full;
    int result;
};

struct api_deltas {
    struct api *api;
    struct det_list followers;
    size_t count;
    struct det_timer poll;
    /* The newest sync id. */
    struct api_lane_job job;
    struct det_document_position position;
    int result;
    uint64_t head;
    uint64_t head_reads; /* reads of the head begun so far */
    bool has_head, is_looking;
};

static struct follower *follower_of(struct api_feed *feed)
{
    return (struct follower *)(void *)feed;
}

/* In a lane. */

/* A line break ends a field of Server-Sent Events; in JSON it is a space. */
static void append_event(struct follower *follower, const struct det_delta *delta)
{
    struct det_buffer *text = &follower->text.text;
    size_t begin;

    det_buffer_format(text, "id: %llu\nevent: delta\ndata: ", (unsigned long long)delta->sync);
    begin = text->size;
    follower->text.needs_comma = false;
    api_delta_line(&follower->text, delta, follower->is_revealed);
    for (size_t i = begin; det_buffer_status(text) == 0 && i < text->size; i++) {
        if (text->data[i] == '\n' || text->data[i] == '\r')
            text->data[i] = ' ';
    }
    det_buffer_append_text(text, "\n\n");
}

static int take_delta(void *context, const struct det_delta *delta)
{
    struct follower *follower = context;

    if (follower->text.text.size >= PAGE_BYTES) {
        follower->is_full = true;
        return 1;
    }
    /* A damaged file may have rows that are not in the order of their positions. */
    if (delta->sync <= follower->query.after)
        return DET_ERR_CORRUPT;
    append_event(follower, delta);
    follower->last = delta->sync;
    follower->count++;
    return det_buffer_status(&follower->text.text);
}

/* Opens a reader of the store. NULL: `ret` is the error. */
static struct api_reader *open_reader(struct api *api, int *ret)
{
    int code = CLI_OK;
    struct api_reader *reader = api_reader_open(api, &code);

    *ret = !reader ? DET_ERR_NO_MEMORY : code != CLI_OK ? DET_ERR_IO : 0;
    if (reader && *ret < 0) {
        api_reader_give(api, reader);
        reader = NULL;
    }
    return reader;
}

static void read_page(void *argument)
{
    struct follower *follower = argument;
    struct api *api = follower->deltas->api;
    struct api_reader *reader = open_reader(api, &follower->result);

    if (!reader)
        return;
    follower->result = det_store_documents_deltas(
        reader->store.store, &follower->query, take_delta, follower, &follower->position);
    api_reader_give(api, reader);
    follower->is_full |= follower->count >= follower->query.limit;
}

static void read_position(void *argument)
{
    struct api_deltas *deltas = argument;
    struct api_reader *reader = open_reader(deltas->api, &deltas->result);

    if (!reader)
        return;
    deltas->result = det_store_documents_position(reader->store.store, &deltas->position);
    api_reader_give(deltas->api, reader);
}

/* On the http thread. */

static void on_over(struct api_feed *feed)
{
    struct follower *follower = follower_of(feed);
    struct api_deltas *deltas = follower->deltas;

    det_assert(deltas->count > 0);
    det_list_remove(&follower->node);
    if (--deltas->count == 0)
        deltas->has_head = false;
}

static void release_text(struct api_feed *feed)
{
    det_json_writer_deinit(&follower_of(feed)->text);
}

static void finish_page(void *argument);

static void feed_follower(struct follower *follower)
{
    struct api_deltas *deltas = follower->deltas;

    if (follower->is_waiting || follower->feed.is_catching || follower->cursor >= deltas->head ||
        api_feed_waiting(&follower->feed) > 0)
        return;
    follower->feed.is_catching = true;
    follower->is_full = false;
    follower->count = 0;
    follower->query.after = follower->cursor;
    follower->query.limit = PAGE_ROWS;
    det_buffer_clear(&follower->text.text);
    follower->job =
        (struct api_lane_job){ .run = read_page, .done = finish_page, .argument = follower };
    api_lane_submit(deltas->api, API_READS, &follower->job);
}

static void send_bootstrap(struct follower *follower)
{
    char text[32];
    uint64_t latest = follower->position.latest;
    int size = snprintf(text, sizeof text, "id: %llu\n", (unsigned long long)latest);

    if (api_feed_write(&follower->feed, text, (size_t)size) == 0)
        (void)api_feed_report_number(&follower->feed, "bootstrap", "position", latest);
    follower->cursor = latest;
}

static void send_page(struct follower *follower)
{
    const struct det_buffer *text = &follower->text.text;

    if (follower->cursor + 1 < follower->position.oldest) {
        send_bootstrap(follower);
        return;
    }
    if (text->size && api_feed_write(&follower->feed, text->data, text->size) < 0)
        return;
    det_assert(!follower->is_full || follower->last > follower->cursor);
    if (follower->is_full)
        follower->cursor = follower->last;
    else if (follower->position.latest > follower->cursor)
        follower->cursor = follower->position.latest;
}

static void finish_page(void *argument)
{
    struct follower *follower = argument;

    if (!api_feed_page_done(&follower->feed))
        return;
    /* Dropping frees the follower at once. */
    if (follower->job.is_dropped || follower->result < 0) {
        api_feed_drop(&follower->feed, "the store cannot be read");
        return;
    }
    send_page(follower);
    feed_follower(follower);
}

/* A cursor after the head came from a page or from another node, or it belongs to another store:
 * the first read of the head after the follower joined decides. */
static bool knows_start(const struct follower *follower)
{
    const struct api_deltas *deltas = follower->deltas;

    return deltas->has_head &&
           (follower->cursor == UINT64_MAX || follower->cursor <= deltas->head ||
            deltas->head_reads >= follower->head_read);
}

static void send_hello(struct follower *follower)
{
    follower->is_waiting = false;
    if (follower->cursor > follower->deltas->head)
        follower->cursor = follower->deltas->head;
    (void)api_feed_report_number(&follower->feed, "hello", "position", follower->cursor);
}

static void read_head(struct api_deltas *deltas);

static void finish_position(void *argument)
{
    struct api_deltas *deltas = argument;
    struct det_list *next;
    bool is_early = false;

    det_assert(deltas->is_looking);
    deltas->is_looking = false;
    if (deltas->job.is_dropped || deltas->result < 0)
        return;                           /* The next poll retries; no delta is lost. */
    deltas->has_head = deltas->count > 0; /* All followers may have left meanwhile. */
    deltas->head = deltas->position.latest;
    for (struct det_list *node = deltas->followers.next; node != &deltas->followers; node = next) {
        struct follower *follower = DET_CONTAINER(node, struct follower, node);

        next = node->next;
        if (follower->is_waiting && knows_start(follower))
            send_hello(follower);
        is_early |= follower->is_waiting;
        feed_follower(follower);
    }
    if (is_early)
        read_head(deltas);
}

static void read_head(struct api_deltas *deltas)
{
    if (deltas->is_looking)
        return;
    deltas->is_looking = true;
    deltas->head_reads++;
    deltas->job =
        (struct api_lane_job){ .run = read_position, .done = finish_position, .argument = deltas };
    api_lane_submit(deltas->api, API_TAIL, &deltas->job);
}

static void drop_all(struct api_deltas *deltas)
{
    struct det_list *next;

    for (struct det_list *node = deltas->followers.next; node != &deltas->followers; node = next) {
        next = node->next;
        api_feed_drop(&DET_CONTAINER(node, struct follower, node)->feed, "out of memory");
    }
}

static void on_poll(void *argument)
{
    struct api_deltas *deltas = argument;
    det_time next = det_loop_now(deltas->api->loop) + POLL_SPAN;

    if (!deltas->count || deltas->api->feeds.is_over)
        return;
    read_head(deltas);
    /* Without the timer there is no next poll: followers reconnect and start it again. */
    if (det_loop_timer_set(deltas->api->loop, &deltas->poll, next) < 0)
        drop_all(deltas);
}

static void on_drained(struct api_feed *drained)
{
    feed_follower(follower_of(drained));
}

/* Following. */

/* The sync id to continue after; `ret` stays if the request has none. */
static bool read_cursor(struct api_call *call, uint64_t *ret)
{
    const char *last = http_header(http_request(call->exchange), "last-event-id");

    if (!api_query_number(call, "after", 0, INT64_MAX, ret))
        return false;
    if (last && (det_parse_u64(det_view_text(last), ret) < 0 || *ret > INT64_MAX)) {
        api_fail(call, DET_ERR_INVALID, "'Last-Event-ID' must be a sync id, a number");
        return false;
    }
    return true;
}

static bool read_query(struct api_call *call, struct follower *follower, uint64_t cursor)
{
    size_t limit;

    follower->cursor = cursor;
    if (!api_query_limit(call, &limit) || !api_documents_query(call, &follower->query) ||
        !api_documents_reveal(call, &follower->is_revealed))
        return false;
    if (call->api->source.address)
        return true;
    api_fail(call, DET_ERR_UNSUPPORTED, "no store is configured, so no worker is stored");
    return false;
}

static void follow(struct api_call *call, uint64_t cursor)
{
    static const struct api_feed_ops ops = { .drained = on_drained,
                                             .over = on_over,
                                             .release = release_text };
    struct api_deltas *deltas = call->api->deltas;
    struct follower *follower = det_arena_alloc(&call->arena, sizeof *follower);

    if (!follower)
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
    if (!follower || !read_query(call, follower, cursor) ||
        !api_feed_begin(&follower->feed, call, &ops)) {
        api_finish(call);
        return;
    }
    follower->deltas = deltas;
    follower->feed.position = &follower->cursor;
    follower->is_waiting = true;
    follower->head_read = deltas->head_reads + 1;
    det_json_writer_init(&follower->text, call->api->allocator);
    det_list_init(&follower->node);
    det_list_append(&deltas->followers, &follower->node);
    if (deltas->count++ == 0)
        on_poll(deltas);
    else if (knows_start(follower)) {
        send_hello(follower);
        feed_follower(follower);
    } else {
        read_head(deltas);
    }
}

void api_get_deltas(struct api_call *call)
{
    uint64_t cursor = UINT64_MAX;
    bool follows = false;

    if (!api_query_bool(call, "follow", &follows) || !read_cursor(call, &cursor)) {
        api_finish(call);
        return;
    }
    if (follows) {
        follow(call, cursor);
        return;
    }
    call->own = det_arena_alloc(&call->arena, sizeof cursor);
    if (!call->own) {
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
        api_finish(call);
        return;
    }
    *(uint64_t *)call->own = cursor == UINT64_MAX ? 0 : cursor;
    api_defer(call, api_list_deltas);
}

/* Opening and closing. */

int api_deltas_open(struct api *api, struct det_error *reterr)
{
    struct api_deltas *deltas = DET_NEW(api->allocator, struct api_deltas);

    if (!deltas)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    deltas->api = api;
    det_list_init(&deltas->followers);
    deltas->poll = (struct det_timer){ .run = on_poll, .argument = deltas };
    api->deltas = deltas;
    return 0;
}

void api_deltas_close(struct api *api)
{
    if (api->deltas)
        DET_DELETE(api->allocator, api->deltas);
    api->deltas = NULL;
}
