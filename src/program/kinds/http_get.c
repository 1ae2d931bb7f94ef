/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_get.c - one GET by the easy interface of libcurl. Nothing is kept between two of them: a
 * connection that is still there says nothing about the next one. */
#include "kinds/http_get.h"

#include <curl/curl.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/buffer.h"
#include "base/text.h"
#include "kinds/curl_shortage.h"

struct get {
    const struct http_get_options *options;
    struct http_get_answer *answer;
    struct det_buffer body; /* what is searched of it */
    bool is_cancelled, is_too_large;
};

bool http_get_takes(const char *url)
{
    CURLU *parts = curl_url();
    char *scheme = NULL, *secret = NULL;
    bool takes = false;

    if (parts && !curl_url_set(parts, CURLUPART_URL, url, 0) &&
        !curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0))
        takes = (!strcmp(scheme, "http") || !strcmp(scheme, "https")) &&
                curl_url_get(parts, CURLUPART_USER, &secret, 0) == CURLUE_NO_USER;
    curl_free(scheme);
    curl_free(secret);
    curl_url_cleanup(parts);
    return takes;
}

static size_t take_body(char *data, size_t size, size_t count, void *user)
{
    struct get *get = user;
    size_t room = HTTP_GET_TEXT_MAX - get->body.size;

    size *= count;
    get->answer->body_size += size;
    get->is_too_large = get->answer->body_size > HTTP_GET_BODY_MAX;
    if (get->is_too_large)
        return 0;
    if (*get->options->text)
        det_buffer_append(&get->body, data, size < room ? size : room);
    return det_buffer_status(&get->body) < 0 ? 0 : size;
}

static bool is_cancelled(const struct http_get_options *options)
{
    return options->is_cancelled && options->is_cancelled(options->user);
}

static int look_up(
    void *user, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    struct get *get = user;

    (void)total;
    (void)now;
    (void)up_total;
    (void)up_now;
    get->is_cancelled = is_cancelled(get->options);
    return get->is_cancelled;
}

/* "Expire date:Feb  3 10:11:12 2027 GMT" of the first certificate, which is that of the host. */
static void take_certificate(CURL *easy, struct get *get)
{
    static const char key[] = "Expire date:";
    det_time now = det_world_now(get->options->world, DET_CLOCK_WALL);
    struct curl_certinfo *chain = NULL;
    struct tm end = { 0 };

    if (curl_easy_getinfo(easy, CURLINFO_CERTINFO, &chain) || !chain || chain->num_of_certs < 1)
        return;
    for (struct curl_slist *line = chain->certinfo[0]; line; line = line->next) {
        if (strncmp(line->data, key, sizeof key - 1) != 0 ||
            !strptime(line->data + sizeof key - 1, "%b %d %H:%M:%S %Y", &end))
            continue;
        get->answer->has_tls_days = true;
        get->answer->tls_days = (int32_t)((timegm(&end) * DET_SECOND - now) / DET_DAY);
    }
}

/* Loopback is never reached through a proxy. */
static bool is_loopback(const char *url)
{
    CURLU *parts = curl_url();
    char *host = NULL;
    bool is_it = false;

    if (parts && !curl_url_set(parts, CURLUPART_URL, url, 0) &&
        !curl_url_get(parts, CURLUPART_HOST, &host, 0))
        is_it =
            !strcasecmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "[::1]");
    curl_free(host);
    curl_url_cleanup(parts);
    return is_it;
}

static void set_up(CURL *easy, struct get *get, char *error)
{
    const struct http_get_options *options = get->options;
    long timeout = (long)(options->timeout / DET_MILLISECOND);

    curl_easy_setopt(easy, CURLOPT_URL, options->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "detent");
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout > 0 ? timeout : 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, get);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, look_up);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, get);
    curl_easy_setopt(easy, CURLOPT_CERTINFO, 1L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
    if (options->is_insecure) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (*options->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca_file);
    if (is_loopback(options->url))
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

/* False: no memory. */
static bool add_headers(CURL *easy, const struct get *get, struct curl_slist **lines)
{
    for (size_t i = 0; get->options->headers[i]; i++) {
        struct curl_slist *longer = curl_slist_append(*lines, get->options->headers[i]);

        if (!longer)
            return false;
        *lines = longer;
    }
    return !curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *lines);
}

static void take_answer(CURL *easy, struct get *get, CURLcode code, const char *error)
{
    struct http_get_answer *answer = get->answer;
    const char *text = get->options->text;
    curl_off_t took = 0;
    long status = 0;

    curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &took);
    answer->latency_ms = (uint32_t)(took / 1000);
    take_certificate(easy, get);
    if (get->is_too_large)
        (void)det_text_copy(answer->error, sizeof answer->error, "the body has more than 64 MiB");
    else if (code != CURLE_OK)
        (void)det_text_copy(
            answer->error, sizeof answer->error, *error ? error : curl_easy_strerror(code));
    if (code != CURLE_OK)
        return;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    answer->status = (uint16_t)status;
    answer->has_text =
        *text && memmem(det_buffer_text(&get->body), get->body.size, text, strlen(text)) != NULL;
}

int http_get(const struct http_get_options *options, struct http_get_answer *ret)
{
    struct get get = { .options = options, .answer = ret, .is_cancelled = is_cancelled(options) };
    char error[CURL_ERROR_SIZE] = "";
    struct curl_slist *lines = NULL;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    CURL *easy = curl_easy_init();
    bool is_short = false;
    int r = 0;

    *ret = (struct http_get_answer){ 0 };
    det_buffer_init(&get.body, options->allocator);
    if (easy && !get.is_cancelled) {
        set_up(easy, &get, error);
        if (add_headers(easy, &get, &lines))
            code = curl_easy_perform(easy);
        /* libcurl may find that the time is over before it asks whether to go on. */
        if (code != CURLE_OK)
            get.is_cancelled = is_cancelled(options);
        is_short = curl_shortage(easy, code);
        take_answer(easy, &get, code, error);
    }
    if (get.is_cancelled)
        r = DET_ERR_CANCELLED;
    else if (code == CURLE_OUT_OF_MEMORY || det_buffer_status(&get.body) < 0)
        r = DET_ERR_NO_MEMORY;
    else if (is_short)
        r = DET_ERR_LIMIT;
    curl_slist_free_all(lines);
    curl_easy_cleanup(easy);
    det_buffer_deinit(&get.body);
    return r;
}
