/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_section.c - the section 'http' of detent.yaml: addresses and access rules of the HTTP
 * API. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "config/config_internal.h"
#include "http/address.h"

#define RATE_DEFAULT 200
#define RATE_MAX     1000000
#define HOST_MAX     253

enum { KEY_LISTEN, KEY_SOCKET, KEY_HOSTS, KEY_TLS, KEY_RATE, KEY_LIMITS, KEY_COUNT };

static int take_address(struct cli_reader *reader, const struct det_datum *node, const char **ret)
{
    union http_address address;
    struct det_error error;

    if (!det_datum_is_scalar(node))
        return reader_fail(reader, node, HTTP_ADDRESS_RULE);
    if (http_address_read(node->text, &address, &error) < 0)
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
    else
        READER_EACH (item, node, reader, r)
            r = reader_both(r, take(reader, item, &items[count++]));
    det_assert(count <= node->count);
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
        return reader_fail(
            reader, node, "the list of addresses is empty; write 'none' for no address");
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
    det_assert(*ret == node->text);
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
        CONFIG_KEY("certificate", config_take_text, offsetof(struct http_tls, certificate)),
        CONFIG_KEY("key", config_take_text, offsetof(struct http_tls, key)),
        CONFIG_KEY("clients", config_take_text, offsetof(struct http_tls, clients)),
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
#define LIMIT_KEY(word, path, type, hard, unit)                                        \
    CONFIG_RANGE(                                                                      \
        word, *(unit) == 'B' ? config_take_bytes : TAKE_OF(type, unit), IN_HTTP(path), \
        LEAST_OF(type), hard)

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
    [KEY_LISTEN] = CONFIG_KEY("listen", take_listen, 0),
    [KEY_SOCKET] = CONFIG_KEY("socket", take_socket, IN_HTTP(socket)),
    [KEY_HOSTS] = CONFIG_KEY("hosts", take_hosts, IN_HTTP(hosts)),
    [KEY_TLS] = CONFIG_KEY("tls", take_tls, 0),
    [KEY_RATE] = CONFIG_RANGE_OR(
        "rate", config_take_number, IN_HTTP(rate), 1, RATE_MAX, "unlimited", CONFIG_UNLIMITED),
    [KEY_LIMITS] = CONFIG_KEY("limits", take_limits, 0),
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
    det_assert(http->listen);
    det_assert(http->rate == CONFIG_UNLIMITED || (http->rate >= 1 && http->rate <= RATE_MAX));
    return r;
}
