/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_error.c - classes of failed calls of a relay, and their delays. */
#include "kinds/relay_error.h"

#include <string.h>

#include "base/assert.h"
#include "http/client.h"

#define STEPS 6

enum marker {
    MARKER_CHALLENGE,
    MARKER_PROXY,
};

struct class_row {
    const char *name, *metric;
    uint32_t reset_every;
    uint16_t delays[STEPS];
};

static const struct class_row rows[] = {
#define LIST(a, b, c, d, e, f) \
    {                          \
        a, b, c, d, e, f       \
    }
#define DET_RELAY_CLASS(name, wire, metric, reset_every, delays) \
    { #wire, metric, reset_every, LIST delays },
#include "kinds/relay_classes.def"
#undef DET_RELAY_CLASS
#undef LIST
};

static const struct class_row *row_of(enum relay_class class)
{
    return &rows[(unsigned)class < RELAY_CLASSES ? class : RELAY_UNKNOWN];
}

const struct det_enum *relay_class_enum(void)
{
    static const struct det_enum_value values[] = {
#define DET_RELAY_CLASS(name, wire, metric, reset_every, delays) { #wire, RELAY_##name },
#include "kinds/relay_classes.def"
#undef DET_RELAY_CLASS
    };
    static const struct det_enum enumeration = { "relay_class", values, RELAY_CLASSES };

    return &enumeration;
}

const char *relay_class_name(enum relay_class class)
{
    return row_of(class)->name;
}

const char *relay_class_metric(enum relay_class class)
{
    return row_of(class)->metric;
}

static bool has_marker(enum marker which, const char *body, size_t size)
{
    static const struct {
        enum marker which;
        const char *text;
    } markers[] = {
#define DET_RELAY_MARKER(who, text) { MARKER_##who, text },
#include "kinds/relay_markers.def"
#undef DET_RELAY_MARKER
    };

    for (size_t i = 0; size && i < sizeof markers / sizeof markers[0]; i++)
        if (markers[i].which == which &&
            memmem(body, size, markers[i].text, strlen(markers[i].text)))
            return true;
    return false;
}

enum relay_class relay_classify(long status, const char *body, size_t size)
{
    if (status == 429 && has_marker(MARKER_CHALLENGE, body, size))
        return RELAY_CHALLENGE;
    if (has_marker(MARKER_PROXY, body, size))
        return RELAY_PROXY_BLOCK;
    if (status == 429)
        return RELAY_RATE_LIMIT;
    if (status == 401 || status == 403)
        return RELAY_INVALID_TOKEN;
    if (status == 404)
        return RELAY_INSTANCE_DELETED;
    if (status >= 500)
        return RELAY_SERVER_ERROR;
    return status == 0 ? RELAY_NETWORK : RELAY_UNKNOWN;
}

bool relay_status_is_poison(long status)
{
    /* These depend on the client, the path and the time, not on the message. */
    static const uint16_t not_the_message[] = { 401, 403, 404, 405, 407, 408, 425, 426, 429 };

    for (size_t i = 0; i < sizeof not_the_message / sizeof not_the_message[0]; i++)
        if (status == not_the_message[i])
            return false;
    return status >= 400 && status <= 499;
}

static det_time at_most(det_time seconds)
{
    if (seconds <= 0)
        return 0;
    return seconds < RELAY_RETRY_AFTER_MAX / DET_SECOND ? seconds * DET_SECOND
                                                        : RELAY_RETRY_AFTER_MAX;
}

det_time relay_retry_after(const char *text, det_time wall)
{
    det_time seconds = 0;
    int64_t date;

    if (!text)
        return 0;
    text += strspn(text, " \t");
    if (!*text)
        return 0;
    if (strspn(text, "0123456789") != strcspn(text, " \t\r\n")) {
        date = http_client_date(text);
        return date < 0 ? 0 : at_most(date - wall / DET_SECOND);
    }
    for (; *text >= '0' && *text <= '9' && seconds < RELAY_RETRY_AFTER_MAX; text++)
        seconds = seconds * 10 + (*text - '0');
    seconds = at_most(seconds);
    det_assert(seconds >= 0 && seconds <= RELAY_RETRY_AFTER_MAX);
    return seconds;
}

det_time relay_delay(enum relay_class class, uint32_t count, det_time retry_after)
{
    det_assert(retry_after >= 0);
    if (retry_after > 0)
        return retry_after;
    if (count == 0)
        return 0;
    return row_of(class)->delays[count < STEPS ? count - 1 : STEPS - 1] * DET_SECOND;
}

bool relay_reset_is_due(enum relay_class class, uint32_t count, uint32_t reset_for)
{
    uint32_t every = row_of(class)->reset_every;

    return every && count && count % every == 0 && count != reset_for;
}
