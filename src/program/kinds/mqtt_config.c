/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mqtt_config.c - checks the config of a connection to a broker. Pure. */
#include <mosquitto.h>
#include <string.h>

#include "kinds/mqtt_client.h"

static int check_topics(struct det_derive *derive, const struct mqtt_link_desired *config)
{
    const char *topic = config->status_topic;

    for (uint32_t i = 0; i < config->subscribe_count; i++)
        if (mosquitto_sub_topic_check(config->subscribe[i]) || !*config->subscribe[i])
            return derive->refuse(
                derive,
                "subscribe[%u] '%s' is not a topic: '+' and '#' must be alone between slashes, '#' "
                "at "
                "the end",
                i, config->subscribe[i]);
    if (*topic && mosquitto_pub_topic_check(topic))
        return derive->refuse(
            derive, "status_topic '%s' has a '+' or '#': use one topic, such as plant/press/status",
            topic);
    if (config->qos > 2)
        return derive->refuse(derive, "qos %u is invalid: use 0, 1 or 2", (unsigned)config->qos);
    return 0;
}

static int check_path(struct det_derive *derive, const char *field, const char *path)
{
    if (!*path || *path == '/')
        return 0;
    return derive->refuse(
        derive, "%s '%s' is relative: write an absolute path, from / on", field, path);
}

static int check_tls(struct det_derive *derive, const struct mqtt_link_desired *config)
{
    bool has_any = *config->tls_ca_file || *config->tls_certificate_file || *config->tls_key_file ||
                   config->tls_insecure;
    int r;

    if (has_any && !config->tls)
        return derive->refuse(derive, "settings of TLS need TLS: add tls: true");
    if (!*config->tls_certificate_file != !*config->tls_key_file)
        return derive->refuse(
            derive, "tls_certificate_file and tls_key_file go together: set both or neither");
    r = check_path(derive, "tls_ca_file", config->tls_ca_file);
    if (r == 0)
        r = check_path(derive, "tls_certificate_file", config->tls_certificate_file);
    return r < 0 ? r : check_path(derive, "tls_key_file", config->tls_key_file);
}

/* One colon: an address of IPv6 has more. */
static bool has_port(const char *host)
{
    const char *colon = strchr(host, ':');

    return colon && colon == strrchr(host, ':');
}

int mqtt_client_check(struct det_derive *derive, const struct mqtt_link_desired *config)
{
    int r;

    if (!*config->host)
        return derive->refuse(
            derive, "host is missing: add the address of the broker, host: localhost");
    if (strpbrk(config->host, "/ \t") || has_port(config->host))
        return derive->refuse(
            derive,
            "host '%s' is not a host: use a name or an address alone; the port has its own field",
            config->host);
    if (*config->password && !*config->user)
        return derive->refuse(derive, "a password needs a user: add user:");
    r = check_topics(derive, config);
    return r < 0 ? r : check_tls(derive, config);
}
