/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* relay_url.c - validates the URL of a relay. */
#include "kinds/relay_url.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define DIGITS  "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Returns the text after the scheme; NULL: another scheme. */
static const char *skip_scheme(const char *url)
{
    if (!strncasecmp(url, "http://", 7))
        return url + 7;
    return !strncasecmp(url, "https://", 8) ? url + 8 : NULL;
}

/* Returns the length of the host; 0: not a host. */
static size_t host_length(const char *text)
{
    size_t length;

    if (*text != '[')
        return strspn(text, LETTERS DIGITS ".-_");
    length = 1 + strspn(text + 1, DIGITS "abcdefABCDEF:.");
    return length > 2 && text[length] == ']' ? length + 1 : 0;
}

/* Returns the text after the port, if any; NULL: it is not between 1 and 65535. */
static const char *skip_port(const char *text)
{
    unsigned port = 0;

    if (*text != ':')
        return text;
    for (text++; *text >= '0' && *text <= '9' && port <= 65535; text++)
        port = port * 10 + (unsigned)(*text - '0');
    return port >= 1 && port <= 65535 ? text : NULL;
}

bool relay_url_is_valid(const char *url)
{
    const char *rest = skip_scheme(url);
    size_t length = rest ? host_length(rest) : 0;

    rest = length ? skip_port(rest + length) : NULL;
    if (!rest || (*rest && *rest != '/'))
        return false;
    return rest[strspn(rest, LETTERS DIGITS "/._~!$&'()*+,;=:@%-")] == 0;
}
