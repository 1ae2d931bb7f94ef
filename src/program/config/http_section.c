/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_section.c - the section 'http' of detent.yaml: addresses and access rules of the HTTP
 * API. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "config/config_internal.h"

#define RATE_DEFAULT 200
#define RATE_MAX     1000000
#define HOST_MAX     253

enum { KEY_LISTEN, KEY_SOCKET, KEY_HOSTS, KEY_TLS, KEY_RATE, KEY_LIMITS, KEY_COUNT };

/* Addresses. */

#define ADDRESS_RULE \
    "an address is 127.0.0.1:7788, [::1]:7788 or localhost:7788: numbers, and a port"

/* The part before the port, without brackets. False: it is no address. */
static bool split_address(const char *text, struct config_address *ret)
{
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;
    bool has_brackets = size > 2 && text[0] == '[' && text[size - 1] == ']';
    uint64_t port;

    if (!size || det_parse_u64(det_view_text(colon + 1), &port) < 0 || port > UINT16_MAX)
        return false;
    ret->port = (uint16_t)port;
    ret->is_v6 = has_brackets;
    size -= has_brackets ? 2 : 0;
    if (size >= sizeof ret->host)
        return false;
    memcpy(ret->host, text + has_brackets, size);
    ret->host[size] = '\0';
    return true;
}

int config_parse_address(const char *text, struct config_address *ret, struct det_error *reterr)
{
    struct in6_addr six;
    struct in_addr four;

    *ret = (struct config_address){ .port = 0 };
    if (!split_address(text, ret))
        return det_error_set(reterr, DET_ERR_MALFORMED, "'%s': " ADDRESS_RULE, text);
    if (ret->is_v6 && inet_pton(AF_INET6, ret->host, &six) == 1)
        ret->is_loopback = IN6_IS_ADDR_LOOPBACK(&six);
    else if (!ret->is_v6 && strcmp(ret->host, "localhost") == 0)
        ret->is_loopback = true;
    else if (!ret->is_v6 && inet_pton(AF_INET, ret->host, &four) == 1)
        ret->is_loopback = ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
    else
        return det_error_set(reterr, DET_ERR_MALFORMED, "'%s': " ADDRESS_RULE, text);
    return 0;
}

static int take_address(struct cli_reader *reader, const struct det_datum *node, const char **ret)
{
    struct config_address address;
    struct det_error error;

    if (!det_datum_is_scalar(node))
        return reader_fail(reader, node, ADDRESS_RULE);
    if (config_parse_address(node->text, &address, &error) < 0)
        return reader_fail(reader, node, "%s", error.text);
    *ret = node->text;
    return 0;
}

/* Items of a sequence, or one alone. */
typedef int take_item_fn(struct cli_reader *reader, const struct det_datum *node, const char **ret);

static int take_items(
    struct cli_reader *reader, const struct det_datum *node, take_item_fn *take,
    const char *const **ret)
{
    bool is_one = node->kind != DET_DATUM_LIST;
    const char **items =
        det_arena_array(reader->arena, is_one ? 2 : node->count + 1, sizeof *items);
    size_t count = 0;
    int r = 0;

    if (!items)
        return reader_no_memory(reader, node);
    if (is_one)
        r = take(reader, node, &items[0]);
    for (const struct det_datum *item = is_one ? NULL : node->first;
         item && reader_goes_on(reader, r); item = item->next)
        r = reader_both(r, take(reader, item, &items[count++]));
    *ret = items;
    return r;
}

static int take_listen(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    static const char *const none[] = { NULL };
    struct config_http *http = target;

    (void)key;
    if (det_datum_is_scalar(node) && strcmp(node->text, "none") == 0) {
        http->listen = none;
        return 0;
    }
    if (node->kind == DET_DATUM_LIST && !node->first)
        return reader_fail(reader, node, "there is no address here; 'none' says so");
    return take_items(reader, node, take_address, &http->listen);
}

static int take_socket(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    const char **ret = target;
    int r = config_take_text(reader, node, key, target);

    if (r < 0)
        return r;
    if (strcmp(node->text, "no") == 0)
        *ret = NULL;
    else if (strcmp(node->text, "yes") == 0)
        *ret = CONFIG_HTTP_SOCKET;
    return 0;
}

static bool is_host(const char *text)
{
    size_t size = strlen(text);

    for (size_t i = 0; i < size; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("-._", text[i]))
            return false;
    }
    return size && size <= HOST_MAX && isalnum((unsigned char)text[0]);
}

static int take_host(struct cli_reader *reader, const struct det_datum *node, const char **ret)
{
    struct in6_addr six;
    char address[INET6_ADDRSTRLEN + 2];
    size_t size = det_datum_is_scalar(node) ? strlen(node->text) : 0;

    if (size > 2 && size < sizeof address && node->text[0] == '[' && node->text[size - 1] == ']') {
        snprintf(address, sizeof address, "%.*s", (int)size - 2, node->text + 1);
        size = inet_pton(AF_INET6, address, &six) == 1 ? size : 0;
    } else if (size && !is_host(node->text)) {
        size = 0;
    }
    if (!size)
        return reader_fail(
            reader, node,
            "a host is a name or an address as people write it, without port: orders.example.org");
    *ret = node->text;
    return 0;
}

static int take_hosts(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    (void)key;
    return take_items(reader, node, take_host, target);
}

static int take_tls(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    static const struct config_key keys[] = {
        { .name = "certificate",
          .take = config_take_text,
          .offset = offsetof(struct http_tls, certificate) },
        { .name = "key", .take = config_take_text, .offset = offsetof(struct http_tls, key) },
        { .name = "clients",
          .take = config_take_text,
          .offset = offsetof(struct http_tls, clients) },
    };
    struct config_http *http = target;
    int r;

    (void)key;
    http->tls_node = node;
    r = config_take_mapping(reader, node, CONFIG_TABLE("'tls'", keys), &http->tls, NULL);
    if (r == 0 && (!http->tls.certificate || !http->tls.key))
        r = reader_fail(
            reader, node, "'tls' needs '%s'", http->tls.certificate ? "key" : "certificate");
    return r;
}

/* Limits: a key for each row of the two lists. */

#define IN_HTTP(path) offsetof(struct config_http, path)
/* Sizes have a unit, spans are of another type, all else is counted. */
#define TAKE_OF(type, unit) \
    _Generic((type)0, det_time : config_take_span, default : config_take_number)
#define LEAST_OF(type) _Generic((type)0, det_time : DET_MILLISECOND, default : 1)
#define LIMIT_KEY(word, path, type, hard, unit)                                              \
    {                                                                                        \
        .name = word, .take = *(unit) == 'B' ? config_take_bytes : TAKE_OF(type, unit),      \
        .offset = IN_HTTP(path), .least = (uint64_t)LEAST_OF(type), .most = (uint64_t)(hard) \
    }

static int take_limits(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    const struct config_key keys[] = {
#define HTTP_LIMIT(name, type, otherwise, most, unit, about) \
    LIMIT_KEY(#name, limits.name, type, most, unit),
#include "http/limits.def"
#undef HTTP_LIMIT
#define CONFIG_LIMIT(name, type, otherwise, most, unit, about) \
    LIMIT_KEY(#name, name, type, most, unit),
#include "config/limits.def"
#undef CONFIG_LIMIT
    };

    (void)key;
    return config_take_mapping(
        reader, node, CONFIG_TABLE("'limits' of 'http'", keys), target, NULL);
}

static const struct config_key http_keys[KEY_COUNT] = {
    [KEY_LISTEN] = { .name = "listen", .take = take_listen },
    [KEY_SOCKET] = { .name = "socket", .take = take_socket, .offset = IN_HTTP(socket) },
    [KEY_HOSTS] = { .name = "hosts", .take = take_hosts, .offset = IN_HTTP(hosts) },
    [KEY_TLS] = { .name = "tls", .take = take_tls },
    [KEY_RATE] = { .name = "rate",
                   .take = config_take_number,
                   .offset = IN_HTTP(rate),
                   .least = 1,
                   .most = RATE_MAX,
                   .word = "unlimited",
                   .value = CONFIG_UNLIMITED },
    [KEY_LIMITS] = { .name = "limits", .take = take_limits },
};

void config_http_init(struct config_http *http)
{
    static const char *const listen[] = { CONFIG_HTTP_LISTEN, NULL };

    *http = (struct config_http){
        .listen = listen,
        .rate = RATE_DEFAULT,
#define CONFIG_LIMIT(name, type, otherwise, most, unit, about) .name = (otherwise),
#include "config/limits.def"
#undef CONFIG_LIMIT
    };
}

int config_take_http(
    struct cli_reader *reader, const struct det_datum *node, struct config_http *http)
{
    const struct det_datum *nodes[KEY_COUNT];
    int r;

    http->node = node;
    r = config_take_mapping(reader, node, CONFIG_TABLE("'http'", http_keys), http, nodes);
    http->listen_node = nodes[KEY_LISTEN];
    return r;
}

bool config_http_is_open(const struct config_http *http)
{
    struct config_address address;
    struct det_error error;

    for (const char *const *listen = http->listen; *listen; listen++) {
        if (config_parse_address(*listen, &address, &error) == 0 && !address.is_loopback)
            return true;
    }
    return false;
}
