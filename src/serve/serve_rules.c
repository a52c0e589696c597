/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, and the headers that say who asks. */
#include "serve/serve_rules.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { PORT = 8080 };

static int resolve(const char *text, lw_serve_place *p)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (p->host[0] == '\0' || strcmp(p->host, "localhost") == 0)
        snprintf(p->ip, sizeof p->ip, "127.0.0.1");
    else if (strcmp(p->host, "*") == 0)
        snprintf(p->ip, sizeof p->ip, "0.0.0.0");
    else if (getaddrinfo(p->host, NULL, &hints, &found) == 0 && found) {
        struct sockaddr_in a;
        memcpy(&a, found->ai_addr, sizeof a);
        inet_ntop(AF_INET, &a.sin_addr, p->ip, sizeof p->ip);
        freeaddrinfo(found);
    } else {
        return lw_fail(LW_EUSAGE, "--serve %s: no address of this name (IPv4)", text);
    }
    if (p->host[0] == '\0')
        snprintf(p->host, sizeof p->host, "%s", p->ip);
    p->loopback = strncmp(p->ip, "127.", 4) == 0;
    return 0;
}

int lw_serve_place_read(const char *text, lw_serve_place *out)
{
    lw_serve_place p = {.port = PORT};
    const char *colon = strrchr(text, ':');
    const bool only_port = !colon && text[0] && strspn(text, "0123456789") == strlen(text);
    const size_t n = only_port ? 0 : colon ? (size_t)(colon - text) : strlen(text);
    const char *port = only_port ? text : colon ? colon + 1 : NULL;
    int64_t number = PORT;
    if (n >= sizeof p.host || memchr(text, ':', n) ||
        (port && (lw_parse_i64(port, &number) < 0 || number < 0 || number > 65535)))
        return lw_fail(LW_EUSAGE, "--serve %s: not HOST:PORT (IPv4, port 0 to 65535)", text);
    memcpy(p.host, text, n);
    p.port = (int32_t)number;
    LW_TRY(resolve(text, &p));
    *out = p;
    return 0;
}

/* Bytes of "name" in "name:port"; the port may be missing. */
static size_t name_of(const char *host)
{
    const char *colon = strrchr(host, ':');
    return colon && strspn(colon + 1, "0123456789") == strlen(colon + 1) ? (size_t)(colon - host)
                                                                         : strlen(host);
}

static bool is_name(const char *host, size_t n, const char *name)
{
    return strlen(name) == n && strncasecmp(host, name, n) == 0;
}

bool lw_serve_host_right(const lw_serve_place *p, const char *host)
{
    const size_t n = name_of(host);
    if (n == 0)
        return false;
    return !p->loopback || is_name(host, n, "localhost") || is_name(host, n, "127.0.0.1") ||
           is_name(host, n, p->ip) || is_name(host, n, p->host);
}

bool lw_serve_origin_right(bool tls, const char *host, const char *origin)
{
    const char *scheme = tls ? "https://" : "http://";
    if (origin[0] == '\0')
        return true;
    return lw_str_starts(origin, scheme) && strcasecmp(origin + strlen(scheme), host) == 0;
}

bool lw_serve_token_right(const char *token, const char *said)
{
    const size_t n = strlen(token), m = strlen(said);
    unsigned differ = n != m;
    for (size_t i = 0; i < m; i++)
        differ |= (unsigned char)token[i % (n + 1)] ^ (unsigned char)said[i];
    return differ == 0;
}

bool lw_serve_cookie(const char *header, const char *name, char *buf, size_t size)
{
    const size_t n = strlen(name);
    for (const char *at = header; *at;) {
        at += strspn(at, "; \t");
        const size_t whole = strcspn(at, ";");
        if (whole > n && strncmp(at, name, n) == 0 && at[n] == '=') {
            if (whole - n - 1 >= size)
                return false;
            memcpy(buf, at + n + 1, whole - n - 1);
            buf[whole - n - 1] = '\0';
            return true;
        }
        at += whole;
    }
    return false;
}
