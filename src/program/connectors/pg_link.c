/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pg_link.c - libpq without blocking calls: each wait ends soon after a cancel of the stage. */
#include "connectors/pg_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"

/* The longest time until a cancel is seen. */
#define LOOK_MS 50
/* Limit for the server to accept a connection. */
#define CONNECT_MAX (10 * DET_SECOND)

static const char *after_scheme(const char *url)
{
    if (strncmp(url, "postgres:", 9) == 0)
        return url + 9;
    return strncmp(url, "postgresql:", 11) == 0 ? url + 11 : NULL;
}

/* The driver of stores would configure a session for its own tables, but not that of a pooler. */
static char *own_url(const struct det_allocator *allocator, const char *url)
{
    const char *rest = after_scheme(url);
    struct det_buffer text;
    char *copy = NULL;

    det_buffer_init(&text, allocator);
    det_buffer_format(&text, "%s%cpooler=yes", rest, strchr(rest, '?') ? '&' : '?');
    if (det_buffer_status(&text) == 0)
        copy = det_string_copy(allocator, det_buffer_text(&text));
    det_buffer_deinit(&text);
    return copy;
}

static int parse_url(
    struct postgres_url *ret, const struct det_allocator *allocator, const char *url,
    char **ret_text, struct det_error *reterr)
{
    struct det_store_options options = { .timeout = CONNECT_MAX };
    int r;

    if (!after_scheme(url))
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "not the URL of a PostgreSQL database; use for example postgres://user@host/database");
    *ret_text = own_url(allocator, url);
    if (!*ret_text)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    r = det_postgres_url_init(ret, *ret_text, &options, reterr);
    if (r < 0) {
        det_free_string(allocator, *ret_text);
        *ret_text = NULL;
    }
    return r;
}

static const char *find_option(const struct postgres_url *url, const char *keyword)
{
    for (size_t i = 0; url->keywords[i]; i++)
        if (strcmp(url->keywords[i], keyword) == 0)
            return url->values[i];
    return NULL;
}

int pg_link_check_url(const char *url, struct det_error *reterr)
{
    struct postgres_url parsed;
    char *text = NULL;
    bool has_password;
    int r;

    r = parse_url(&parsed, NULL, url, &text, reterr);
    if (r < 0)
        return r;
    has_password = find_option(&parsed, "password") != NULL;
    det_postgres_url_deinit(&parsed);
    det_free_string(NULL, text);
    if (!has_password)
        return 0;
    return det_error_set(
        reterr, DET_ERR_INVALID,
        "the URL has a password: remove it, and add password_file: or password_environment:");
}

int pg_link_init(
    struct pg_link *link, struct det_stage_call *call, const char *url, const char *secret,
    struct det_error *reterr)
{
    size_t count = 0;
    int r;

    *link = (struct pg_link){ .call = call };
    r = parse_url(&link->url, call->allocator, url, &link->url_text, reterr);
    if (r < 0 || !*secret)
        return r;
    link->secret = det_string_copy(call->allocator, secret);
    if (!link->secret) {
        pg_link_deinit(link, call->allocator);
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory");
    }
    while (link->url.keywords[count])
        count++;
    det_assert(count < POSTGRES_OPTIONS_MAX - 1);
    link->url.keywords[count] = "password";
    link->url.values[count] = link->secret;
    return 0;
}

void pg_link_deinit(struct pg_link *link, const struct det_allocator *allocator)
{
    pg_link_disconnect(link);
    if (link->url_text)
        det_postgres_url_deinit(&link->url);
    if (link->secret)
        explicit_bzero(link->secret, strlen(link->secret));
    det_free_string(allocator, link->secret);
    det_free_string(allocator, link->url_text);
    *link = (struct pg_link){ 0 };
}

void pg_link_disconnect(struct pg_link *link)
{
    PQfinish(link->pq);
    link->pq = NULL;
}

static void keep_text(struct pg_link *link, const char *text)
{
    det_postgres_url_scrub(&link->url, text, link->text, sizeof link->text);
}

/* 0; DET_ERR_CANCELLED; DET_ERR_TIMEOUT at the (monotonic) deadline. */
static int wait_socket(struct pg_link *link, bool is_writing, det_time deadline)
{
    struct pollfd entry = { .fd = PQsocket(link->pq), .events = POLLIN };

    if (is_writing)
        entry.events = POLLIN | POLLOUT;
    for (;;) {
        int count = poll(&entry, 1, LOOK_MS);

        if (count > 0)
            return 0;
        if (count < 0 && errno != EINTR)
            return DET_ERR_IO;
        if (det_stage_is_cancelled(link->call))
            return DET_ERR_CANCELLED;
        if (det_world_now(link->call->world, DET_CLOCK_MONOTONIC) >= deadline)
            return DET_ERR_TIMEOUT;
    }
}

static void ignore_notice(void *argument, const PGresult *result)
{
    (void)argument;
    (void)result;
}

static int shake_hands(struct pg_link *link)
{
    det_time deadline = det_world_now(link->call->world, DET_CLOCK_MONOTONIC) + CONNECT_MAX;

    for (;;) {
        PostgresPollingStatusType status = PQconnectPoll(link->pq);
        int r;

        if (status == PGRES_POLLING_OK)
            return 0;
        if (status == PGRES_POLLING_FAILED || PQsocket(link->pq) < 0)
            return DET_ERR_IO;
        r = wait_socket(link, status == PGRES_POLLING_WRITING, deadline);
        if (r < 0)
            return r;
    }
}

enum pg_outcome pg_link_connect(struct pg_link *link)
{
    int r;

    pg_link_disconnect(link);
    link->pq = PQconnectStartParams(link->url.keywords, link->url.values, 0);
    if (!link->pq) {
        keep_text(link, "out of memory");
        return PG_LOST;
    }
    (void)PQsetNoticeReceiver(link->pq, ignore_notice, NULL);
    r = PQstatus(link->pq) == CONNECTION_BAD ? DET_ERR_IO : shake_hands(link);
    if (r == 0 && PQsetnonblocking(link->pq, 1) == 0)
        return PG_DONE;
    keep_text(link, r == DET_ERR_TIMEOUT ? "the server does not answer" : PQerrorMessage(link->pq));
    pg_link_disconnect(link);
    return r == DET_ERR_CANCELLED ? PG_CANCELLED : PG_LOST;
}

/* By the class of the SQLSTATE, https://www.postgresql.org/docs/current/errcodes-appendix.html */
static enum pg_outcome outcome_of(const struct pg_link *link, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    if (PQstatus(link->pq) == CONNECTION_BAD || !state)
        return PG_LOST;
    if (strncmp(state, "57P", 3) == 0 || strncmp(state, "08", 2) == 0)
        return PG_LOST;
    if (strncmp(state, "40", 2) == 0 || strcmp(state, "55P03") == 0 || strncmp(state, "53", 2) == 0)
        return PG_RETRY;
    if (strncmp(state, "22", 2) == 0 || strncmp(state, "23", 2) == 0 || strcmp(state, "54000") == 0)
        return PG_DATA;
    return PG_FATAL;
}

static int flush_out(struct pg_link *link)
{
    for (;;) {
        int r = PQflush(link->pq);

        if (r <= 0)
            return r < 0 ? DET_ERR_IO : 0;
        r = wait_socket(link, true, DET_NEVER);
        if (r < 0)
            return r;
        /* The server may wait for us to read. */
        if (!PQconsumeInput(link->pq))
            return DET_ERR_IO;
    }
}

/* The next result; NULL at the end of the exchange. */
static int next_result(struct pg_link *link, PGresult **ret)
{
    while (PQisBusy(link->pq)) {
        int r = wait_socket(link, false, DET_NEVER);

        if (r < 0)
            return r;
        if (!PQconsumeInput(link->pq))
            return DET_ERR_IO;
    }
    *ret = PQgetResult(link->pq);
    return 0;
}

static int send_copied(struct pg_link *link, const struct det_view *copied)
{
    size_t part, sent = 0;
    int r;

    while (sent < copied->size) {
        part = copied->size - sent < 65536 ? copied->size - sent : 65536;
        if (PQputCopyData(link->pq, copied->data + sent, (int)part) < 0)
            return DET_ERR_IO;
        sent += part;
        r = flush_out(link);
        if (r < 0)
            return r;
    }
    if (PQputCopyEnd(link->pq, NULL) < 0)
        return DET_ERR_IO;
    return flush_out(link);
}

/* Keeps the first failure. */
static void note_failure(struct pg_link *link, const PGresult *result, enum pg_outcome *outcome)
{
    if (*outcome != PG_DONE)
        return;
    *outcome = outcome_of(link, result);
    keep_text(link, PQresultErrorMessage(result));
}

static int take_results(
    struct pg_link *link, const struct det_view *copied, PGresult **kept, enum pg_outcome *outcome)
{
    PGresult *result = NULL;
    int r;

    while ((r = next_result(link, &result)) == 0 && result) {
        ExecStatusType status = PQresultStatus(result);

        if (status == PGRES_TUPLES_OK) {
            PQclear(*kept);
            *kept = result;
            continue;
        }
        if (status == PGRES_COPY_IN)
            r = copied ? send_copied(link, copied) : DET_ERR_IO;
        else if (status != PGRES_COMMAND_OK && status != PGRES_EMPTY_QUERY)
            note_failure(link, result, outcome);
        PQclear(result);
        if (r < 0)
            break;
    }
    return r;
}

enum pg_outcome pg_link_run(
    struct pg_link *link, const char *statements, const struct det_view *copied, PGresult **ret)
{
    enum pg_outcome outcome = PG_DONE;
    PGresult *kept = NULL;
    int r;

    det_assert(link->pq);
    r = PQsendQuery(link->pq, statements) ? flush_out(link) : DET_ERR_IO;
    if (r == 0)
        r = take_results(link, copied, &kept, &outcome);
    if (r < 0 && outcome == PG_DONE) {
        keep_text(link, PQerrorMessage(link->pq));
        outcome = r == DET_ERR_CANCELLED ? PG_CANCELLED : PG_LOST;
    }
    if (r < 0 || outcome == PG_LOST)
        pg_link_disconnect(link);
    if (ret && outcome == PG_DONE)
        *ret = kept;
    else
        PQclear(kept);
    return outcome;
}
