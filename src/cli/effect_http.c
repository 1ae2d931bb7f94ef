/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* effect_http.c - an effect that is an HTTP call, by libcurl, on a thread that may block.
 *
 * Redirects are not followed, only http and https are spoken, and certificates are checked. What
 * curl has to say about a failure names hosts, but neither headers nor bodies. */
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/effect.h"
#include "os/os.h"

#define SECRET_MAX 65536
/* What a server may ask for, at most. */
#define RETRY_AFTER_MAX DET_HOUR
/* The statuses that ask for it. */
#define TOO_MANY    429
#define UNAVAILABLE 503

struct exchange {
    const struct effects *effects;
    det_time deadline;
    struct effect_outcome *outcome;
    struct curl_slist *headers;
    bool is_too_long, is_over;
};

int effect_http_open(void)
{
    return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : DET_ERR_IO;
}

void effect_http_close(void)
{
    curl_global_cleanup();
}

static size_t take_body(char *data, size_t size, size_t count, void *user)
{
    struct exchange *exchange = user;
    struct det_buffer *body = &exchange->outcome->body;

    exchange->is_too_long = body->size + size * count > EFFECT_BODY_MAX;
    if (exchange->is_too_long)
        return 0;
    det_buffer_append(body, data, size * count);
    return det_buffer_status(body) < 0 ? 0 : size * count;
}

/* Called about once a second when nothing happens, and often when something does. */
static int look_around(
    void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
    struct exchange *exchange = user;

    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;
    exchange->is_over = effect_is_over(exchange->effects, exchange->deadline);
    return exchange->is_over ? 1 : 0;
}

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

/* False: no memory. */
static bool add_line(struct exchange *exchange, const char *name, const char *value)
{
    struct curl_slist *longer;
    char *line = NULL;

    if (asprintf(&line, "%s: %s", name, value) < 0)
        return false;
    longer = curl_slist_append(exchange->headers, line);
    wipe(line);
    if (longer)
        exchange->headers = longer;
    return longer != NULL;
}

/* The value of a secret: a line without its end. NULL with the reason. */
static char *read_secret(
    const struct effects *effects, const struct config_header *header,
    struct effect_outcome *outcome)
{
    char *data = NULL, *copy = NULL;
    size_t size = 0;

    if (header->from == CONFIG_HEADER_VARIABLE) {
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets the environment here */
        const char *value = getenv(header->value);

        copy = value ? strdup(value) : NULL;
    } else if (
        det_file_load(
            effects->world, effects->allocator, header->value, SECRET_MAX, &data, &size) == 0) {
        copy = strndup(data, strcspn(data, "\r\n"));
        explicit_bzero(data, size);
        det_free(effects->allocator, data, size + 1);
    }
    if (copy && *copy && !copy[strcspn(copy, "\r\n")])
        return copy;
    wipe(copy);
    snprintf(
        outcome->why, sizeof outcome->why, "the secret header %s: %s:%.160s cannot be read",
        header->name, header->from == CONFIG_HEADER_FILE ? "file" : "env", header->value);
    return NULL;
}

static bool add_header(
    struct exchange *exchange, const struct config_header *header, struct effect_outcome *outcome)
{
    char *secret;
    bool is_added;

    if (header->from == CONFIG_HEADER_TEXT)
        return add_line(exchange, header->name, header->value);
    secret = read_secret(exchange->effects, header, outcome);
    is_added = secret && add_line(exchange, header->name, secret);
    wipe(secret);
    return is_added;
}

static bool add_headers(
    struct exchange *exchange, const struct effect_binding *binding, const char *key)
{
    const struct config_effect *config = binding->config;
    bool is_good = add_line(exchange, "Idempotency-Key", key) &&
                   add_line(exchange, "Content-Type", "application/json") &&
                   add_line(exchange, "User-Agent", "detent") &&
                   /* The body is sent at once. */
                   add_line(exchange, "Expect", "");

    for (size_t i = 0; is_good && i < config->headers.count; i++)
        is_good = add_header(exchange, &config->headers.items[i], exchange->outcome);
    return is_good;
}

static void set_up(
    CURL *curl, struct exchange *exchange, const struct effect_binding *binding,
    const struct det_buffer *input)
{
    const struct config_effect *config = binding->config;
    long timeout = (long)((config->timeout + DET_MILLISECOND - 1) / DET_MILLISECOND);

    curl_easy_setopt(curl, CURLOPT_URL, config->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, config->method);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, det_buffer_text(input));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)input->size);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, exchange->headers);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, exchange);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_around);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, exchange);
}

/* What the header Retry-After says, in seconds or as a date, in the statuses it is meant for. */
static det_time wanted_wait(CURL *curl, long status)
{
    curl_off_t seconds = 0;

    if ((status != TOO_MANY && status != UNAVAILABLE) ||
        curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &seconds) != CURLE_OK || seconds <= 0)
        return 0;
    return seconds < RETRY_AFTER_MAX / DET_SECOND ? seconds * DET_SECOND : RETRY_AFTER_MAX;
}

static void judge(
    CURL *curl, CURLcode code, struct exchange *exchange, const struct effect_binding *binding)
{
    struct effect_outcome *outcome = exchange->outcome;
    long status = 0;

    if (exchange->is_over || code == CURLE_OPERATION_TIMEDOUT) {
        effect_time_out(exchange->effects, binding, outcome);
    } else if (exchange->is_too_long) {
        outcome->error = DET_ERR_LIMIT;
        snprintf(outcome->why, sizeof outcome->why, "the answer has more than 1 MiB");
    } else if (code != CURLE_OK) {
        outcome->error = code == CURLE_OUT_OF_MEMORY ? DET_ERR_NO_MEMORY : DET_ERR_IO;
        snprintf(outcome->why, sizeof outcome->why, "%s", curl_easy_strerror(code));
    } else {
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        outcome->code = (int)status;
        outcome->is_success = status >= 200 && status <= 299;
        outcome->retry_after = wanted_wait(curl, status);
        outcome->error = DET_ERR_ACTION_FAILED;
        snprintf(outcome->why, sizeof outcome->why, "status %ld", status);
    }
}

void effect_http(
    struct effects *effects, const struct effect_binding *binding, const char *key,
    const struct det_buffer *input, struct effect_outcome *outcome)
{
    struct exchange exchange = { .effects = effects,
                                 .deadline = effect_deadline(effects, binding),
                                 .outcome = outcome };
    CURL *curl = curl_easy_init();

    outcome->error = DET_ERR_IO;
    snprintf(outcome->why, sizeof outcome->why, "there is no memory left");
    if (curl && add_headers(&exchange, binding, key)) {
        set_up(curl, &exchange, binding, input);
        judge(curl, curl_easy_perform(curl), &exchange, binding);
    }
    for (struct curl_slist *line = exchange.headers; line; line = line->next)
        explicit_bzero(line->data, strlen(line->data));
    curl_slist_free_all(exchange.headers);
    curl_easy_cleanup(curl);
}
