/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_stream.c - Server-Sent Events: the log from a position on, without loss, and the events
 * of live_events.c.
 *
 *     runtime --notice--> lane: reads the log after `head` --> tail: the newest rows as text
 *                                                                |
 *     subscriber: a cursor in the log --- in the tail -----------+--> its connection
 *                                     \-- before it: a lane reads a page for it alone
 *
 * Invariants
 *   1. Every published row was read from the store, so it is durable. Rows are sent in order, each
 *      once: the cursor of a subscriber only grows, and every matching row before it was sent.
 *   2. The tail has all rows of the log from its first one up to `head`.
 *   3. A slow subscriber is not fed: its unread bytes are only in its connection, and counted. It
 *      is dropped when more than `sse_queue` rows are ahead of its cursor and it has taken none for
 *      SLOW_SPAN; it reconnects with its last id.
 *   4. There is no tail while no subscriber reads the log: the next one finds the end of the log
 *      first. */
#include <detent/driver/loop.h>
#include <detent/tool/store.h>
#include <string.h>

#include "api/api_internal.h"
#include "api/live_events.h"
#include "api/log_reader.h"
#include "api/stream_feed.h"
#include "base/assert.h"
#include "base/memory.h"
#include "daemon/telemetry.h"

#define TAIL_ROWS  4096
#define TAIL_BYTES (4 << 20)
#define PAGE_ROWS  256
#define FEED_MAX   (64 << 10)              /* limit of unread bytes of a subscriber */
#define POLL_SPAN  (500 * DET_MILLISECOND) /* of a store that other processes write to */
#define SLOW_SPAN  (5 * DET_SECOND) /* a subscriber that takes nothing for so long is dropped */

struct subscriber {
    struct api_feed feed; /* first */
    struct det_list node;
    struct api_listener listener;
    struct api_events *events;
    uint64_t cursor;
    det_time fed_at;          /* monotonic: when it last took a row or had all rows */
    const char *machine, *id; /* NULL: any */
    bool wants_log;
    bool is_waiting; /* its start is not known yet */
};

struct api_events {
    struct api *api;
    struct det_list subscribers;
    size_t count;
    atomic_size_t readers; /* subscribers of the log */
    struct det_list tail;
    size_t tail_rows, tail_bytes;
    uint64_t head;
    uint64_t base; /* the tail has all rows after this position */
    bool has_head, is_reading, has_news, is_over;
    bool is_shared;
    atomic_bool is_noticed;
    struct det_post notice;
    struct det_timer poll;
    struct api_news news;
};

/* On the http thread. */

/* See invariant 2. */
static void assert_tail(const struct api_events *events)
{
    det_assert(det_list_is_empty(&events->tail) == (events->tail_rows == 0));
    det_assert((events->tail_rows == 0) == (events->tail_bytes == 0));
    det_assert(!events->has_head || events->base <= events->head);
}

static struct subscriber *subscriber_of(struct api_feed *feed)
{
    return (struct subscriber *)(void *)feed;
}

static void finish_page(void *argument);

/* Less than the limit at which the connection is cut. */
static size_t feed_max(const struct api_events *events)
{
    size_t most = events->api->http.limits.unread_max / 4;

    return most && most < FEED_MAX ? most : FEED_MAX;
}

/* NULL: no memory; the poll retries. */
static struct api_page *page_new(
    struct api_events *events, struct subscriber *subscriber, uint64_t after, size_t rows)
{
    struct api_page *page = DET_NEW(events->api->allocator, struct api_page);

    if (!page)
        return NULL;
    page->api = events->api;
    page->events = events;
    page->subscriber = subscriber;
    page->query = (struct det_store_log_query){ .after = after, .limit = rows };
    page->bytes = API_PAGE_BYTES;
    return page;
}

/* A page for one subscriber has the size that it takes at once, less the framing of rows. */
static bool request_page(
    struct api_events *events, struct subscriber *subscriber, uint64_t after, bool is_first)
{
    struct api_page *page = page_new(events, subscriber, after, PAGE_ROWS);

    if (!page)
        return false;
    page->is_first = is_first;
    if (subscriber) {
        page->bytes = feed_max(events) / 8 * 7;
        page->query.machine = subscriber->machine;
        page->query.id = subscriber->id;
        page->query.budget = (size_t)PAGE_ROWS * 64;
    }
    api_page_read(page, finish_page);
    return true;
}

/* Finds out whether there is a row at the position of the subscriber, or after it. */
static bool request_probe(struct subscriber *subscriber)
{
    struct api_page *page = page_new(subscriber->events, subscriber, subscriber->cursor - 1, 1);

    if (!page)
        return false;
    page->is_probe = true;
    api_page_read(page, finish_page);
    return true;
}

static void read_tail(struct api_events *events)
{
    if (events->is_reading || events->is_over || !atomic_load(&events->readers))
        return;
    events->is_reading = request_page(events, NULL, events->head, !events->has_head);
    events->has_news = !events->is_reading;
}

/* Called when the last subscriber has left. The next one finds the end of the log again. */
static void forget_tail(struct api_events *events)
{
    api_rows_free(events->api, &events->tail);
    events->tail_rows = events->tail_bytes = 0;
    events->has_head = false;
    assert_tail(events);
}

static void on_over(struct api_feed *feed)
{
    struct subscriber *subscriber = subscriber_of(feed);
    struct api_events *events = subscriber->events;

    det_assert(events->count > 0);
    det_assert(!subscriber->wants_log || atomic_load(&events->readers) > 0);
    det_list_remove(&subscriber->node);
    events->count--;
    if (subscriber->wants_log && atomic_fetch_sub(&events->readers, 1) == 1)
        forget_tail(events);
    api_news_leave(&events->news, &subscriber->listener);
}

static bool is_wanted(const struct subscriber *subscriber, const struct api_row *row)
{
    return (!subscriber->machine || strcmp(subscriber->machine, row->machine) == 0) &&
           (!subscriber->id || strcmp(subscriber->id, row->id) == 0);
}

/* A row larger than the limit is sent alone. */
static bool has_room(const struct subscriber *subscriber, size_t size)
{
    size_t waiting = api_feed_waiting(&subscriber->feed);

    return waiting == 0 || waiting + size <= feed_max(subscriber->events);
}

/* False: it has no room now, or is gone. Rows that share a position are not separated. */
static bool send_row(struct subscriber *subscriber, const struct api_row *row)
{
    det_assert(row->position >= subscriber->cursor);
    if (row->position != subscriber->cursor && is_wanted(subscriber, row) &&
        !has_room(subscriber, row->size))
        return false;
    if (is_wanted(subscriber, row) && api_feed_write(&subscriber->feed, row->text, row->size) < 0)
        return false;
    subscriber->cursor = row->position;
    subscriber->fed_at = det_loop_now(subscriber->events->api->loop);
    return true;
}

/* Sends a page. Rows that do not fit, since other events came first, are read again later. */
static void send_page(struct subscriber *subscriber, const struct api_page *page)
{
    DET_LIST_EACH(node, &page->rows)
    {
        if (!send_row(subscriber, DET_CONTAINER(node, struct api_row, node)))
            return;
    }
    if (page->next > subscriber->cursor)
        subscriber->cursor = page->next;
}

static bool is_in_tail(const struct subscriber *subscriber)
{
    return subscriber->cursor >= subscriber->events->base;
}

static void send_hello(struct subscriber *subscriber)
{
    uint64_t position = subscriber->wants_log ? subscriber->cursor : UINT64_MAX;

    (void)api_feed_report_number(&subscriber->feed, "hello", "position", position);
    api_news_join(&subscriber->events->news, &subscriber->listener);
}

static void begin_at(struct subscriber *subscriber, uint64_t position)
{
    det_assert(subscriber->is_waiting && position != UINT64_MAX);
    subscriber->cursor = position;
    subscriber->is_waiting = false;
    subscriber->fed_at = det_loop_now(subscriber->events->api->loop);
    send_hello(subscriber);
}

/* Chooses where the stream begins. A cursor after the head came from another node or from a page of
 * the log, or it belongs to another log: then hello reports the end of this one. */
static void place_subscriber(struct subscriber *subscriber)
{
    uint64_t head = subscriber->events->head;

    if (subscriber->cursor == UINT64_MAX)
        begin_at(subscriber, head);
    else if (subscriber->cursor <= head)
        begin_at(subscriber, subscriber->cursor);
    else
        subscriber->feed.is_catching = request_probe(subscriber);
}

static void take_probe(struct subscriber *subscriber, bool is_known)
{
    uint64_t head = subscriber->events->head;

    begin_at(subscriber, is_known || subscriber->cursor <= head ? subscriber->cursor : head);
}

/* Sends rows from the tail. Searches for the cursor from the newest row, where most subscribers
 * are. */
static void feed_subscriber(struct subscriber *subscriber)
{
    struct api_events *events = subscriber->events;
    uint32_t most = events->api->http.sse_queue;
    struct det_list *node = events->tail.previous;
    size_t ahead = 0;

    if (!subscriber->wants_log || subscriber->feed.is_catching)
        return;
    if (subscriber->is_waiting && events->has_head)
        place_subscriber(subscriber);
    if (subscriber->is_waiting)
        return;
    if (!is_in_tail(subscriber)) {
        if (api_feed_waiting(&subscriber->feed) == 0)
            subscriber->feed.is_catching =
                request_page(events, subscriber, subscriber->cursor, false);
        return;
    }
    for (; node != &events->tail &&
           DET_CONTAINER(node, struct api_row, node)->position > subscriber->cursor;
         node = node->previous)
        ahead++;
    for (node = node->next; node != &events->tail; node = node->next) {
        if (!send_row(subscriber, DET_CONTAINER(node, struct api_row, node)))
            break;
        ahead--;
    }
    if (ahead > most && det_loop_now(events->api->loop) - subscriber->fed_at > SLOW_SPAN) {
        det_series_count(
            det_metrics_only(up_observe(events->api->up)->metrics, DET_METRIC_SSE_DROPPED), 1);
        api_feed_drop(&subscriber->feed, "too slow");
        return;
    }
    if (ahead > 0)
        return;
    subscriber->fed_at = det_loop_now(events->api->loop);
    if (subscriber->cursor < events->head)
        subscriber->cursor = events->head;
}

static void feed_all(struct api_events *events)
{
    struct det_list *next;

    for (struct det_list *node = events->subscribers.next; node != &events->subscribers;
         node = next) {
        next = node->next;
        feed_subscriber(DET_CONTAINER(node, struct subscriber, node));
    }
}

static void on_drained(struct api_feed *drained)
{
    feed_subscriber(subscriber_of(drained));
}

/* The tail. */

static void trim_tail(struct api_events *events)
{
    while (events->tail_rows > TAIL_ROWS || events->tail_bytes > TAIL_BYTES) {
        struct api_row *row = DET_CONTAINER(events->tail.next, struct api_row, node);

        det_assert(events->tail_rows > 0 && events->tail_bytes >= row->memory);
        det_assert(row->position >= events->base);
        det_list_remove(&row->node);
        events->tail_rows--;
        events->tail_bytes -= row->memory;
        events->base = row->position;
        api_row_free(events->api, row);
    }
}

static void add_to_tail(struct api_events *events, struct api_page *page)
{
    struct det_list *node;

    while ((node = det_list_take(&page->rows))) {
        struct api_row *row = DET_CONTAINER(node, struct api_row, node);

        det_list_append(&events->tail, &row->node);
        events->tail_rows++;
        events->tail_bytes += row->memory;
    }
    det_assert(page->next >= events->head);
    events->head = page->next;
    trim_tail(events);
    assert_tail(events);
}

static void finish_tail_page(struct api_events *events, struct api_page *page)
{
    det_assert(events->is_reading);
    events->is_reading = false;
    if (page->result < 0) {
        /* The poll retries; no row is lost. */
        events->has_news = true;
        api_rows_free(events->api, &page->rows);
        return;
    }
    if (page->is_first) {
        /* All subscribers may have left meanwhile. */
        events->has_head = atomic_load(&events->readers) > 0;
        events->head = events->base = page->next;
    } else if (events->has_head)
        add_to_tail(events, page);
    else /* All subscribers left meanwhile. */
        api_rows_free(events->api, &page->rows);
    feed_all(events);
    if (page->is_first || page->is_full || events->has_news || !events->has_head)
        read_tail(events);
}

static void finish_own_page(struct api_events *events, struct api_page *page)
{
    struct subscriber *subscriber = page->subscriber;
    bool is_open = api_feed_page_done(&subscriber->feed);

    if (is_open && page->result == 0 && page->is_probe)
        take_probe(subscriber, page->next >= subscriber->cursor);
    else if (is_open && page->result == 0)
        send_page(subscriber, page);
    api_rows_free(events->api, &page->rows);
    if (is_open && page->result < 0)
        api_feed_drop(&subscriber->feed, "the store cannot be read");
    else if (is_open)
        feed_subscriber(subscriber);
}

static void finish_page(void *argument)
{
    struct api_page *page = argument;
    struct api_events *events = page->events;

    events->is_shared |= page->is_shared;
    if (page->job.is_dropped)
        page->result = DET_ERR_CLOSED;
    if (page->subscriber)
        finish_own_page(events, page);
    else
        finish_tail_page(events, page);
    DET_DELETE(events->api->allocator, page);
}

/* Notices of commits. */

static void take_notice(void *argument)
{
    struct api_events *events = argument;

    atomic_store(&events->is_noticed, false);
    events->has_news = true;
    read_tail(events);
}

void api_notice(struct up *up)
{
    struct det_world *world = up_world(up);
    struct api *api;

    if (!atomic_load_explicit(&up_api_place(up)->listener, memory_order_relaxed))
        return;
    det_mutex_lock(world, up_api_place(up)->listener_lock);
    api = up_api_place(up)->listener;
    if (api && atomic_load_explicit(&api->events->readers, memory_order_relaxed) &&
        !atomic_exchange(&api->events->is_noticed, true))
        det_loop_post(api->loop, &api->events->notice);
    det_mutex_unlock(world, up_api_place(up)->listener_lock);
}

/* Without the poll nothing is read again: subscribers are dropped, and reconnect. */
static void set_poll(struct api_events *events)
{
    det_time next = det_loop_now(events->api->loop) + POLL_SPAN;
    struct det_list *node, *after;

    if (det_loop_timer_set(events->api->loop, &events->poll, next) == 0)
        return;
    for (node = events->subscribers.next; node != &events->subscribers; node = after) {
        after = node->next;
        api_feed_drop(&DET_CONTAINER(node, struct subscriber, node)->feed, "out of memory");
    }
}

/* Other processes may have written, and failed reads are retried. */
static void on_poll(void *argument)
{
    struct api_events *events = argument;

    if (events->is_over || !events->count)
        return;
    if (events->is_shared || !events->has_head || events->has_news)
        read_tail(events);
    feed_all(events);
    api_news_refresh(&events->news);
    set_poll(events);
}

/* Subscribing. */

static bool read_topics(struct api_call *call, struct subscriber *subscriber)
{
    static const struct {
        const char *text;
        bool has_log, has_tasks;
    } forms[] = {
        { "log", true, false },
        { "tasks", false, true },
        { "log,tasks", true, true },
        { "tasks,log", true, true },
    };
    const char *topics = api_query(call, "topics");

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(topics ? topics : "log,tasks", forms[i].text) != 0)
            continue;
        subscriber->wants_log = forms[i].has_log;
        subscriber->listener.wants_tasks = forms[i].has_tasks;
        return true;
    }
    api_fail(call, DET_ERR_INVALID, "'topics' must be log, tasks, or log,tasks");
    return false;
}

static bool read_cursor(struct api_call *call, struct subscriber *subscriber)
{
    const char *last = http_header(http_request(call->exchange), "last-event-id");

    subscriber->cursor = UINT64_MAX;
    if (!api_query_number(call, "after", 0, INT64_MAX, &subscriber->cursor))
        return false;
    if (last && (det_parse_u64(det_view_text(last), &subscriber->cursor) < 0 ||
                 subscriber->cursor > INT64_MAX)) {
        api_fail(call, DET_ERR_INVALID, "'Last-Event-ID' must be a position of the log, a number");
        return false;
    }
    return true;
}

static void add_subscriber(struct subscriber *subscriber)
{
    struct api_events *events = subscriber->events;
    bool is_first = events->count++ == 0;

    det_assert(det_list_is_empty(&subscriber->node));
    subscriber->fed_at = det_loop_now(events->api->loop);
    subscriber->is_waiting = subscriber->wants_log;
    det_list_append(&events->subscribers, &subscriber->node);
    if (subscriber->wants_log)
        atomic_fetch_add(&events->readers, 1);
    else
        send_hello(subscriber);
    read_tail(events);
    feed_subscriber(subscriber);
    if (is_first) /* Last, since it may drop this subscriber. */
        set_poll(events);
}

void api_get_events(struct api_call *call)
{
    static const struct api_feed_ops ops = { .drained = on_drained, .over = on_over };
    struct subscriber *subscriber = det_arena_alloc(&call->arena, sizeof *subscriber);

    if (!subscriber)
        api_fail(call, DET_ERR_NO_MEMORY, "out of memory");
    if (!subscriber || !read_topics(call, subscriber) || !read_cursor(call, subscriber) ||
        !api_query_id(call, "id", &subscriber->id) ||
        !api_feed_begin(&subscriber->feed, call, &ops)) {
        api_finish(call);
        return;
    }
    det_list_init(&subscriber->node);
    det_list_init(&subscriber->listener.node);
    subscriber->listener.feed = &subscriber->feed;
    subscriber->wants_log = subscriber->wants_log && call->api->source.address;
    subscriber->feed.position = subscriber->wants_log ? &subscriber->cursor : NULL;
    subscriber->events = call->api->events;
    subscriber->machine = api_query(call, "machine");
    add_subscriber(subscriber);
}

/* Opening and closing. */

int api_events_open(struct api *api, struct det_error *reterr)
{
    struct api_events *events = DET_NEW(api->allocator, struct api_events);

    if (!events)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    events->api = api;
    det_list_init(&events->subscribers);
    det_list_init(&events->tail);
    events->notice = (struct det_post){ .run = take_notice, .argument = events };
    events->poll = (struct det_timer){ .run = on_poll, .argument = events };
    api->events = events;
    api_news_init(&events->news, api, feed_max(events));
    api_feeds_open(api);
    return 0;
}

void api_events_end(struct api *api)
{
    api->events->is_over = true;
    api_news_end(&api->events->news);
    api_feeds_end(api);
}

void api_events_close(struct api *api)
{
    struct api_events *events = api->events;

    if (!events)
        return;
    api_rows_free(events->api, &events->tail);
    api_news_deinit(&events->news);
    DET_DELETE(api->allocator, events);
    api->events = NULL;
}
