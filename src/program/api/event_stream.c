/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_stream.c - what happens, as Server-Sent Events: the log from a position on, without loss;
 * and what live_events.h has, as long as somebody listens.
 *
 *     runtime --notice--> pool: reads the log behind `head` --> tail: the newest rows as text
 *                                                                 |
 *     subscriber: a cursor in the log --- in the tail ------------+--> its connection
 *                                     \-- before it: the pool reads a page for it alone
 *
 * Invariants
 *   1. What is told of the log was read from the store, so it is on the disk; rows are told in
 *      order, each once: the cursor of a subscriber only grows, and nothing behind it is left out.
 *   2. The tail has all rows of the log from its first one up to `head`.
 *   3. A reader that is slow is not fed: what waits for it is in its connection, which is counted,
 *      and nowhere else. When more rows than `sse_queue` lie before it, and it has
 *      taken none of them for a while, it is told so and cut off; its last id is where it goes on.
 *   4. While nobody reads the log there is no tail: the next one who comes looks where it ends. */
#include <detent/driver/loop.h>
#include <detent/tool/store.h>
#include <string.h>

#include "api/api_internal.h"
#include "api/live_events.h"
#include "api/log_reader.h"
#include "api/stream_feed.h"
#include "base/memory.h"
#include "daemon/telemetry.h"

#define TAIL_ROWS  4096
#define TAIL_BYTES (4 << 20)
#define PAGE_ROWS  256
#define FEED_MAX   (64 << 10)              /* that a reader is given to read */
#define POLL_SPAN  (500 * DET_MILLISECOND) /* of a store that others write to */
#define SLOW_SPAN  (5 * DET_SECOND)        /* in which a reader that is far behind takes nothing */

struct subscriber {
    struct api_feed feed; /* first */
    struct det_list node;
    struct api_listener listener;
    struct api_events *events;
    uint64_t cursor;
    det_time fed_at;          /* monotonic: when it took something, or had all */
    const char *machine, *id; /* NULL: any */
    bool wants_log;
    bool is_waiting;  /* for where it begins */
    bool is_catching; /* a page for it is on its way */
    bool is_gone;
};

struct api_events {
    struct api *api;
    struct det_list subscribers, gone;
    size_t count;
    atomic_size_t readers; /* those who want the log */
    struct det_list tail;
    size_t tail_rows, tail_bytes;
    uint64_t head;
    uint64_t base; /* the tail has all rows behind this position */
    bool has_head, is_reading, has_news, is_over;
    bool is_shared;
    atomic_bool is_noticed;
    struct det_post notice;
    struct det_timer poll;
    struct api_news news;
};

/* On the http thread. */

static struct subscriber *subscriber_of(struct api_feed *feed)
{
    return (struct subscriber *)(void *)feed;
}

static void finish_page(void *argument);

/* Less than what would cut it off. */
static size_t feed_max(const struct api_events *events)
{
    size_t most = events->api->http.limits.unread_max / 4;

    return most && most < FEED_MAX ? most : FEED_MAX;
}

/* NULL: no memory; it is tried again by the poll. */
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

/* A page for one reader is what it takes at once, with room for the frames around rows. */
static bool ask_page(
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

/* Whether there is a row at its position, or after it. */
static bool ask_whether_known(struct subscriber *subscriber)
{
    struct api_page *page = page_new(subscriber->events, subscriber, subscriber->cursor - 1, 1);

    if (!page)
        return false;
    page->is_probe = true;
    api_page_read(page, finish_page);
    return true;
}

static void read_on(struct api_events *events)
{
    if (events->is_reading || events->is_over || !atomic_load(&events->readers))
        return;
    events->is_reading = ask_page(events, NULL, events->head, !events->has_head);
    events->has_news = !events->is_reading;
}

/* Nobody reads it any more, so nobody reads on: where the log ends is looked for again by the next
 * one who comes. */
static void forget_tail(struct api_events *events)
{
    api_rows_free(events->api, &events->tail);
    events->tail_rows = events->tail_bytes = 0;
    events->has_head = false;
}

/* Those that are gone, and have no page on its way. */
static void reap(struct api_events *events)
{
    struct det_list *next;

    for (struct det_list *node = events->gone.next; node != &events->gone; node = next) {
        struct subscriber *subscriber = DET_CONTAINER(node, struct subscriber, node);

        next = node->next;
        if (subscriber->is_catching)
            continue;
        det_list_remove(node);
        api_finish(subscriber->feed.call); /* Its memory is that of the call. */
    }
}

static void on_over(struct api_feed *feed)
{
    struct subscriber *subscriber = subscriber_of(feed);
    struct api_events *events = subscriber->events;

    subscriber->is_gone = true;
    det_list_remove(&subscriber->node);
    det_list_append(&events->gone, &subscriber->node);
    events->count--;
    if (subscriber->wants_log && atomic_fetch_sub(&events->readers, 1) == 1)
        forget_tail(events);
    api_news_leave(&events->news, &subscriber->listener);
    reap(events);
}

static bool is_wanted(const struct subscriber *subscriber, const struct api_row *row)
{
    return (!subscriber->machine || strcmp(subscriber->machine, row->machine) == 0) &&
           (!subscriber->id || strcmp(subscriber->id, row->id) == 0);
}

/* A row that is longer than all that it is given at once comes alone. */
static bool takes(const struct subscriber *subscriber, size_t size)
{
    size_t waiting = api_feed_waiting(&subscriber->feed);

    return waiting == 0 || waiting + size <= feed_max(subscriber->events);
}

/* False: it takes no more now, or is gone. Rows that share a position are not parted. */
static bool send_row(struct subscriber *subscriber, const struct api_row *row)
{
    if (row->position != subscriber->cursor && is_wanted(subscriber, row) &&
        !takes(subscriber, row->size))
        return false;
    if (is_wanted(subscriber, row) && api_feed_write(&subscriber->feed, row->text, row->size) < 0)
        return false;
    subscriber->cursor = row->position;
    subscriber->fed_at = det_loop_now(subscriber->events->api->loop);
    return true;
}

/* What a page of its own has brought. What it does not take, since something else came before it,
 * is read again when it has taken that. */
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

static void greet(struct subscriber *subscriber)
{
    char text[48];
    int size = subscriber->wants_log ? snprintf(
                                           text, sizeof text, "{\"position\":%llu}",
                                           (unsigned long long)subscriber->cursor)
                                     : snprintf(text, sizeof text, "{\"position\":null}");

    (void)api_feed_tell(&subscriber->feed, "hello", text, (size_t)size);
    api_news_join(&subscriber->events->news, &subscriber->listener);
}

static void begin_at(struct subscriber *subscriber, uint64_t position)
{
    subscriber->cursor = position;
    subscriber->is_waiting = false;
    subscriber->fed_at = det_loop_now(subscriber->events->api->loop);
    greet(subscriber);
}

/* Chooses where it begins. A position after the head was published by another node or by a page of
 * the log, or it belongs to another log: hello says where this one ends. */
static void place_subscriber(struct subscriber *subscriber)
{
    uint64_t head = subscriber->events->head;

    if (subscriber->cursor == UINT64_MAX)
        begin_at(subscriber, head);
    else if (subscriber->cursor <= head)
        begin_at(subscriber, subscriber->cursor);
    else
        subscriber->is_catching = ask_whether_known(subscriber);
}

static void take_probe(struct subscriber *subscriber, bool is_known)
{
    uint64_t head = subscriber->events->head;

    begin_at(subscriber, is_known || subscriber->cursor <= head ? subscriber->cursor : head);
}

/* From the tail, as far as it takes it. Rows are skipped to where it stands; the newest ones are
 * looked at from behind, where most readers are. */
static void feed(struct subscriber *subscriber)
{
    struct api_events *events = subscriber->events;
    uint32_t most = events->api->http.sse_queue;
    struct det_list *node = events->tail.previous;
    size_t behind = 0;

    if (!subscriber->wants_log || subscriber->is_catching || subscriber->is_gone)
        return;
    if (subscriber->is_waiting && events->has_head)
        place_subscriber(subscriber);
    if (subscriber->is_waiting || subscriber->is_gone)
        return;
    if (!is_in_tail(subscriber)) {
        if (api_feed_waiting(&subscriber->feed) == 0)
            subscriber->is_catching = ask_page(events, subscriber, subscriber->cursor, false);
        return;
    }
    for (; node != &events->tail &&
           DET_CONTAINER(node, struct api_row, node)->position > subscriber->cursor;
         node = node->previous)
        behind++;
    for (node = node->next; node != &events->tail; node = node->next) {
        if (!send_row(subscriber, DET_CONTAINER(node, struct api_row, node)))
            break;
        behind--;
    }
    if (behind > most && det_loop_now(events->api->loop) - subscriber->fed_at > SLOW_SPAN) {
        det_series_count(
            det_metrics_only(events->api->up->observe->metrics, DET_METRIC_SSE_DROPPED), 1);
        api_feed_drop(&subscriber->feed, "too slow");
        return;
    }
    if (behind > 0)
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
        feed(DET_CONTAINER(node, struct subscriber, node));
    }
    reap(events);
}

static void on_drained(struct api_feed *drained)
{
    feed(subscriber_of(drained));
}

/* The tail. */

static void shorten_tail(struct api_events *events)
{
    while (events->tail_rows > TAIL_ROWS || events->tail_bytes > TAIL_BYTES) {
        struct api_row *row = DET_CONTAINER(events->tail.next, struct api_row, node);

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
    events->head = page->next;
    shorten_tail(events);
}

static void finish_tail_page(struct api_events *events, struct api_page *page)
{
    events->is_reading = false;
    if (page->result < 0) {
        /* It is tried again by the poll; nobody misses anything by it. */
        events->has_news = true;
        api_rows_free(events->api, &page->rows);
        return;
    }
    if (page->is_first) {
        /* All who wanted it may have gone away meanwhile. */
        events->has_head = atomic_load(&events->readers) > 0;
        events->head = events->base = page->next;
    } else if (events->has_head)
        add_to_tail(events, page);
    else /* All who wanted it went away meanwhile. */
        api_rows_free(events->api, &page->rows);
    feed_all(events);
    if (page->is_first || page->is_full || events->has_news || !events->has_head)
        read_on(events);
}

static void finish_own_page(struct api_events *events, struct api_page *page)
{
    struct subscriber *subscriber = page->subscriber;

    subscriber->is_catching = false;
    if (page->result == 0 && !subscriber->is_gone && page->is_probe)
        take_probe(subscriber, page->next >= subscriber->cursor);
    else if (page->result == 0 && !subscriber->is_gone)
        send_page(subscriber, page);
    api_rows_free(events->api, &page->rows);
    if (page->result < 0)
        api_feed_drop(&subscriber->feed, "the store cannot be read");
    else
        feed(subscriber);
    reap(events);
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

/* News. */

static void take_notice(void *argument)
{
    struct api_events *events = argument;

    atomic_store(&events->is_noticed, false);
    events->has_news = true;
    read_on(events);
}

void api_notice(struct up *up)
{
    struct det_world *world = up->output.outer->world;
    struct api *api;

    if (!atomic_load_explicit(&up->listener, memory_order_relaxed))
        return;
    det_mutex_lock(world, up->listener_lock);
    api = up->listener;
    if (api && atomic_load_explicit(&api->events->readers, memory_order_relaxed) &&
        !atomic_exchange(&api->events->is_noticed, true))
        det_loop_post(api->loop, &api->events->notice);
    det_mutex_unlock(world, up->listener_lock);
}

/* Without a poll nobody would look again: readers are dropped, and come back. */
static void set_poll(struct api_events *events)
{
    det_time next = det_loop_now(events->api->loop) + POLL_SPAN;
    struct det_list *node, *after;

    if (det_loop_timer_set(events->api->loop, &events->poll, next) == 0)
        return;
    for (node = events->subscribers.next; node != &events->subscribers; node = after) {
        after = node->next;
        api_feed_drop(
            &DET_CONTAINER(node, struct subscriber, node)->feed, "there is no memory left");
    }
}

/* Others may have written, and what failed is tried again. */
static void on_poll(void *argument)
{
    struct api_events *events = argument;

    if (events->is_over || !events->count)
        return;
    if (events->is_shared || !events->has_head || events->has_news)
        read_on(events);
    feed_all(events);
    api_news_look(&events->news);
    set_poll(events);
}

/* Subscribing. */

static bool read_topics(struct api_call *call, struct subscriber *subscriber)
{
    const char *topics = api_query(call, "topics");

    subscriber->wants_log = !topics || strstr(topics, "log");
    subscriber->listener.wants_tasks = !topics || strstr(topics, "tasks");
    if (!topics || strcmp(topics, "log") == 0 || strcmp(topics, "tasks") == 0 ||
        strcmp(topics, "log,tasks") == 0 || strcmp(topics, "tasks,log") == 0)
        return true;
    api_fail(call, DET_ERR_INVALID, "'topics' is log, tasks, or log,tasks");
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
        api_fail(call, DET_ERR_INVALID, "'Last-Event-ID' is a position of the log: a number");
        return false;
    }
    return true;
}

static void join(struct subscriber *subscriber)
{
    struct api_events *events = subscriber->events;
    bool is_first = events->count++ == 0;

    subscriber->fed_at = det_loop_now(events->api->loop);
    subscriber->is_waiting = subscriber->wants_log;
    det_list_append(&events->subscribers, &subscriber->node);
    if (subscriber->wants_log)
        atomic_fetch_add(&events->readers, 1);
    else
        greet(subscriber);
    read_on(events);
    feed(subscriber);
    if (is_first) /* At last: it may drop this one. */
        set_poll(events);
}

void api_get_events(struct api_call *call)
{
    static const struct api_feed_ops ops = { on_drained, on_over };
    struct subscriber *subscriber = det_arena_alloc(&call->arena, sizeof *subscriber);

    if (!subscriber)
        api_fail(call, DET_ERR_NO_MEMORY, "there is no memory left");
    if (!subscriber || !read_topics(call, subscriber) || !read_cursor(call, subscriber) ||
        !api_query_id(call, "id", &subscriber->id) ||
        !api_feed_begin(&subscriber->feed, call, &ops)) {
        api_finish(call);
        return;
    }
    det_list_init(&subscriber->node);
    det_list_init(&subscriber->listener.node);
    subscriber->listener.feed = &subscriber->feed;
    subscriber->wants_log = subscriber->wants_log && call->api->address;
    subscriber->feed.position = subscriber->wants_log ? &subscriber->cursor : NULL;
    subscriber->events = call->api->events;
    subscriber->machine = api_query(call, "machine");
    join(subscriber);
}

/* Opening and closing. */

int api_events_open(struct api *api, struct det_error *reterr)
{
    struct api_events *events = DET_NEW(api->allocator, struct api_events);

    if (!events)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "there is no memory left");
    events->api = api;
    det_list_init(&events->subscribers);
    det_list_init(&events->gone);
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
