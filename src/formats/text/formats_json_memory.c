/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out inside jansson. */
#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>

#include "base/base.h"
#include "formats/text/formats_json.h"

static _Thread_local bool lost;
static _Thread_local jmp_buf *decoding; /* where a failed allocation goes on, NULL: in jansson */

static void *watched_malloc(size_t n)
{
    void *p = malloc(n);
    if (p)
        return p;
    lw_alloc_failed(n);
    if (decoding)
        longjmp(*decoding, 1);
    lost = true;
    return NULL;
}

void lw_json_watch_memory(void)
{
    json_set_alloc_funcs(watched_malloc, free);
}

bool lw_json_lost(void)
{
    return lost;
}

void lw_json_lose(void)
{
    lost = true;
}

/* jansson's lexer does not look whether its buffer grew, and then copies past the end of a string:
 * a watched allocator leaves it at once. What it had built so far stays allocated. */
json_t *lw_json_decode(const char *text, size_t len, json_error_t *err)
{
    jmp_buf back;
    errno = 0; /* without a watch malloc says here what jansson calls bad JSON */
    if (setjmp(back) != 0) {
        decoding = NULL;
        errno = ENOMEM;
        return NULL;
    }
    decoding = &back;
    json_t *v = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, err);
    decoding = NULL;
    return v;
}
