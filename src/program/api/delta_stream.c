/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* delta_stream.c - changes of documents as Server-Sent Events, from a sync id on, without loss.
 *
 *     poll --> lane: where do deltas end? --> head
 *                                              |
 *     follower: a cursor < head, and it has read what it was told --> lane: a page for it
 *
 * Invariants
 *   1. What is told was read from the store, so it is on the disk. The cursor of a follower only
 *      grows, and all deltas that it wants before the cursor were told to it, each once; or it was
 *      told that some of them have gone.
 *   2. A follower that is slow is not read for: nothing waits for it but what its connection has.
 *   3. A page is in the memory of its follower, which stays until the page has come back. */
#include <detent/driver/loop.h>
#include <string.h>

#include "api/api_internal.h"
#include "api/document_pages.h"
#include "api/stream_feed.h"
#include "base/memory.h"

#define POLL_SPAN  (100 * DET_MILLISECOND)
#define PAGE_ROWS  512
#define PAGE_BYTES (64 << 10)

struct follower {
    struct api_feed feed; /* first */
    struct det_list node;
    struct api_deltas *deltas;
    struct det_document_query query; /* its texts are of the call */
    uint64_t cursor;
    uint64_t look;    /* the first one that was begun after it came */
    bool is_waiting;  /* for where deltas end */
    bool is_catching; /* its page is on its way */
    bool is_gone;
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
    struct det_list followers, gone;
    size_t count;
    struct det_timer poll;
    /* Where they end. */
    struct api_lane_job job;
    struct det_document_position position;
    int result;
    uint64_t head;
    uint64_t looks; /* that were begun */
    bool has_head, is_looking;
};

static struct follower *follower_of(struct api_feed *feed)
{
    return (struct follower *)(void *)feed;
}

/* In a lane. */

/* SSE has lines, and JSON may have them where it has blanks. */
static void put_row(struct follower *follower, const struct det_delta *delta)
{
    struct det_buffer *text = &follower->text.text;
    size_t begin;

    det_buffer_format(text, "id: %llu\nevent: delta\ndata: ", (unsigned long long)delta->sync);
    begin = text->size;
    follower->text.needs_comma = false;
    api_delta_line(&follower->text, delta);
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
    put_row(follower, delta);
    follower->last = delta->sync;
    follower->count++;
    return det_buffer_status(&follower->text.text);
}

/* A reader of the store; NULL: `ret` says why not. */
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

static void reap(struct api_deltas *deltas)
{
    struct det_list *next;

    for (struct det_list *node = deltas->gone.next; node != &deltas->gone; node = next) {
        struct follower *follower = DET_CONTAINER(node, struct follower, node);

        next = node->next;
        if (follower->is_catching)
            continue;
        det_list_remove(node);
        det_json_writer_deinit(&follower->text);
        api_finish(follower->feed.call); /* Its memory is that of the call. */
    }
}

static void on_over(struct api_feed *feed)
{
    struct follower *follower = follower_of(feed);
    struct api_deltas *deltas = follower->deltas;

    follower->is_gone = true;
    det_list_remove(&follower->node);
    det_list_append(&deltas->gone, &follower->node);
    if (--deltas->count == 0)
        deltas->has_head = false;
    reap(deltas);
}

static void finish_page(void *argument);

static void feed(struct follower *follower)
{
    struct api_deltas *deltas = follower->deltas;

    if (follower->is_waiting || follower->is_catching || follower->is_gone ||
        follower->cursor >= deltas->head || api_feed_waiting(&follower->feed) > 0)
        return;
    follower->is_catching = true;
    follower->is_full = false;
    follower->count = 0;
    follower->query.after = follower->cursor;
    follower->query.limit = PAGE_ROWS;
    det_buffer_clear(&follower->text.text);
    follower->job =
        (struct api_lane_job){ .run = read_page, .done = finish_page, .argument = follower };
    api_lane_submit(deltas->api, API_READS, &follower->job);
}

static void tell_bootstrap(struct follower *follower)
{
    char text[96];
    unsigned long long latest = follower->position.latest;
    int size = snprintf(
        text, sizeof text, "id: %llu\nevent: bootstrap\ndata: {\"position\":%llu}\n\n", latest,
        latest);

    (void)api_feed_write(&follower->feed, text, (size_t)size);
    follower->cursor = latest;
}

static void send_page(struct follower *follower)
{
    const struct det_buffer *text = &follower->text.text;

    if (follower->cursor + 1 < follower->position.oldest) {
        tell_bootstrap(follower);
        return;
    }
    if (text->size && api_feed_write(&follower->feed, text->data, text->size) < 0)
        return;
    if (follower->is_full)
        follower->cursor = follower->last;
    else if (follower->position.latest > follower->cursor)
        follower->cursor = follower->position.latest;
}

static void finish_page(void *argument)
{
    struct follower *follower = argument;
    struct api_deltas *deltas = follower->deltas;

    follower->is_catching = false;
    if (follower->job.is_dropped)
        follower->result = DET_ERR_CLOSED;
    /* One that is dropped is over at once, and its memory with it. */
    if (follower->result < 0) {
        api_feed_drop(&follower->feed, "the store cannot be read");
    } else if (!follower->is_gone) {
        send_page(follower);
        feed(follower);
    }
    reap(deltas);
}

/* A sync id after the head was published by a page or by another node, or it belongs to another
 * store: a look that was begun after the follower came decides. */
static bool knows_where_to_begin(const struct follower *follower)
{
    const struct api_deltas *deltas = follower->deltas;

    return deltas->has_head &&
           (follower->cursor == UINT64_MAX || follower->cursor <= deltas->head ||
            deltas->looks >= follower->look);
}

static void greet(struct follower *follower)
{
    char text[48];
    int size;

    follower->is_waiting = false;
    if (follower->cursor > follower->deltas->head)
        follower->cursor = follower->deltas->head;
    size = snprintf(text, sizeof text, "{\"position\":%llu}", (unsigned long long)follower->cursor);
    (void)api_feed_tell(&follower->feed, "hello", text, (size_t)size);
}

static void look(struct api_deltas *deltas);

static void finish_position(void *argument)
{
    struct api_deltas *deltas = argument;
    struct det_list *next;
    bool is_early = false;

    deltas->is_looking = false;
    if (deltas->job.is_dropped || deltas->result < 0)
        return; /* It is tried again by the poll; nobody misses anything by it. */
    deltas->has_head = deltas->count > 0; /* All may have gone away meanwhile. */
    deltas->head = deltas->position.latest;
    for (struct det_list *node = deltas->followers.next; node != &deltas->followers; node = next) {
        struct follower *follower = DET_CONTAINER(node, struct follower, node);

        next = node->next;
        if (follower->is_waiting && knows_where_to_begin(follower))
            greet(follower);
        is_early |= follower->is_waiting;
        feed(follower);
    }
    reap(deltas);
    if (is_early)
        look(deltas);
}

static void look(struct api_deltas *deltas)
{
    if (deltas->is_looking)
        return;
    deltas->is_looking = true;
    deltas->looks++;
    deltas->job =
        (struct api_lane_job){ .run = read_position, .done = finish_position, .argument = deltas };
    api_lane_submit(deltas->api, API_TAIL, &deltas->job);
}

static void drop_all(struct api_deltas *deltas)
{
    struct det_list *next;

    for (struct det_list *node = deltas->followers.next; node != &deltas->followers; node = next) {
        next = node->next;
        api_feed_drop(&DET_CONTAINER(node, struct follower, node)->feed, "there is no memory left");
    }
}

static void on_poll(void *argument)
{
    struct api_deltas *deltas = argument;
    det_time next = det_loop_now(deltas->api->loop) + POLL_SPAN;

    if (!deltas->count || deltas->api->feeds.is_over)
        return;
    look(deltas);
    /* Nobody would look again: who follows comes back, and begins that anew. */
    if (det_loop_timer_set(deltas->api->loop, &deltas->poll, next) < 0)
        drop_all(deltas);
}

static void on_drained(struct api_feed *drained)
{
    feed(follower_of(drained));
}

/* Following. */

/* Behind what it wants to be told; what is not said leaves it as it is. */
static bool read_cursor(struct api_call *call, uint64_t *ret)
{
    const char *last = http_header(http_request(call->exchange), "last-event-id");

    if (!api_query_number(call, "after", 0, INT64_MAX, ret))
        return false;
    if (last && (det_parse_u64(det_view_text(last), ret) < 0 || *ret > INT64_MAX)) {
        api_fail(call, DET_ERR_INVALID, "'Last-Event-ID' is a sync id: a number");
        return false;
    }
    return true;
}

static bool read_query(struct api_call *call, struct follower *follower, uint64_t cursor)
{
    size_t limit;

    follower->cursor = cursor;
    if (!api_query_limit(call, &limit) || !api_documents_query(call, &follower->query))
        return false;
    if (call->api->address)
        return true;
    api_fail(call, DET_ERR_UNSUPPORTED, "there is no store here, and so no worker is on record");
    return false;
}

static void follow(struct api_call *call, uint64_t cursor)
{
    static const struct api_feed_ops ops = { on_drained, on_over };
    struct api_deltas *deltas = call->api->deltas;
    struct follower *follower = det_arena_alloc(&call->arena, sizeof *follower);

    if (follower)
        memset(follower, 0, sizeof *follower);
    else
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
    if (!follower || !read_query(call, follower, cursor) ||
        !api_feed_begin(&follower->feed, call, &ops)) {
        api_finish(call);
        return;
    }
    follower->deltas = deltas;
    follower->feed.position = &follower->cursor;
    follower->is_waiting = true;
    follower->look = deltas->looks + 1;
    det_json_writer_init(&follower->text, call->api->allocator);
    det_list_init(&follower->node);
    det_list_append(&deltas->followers, &follower->node);
    if (deltas->count++ == 0)
        on_poll(deltas);
    else if (knows_where_to_begin(follower)) {
        greet(follower);
        feed(follower);
    } else {
        look(deltas);
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
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
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
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    deltas->api = api;
    det_list_init(&deltas->followers);
    det_list_init(&deltas->gone);
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
