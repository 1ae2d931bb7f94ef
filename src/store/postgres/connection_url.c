/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* connection_url.c - turns the URL of a store into parameters of libpq.
 *
 * Two parameters belong to this driver and are removed: `schema` and `pooler`. All others are
 * libpq's and override the defaults of this driver. A connection pooler has no sessions, so no
 * session is configured. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "store/postgres/postgres.h"

#define URL_MAX 4096

/* Settings for plans that look up each row by its key, in the given order, from the first execution
 * on: also before the server has statistics of the tables. */
#define PLANS                                                                          \
    "-c enable_hashjoin=off -c enable_mergejoin=off -c enable_seqscan=off -c jit=off " \
    "-c plan_cache_mode=force_generic_plan"

static bool is_schema(struct det_view name)
{
    if (name.size == 0 || name.size > POSTGRES_NAME_MAX ||
        (name.data[0] >= '0' && name.data[0] <= '9'))
        return false;
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];

        if (c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9'))
            return false;
    }
    /* The server reserves these names. */
    return name.size < 3 || memcmp(name.data, "pg_", 3) != 0;
}

/* One of this driver's parameters: 1; another one: 0. */
static int take_own(struct postgres_url *url, struct det_view pair, struct det_error *reterr)
{
    const char *equals = memchr(pair.data, '=', pair.size);
    struct det_view key, value;

    if (!equals)
        return 0;
    key = det_view_of(pair.data, (size_t)(equals - pair.data));
    value = det_view_of(equals + 1, pair.size - key.size - 1);
    if (det_view_is(key, "schema")) {
        if (!is_schema(value))
            return det_error_set(
                reterr, DET_ERR_INVALID,
                "schema=%.*s in the URL is not a name of at most 63 letters a-z, digits and _",
                (int)value.size, value.data);
        memcpy(url->schema, value.data, value.size);
        url->schema[value.size] = 0;
        return 1;
    }
    if (det_view_is(key, "pooler")) {
        url->is_pooled = det_view_is(value, "yes");
        if (!url->is_pooled && !det_view_is(value, "no"))
            return det_error_set(
                reterr, DET_ERR_INVALID, "pooler=%.*s in the URL is invalid; use yes or no",
                (int)value.size, value.data);
        return 1;
    }
    return 0;
}

/* Copies the URL without this driver's parameters. */
static int copy_url(
    struct postgres_url *url, const char *rest, char *target, struct det_error *reterr)
{
    const char *query = strchr(rest, '?');
    size_t used;
    char mark = '?';

    if (strncmp(rest, "//", 2) != 0 || strlen(rest) > URL_MAX - 16)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "this is not the URL of a PostgreSQL database; use for example "
            "\"postgres://user@host/database?schema=detent\"");
    used = (size_t)snprintf(
        target, URL_MAX, "postgresql:%.*s", (int)(query ? (size_t)(query - rest) : strlen(rest)),
        rest);
    while (query && *query) {
        size_t size = strcspn(++query, "&");
        int r = take_own(url, det_view_of(query, size), reterr);

        if (r < 0)
            return r;
        if (r == 0 && size > 0) {
            used +=
                (size_t)snprintf(target + used, URL_MAX - used, "%c%.*s", mark, (int)size, query);
            mark = '&';
        }
        query += size;
    }
    return 0;
}

static const char *given_option(const struct postgres_url *url, const char *keyword)
{
    for (size_t i = 0; url->keywords[i]; i++) {
        if (strcmp(url->keywords[i], keyword) == 0)
            return url->values[i];
    }
    return NULL;
}

static void set_option(struct postgres_url *url, const char *keyword, const char *value)
{
    size_t i = 0;

    while (url->keywords[i] && strcmp(url->keywords[i], keyword) != 0)
        i++;
    det_assert(i < POSTGRES_OPTIONS_MAX - 1);
    url->keywords[i] = keyword;
    url->values[i] = value;
}

static void set_unless_given(struct postgres_url *url, const char *keyword, const char *value)
{
    if (!given_option(url, keyword))
        set_option(url, keyword, value);
}

/* Settings of the session; those in the URL follow and override them. */
static void set_session(struct postgres_url *url, const struct det_store_options *options)
{
    long long ms = (long long)(options->timeout / DET_MILLISECOND);
    const char *own = given_option(url, "options");

    snprintf(
        url->options, sizeof url->options,
        "-c statement_timeout=%lld -c lock_timeout=%lld "
        "-c idle_in_transaction_session_timeout=%lld "
        "-c default_transaction_isolation=read\\ committed %s%s %s",
        ms, ms / 2 + 1, ms, PLANS,
        options->is_read_only ? " -c default_transaction_read_only=on" : "", own ? own : "");
    set_option(url, "options", url->options);
}

static void set_defaults(struct postgres_url *url, const struct det_store_options *options)
{
    long long ms = (long long)(options->timeout / DET_MILLISECOND);

    snprintf(url->timeout_seconds, sizeof url->timeout_seconds, "%lld", ms / 1000 + 2);
    snprintf(url->timeout_ms, sizeof url->timeout_ms, "%lld", ms);
    set_unless_given(url, "connect_timeout", url->timeout_seconds);
    set_unless_given(url, "tcp_user_timeout", url->timeout_ms);
    set_unless_given(url, "keepalives_idle", url->timeout_seconds);
    set_unless_given(url, "keepalives_interval", "2");
    set_unless_given(url, "keepalives_count", "3");
    /* No effect on a local socket. */
    set_unless_given(url, "sslmode", "verify-full");
    set_unless_given(url, "fallback_application_name", "detent");
    if (!options->is_read_only)
        set_unless_given(url, "target_session_attrs", "read-write");
    set_option(url, "client_encoding", "UTF8");
    if (!url->is_pooled)
        set_session(url, options);
}

/* A message of libpq ends with a quoted part of the URL, which may contain the password; only the
 * name of a parameter may be shown. Other languages may use other quotes: the quote is then
 * omitted. */
static size_t length_shown(const char *message)
{
    static const char harmless[] = "invalid URI query parameter";
    const char *quoted = strstr(message, ": \"");

    if (strncmp(message, harmless, sizeof harmless - 1) == 0)
        return strnlen(message, 100);
    return quoted ? (size_t)(quoted - message) : 0;
}

int det_postgres_url_init(
    struct postgres_url *url, const char *rest, const struct det_store_options *options,
    struct det_error *reterr)
{
    char text[URL_MAX], *message = NULL;
    size_t count = 0;
    int r;

    memset(url, 0, sizeof *url);
    memcpy(url->schema, "detent", sizeof "detent");
    r = copy_url(url, rest, text, reterr);
    if (r < 0)
        return r;
    url->given = PQconninfoParse(text, &message);
    if (!url->given) {
        size_t length = message ? length_shown(message) : 0;

        r = det_error_set(
            reterr, DET_ERR_INVALID, "the URL of the store is not valid for libpq%s%.*s",
            length ? ": " : "", (int)length, length ? message : "");
        PQfreemem(message);
        return r;
    }
    for (PQconninfoOption *option = url->given; option->keyword; option++) {
        if (!option->val || count >= POSTGRES_OPTIONS_MAX / 2)
            continue;
        url->keywords[count] = option->keyword;
        url->values[count++] = option->val;
    }
    if (given_option(url, "options") && strlen(given_option(url, "options")) > 100) {
        det_postgres_url_deinit(url);
        return det_error_set(reterr, DET_ERR_INVALID, "options in the URL has over 100 bytes");
    }
    set_defaults(url, options);
    return 0;
}

void det_postgres_url_deinit(struct postgres_url *url)
{
    PQconninfoFree(url->given);
    url->given = NULL;
}

void det_postgres_url_scrub(
    const struct postgres_url *url, const char *text, char *target, size_t capacity)
{
    const char *password = given_option(url, "password");
    size_t length = password ? strlen(password) : 0, used = 0;

    while (*text && used + 4 < capacity) {
        if (length > 0 && strncmp(text, password, length) == 0) {
            memcpy(target + used, "***", 3);
            used += 3;
            text += length;
            continue;
        }
        target[used] = *text;
        if (*text == '\n' || *text == '\t')
            target[used] = ' ';
        used++;
        text++;
    }
    while (used > 0 && target[used - 1] == ' ')
        used--;
    target[used] = 0;
}
