/* SPDX-License-Identifier: Apache-2.0 */
/* TensorBoard event files: protocol buffers and record frames by hand. */
#include "formats/formats_events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "formats/formats_protobuf.h"

struct lw_events {
    lw_str path;
    int fd;
};

uint32_t lw_crc32c(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (0x82f63b78u & (0u - (crc & 1u)));
    }
    return ~crc;
}

/* Records hold CRCs of data that may hold CRCs: masked so that the two do not meet. */
static uint32_t masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* One frame with an Event: wall_time 1, step 2, and `body`, the encoded rest. */
static int write_event(lw_events *e, int64_t step, const lw_str *body)
{
    LW_CLEANUP(lw_str_clear) lw_str event = {0}, frame = {0};
    lw_pb_double(&event, 1, lw_wall_time());
    if (step)
        lw_pb_int(&event, 2, step);
    lw_str_add_n(&event, lw_str_c(body), body->len);
    uint64_t n = event.len;
    uint32_t crc = masked(lw_crc32c(&n, sizeof n));
    lw_str_add_n(&frame, (const char *)&n, sizeof n);
    lw_str_add_n(&frame, (const char *)&crc, sizeof crc);
    lw_str_add_n(&frame, lw_str_c(&event), event.len);
    crc = masked(lw_crc32c(lw_str_c(&event), event.len));
    lw_str_add_n(&frame, (const char *)&crc, sizeof crc);
    if (body->failed || event.failed || frame.failed)
        return lw_fail(LW_ENOMEM, "%s: no memory for an event", lw_events_path(e));
    for (size_t at = 0; at < frame.len;) {
        ssize_t done = write(e->fd, frame.s + at, frame.len - at);
        if (done < 0 && errno != EINTR)
            return lw_fail(lw_errno_code(errno), "%s: cannot write: %s", lw_events_path(e),
                           strerror(errno));
        at += done > 0 ? (size_t)done : 0;
    }
    return 0;
}

/* Event.summary (5) of one Summary.value (1) whose fields are `value`. */
static int write_value(lw_events *e, int64_t step, const lw_str *value)
{
    LW_CLEANUP(lw_str_clear) lw_str summary = {0}, body = {0};
    lw_pb_message(&summary, 1, value);
    lw_pb_message(&body, 5, &summary);
    body.failed = body.failed || summary.failed || value->failed;
    return write_event(e, step, &body);
}

static int open_file(lw_events *e, const char *dir)
{
    LW_TRY(lw_mkdir_own(dir));
    for (int k = 0; k < 1000; k++) {
        lw_str_clear(&e->path);
        lw_str_addf(&e->path, "%s/events.out.tfevents.%010lld.leeway.%ld.%d", dir,
                    (long long)lw_wall_time(), (long)getpid(), k);
        if (e->path.failed)
            return LW_ENOMEM;
        e->fd = open(lw_events_path(e), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (e->fd >= 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    return lw_fail(lw_errno_code(errno), "%s: cannot create: %s", lw_events_path(e),
                   strerror(errno));
}

int lw_events_open(const char *dir, int64_t start_step, lw_events **out)
{
    LW_CLEANUP(lw_events_close) lw_events *e = lw_calloc(1, sizeof *e);
    LW_CLEANUP(lw_str_clear) lw_str body = {0};
    if (!e)
        return LW_ENOMEM;
    e->fd = -1;
    LW_TRY(open_file(e, dir));
    lw_pb_text(&body, 3, "brain.Event:2"); /* file_version */
    LW_TRY(write_event(e, 0, &body));
    if (start_step >
        0) { /* session_log (7) { status (1): START } makes viewers purge from here on */
        const lw_str start = {.s = (char[]){1 << 3, 1, 0}, .len = 2};
        body.len = 0;
        lw_pb_message(&body, 7, &start);
        LW_TRY(write_event(e, start_step, &body));
    }
    *out = lw_steal(&e);
    return 0;
}

void lw_events_close(lw_events **pp)
{
    lw_events *e = *pp;
    if (!e)
        return;
    lw_fd_close(&e->fd);
    lw_str_clear(&e->path);
    lw_free(pp);
}

const char *lw_events_path(const lw_events *e)
{
    return lw_str_c(&e->path);
}

int lw_events_scalar(lw_events *e, const char *tag, int64_t step, double value)
{
    LW_CLEANUP(lw_str_clear) lw_str v = {0};
    lw_pb_text(&v, 1, tag);
    lw_pb_float(&v, 2, (float)value); /* simple_value */
    return write_value(e, step, &v);
}

int lw_events_image(lw_events *e, const char *tag, int64_t step, const void *png, size_t n,
                    int32_t width, int32_t height)
{
    LW_CLEANUP(lw_str_clear) lw_str v = {0}, image = {0};
    lw_pb_int(&image, 1, height);
    lw_pb_int(&image, 2, width);
    lw_pb_int(&image, 3, 3); /* colorspace: RGB */
    lw_pb_bytes(&image, 4, png, n);
    lw_pb_text(&v, 1, tag);
    lw_pb_message(&v, 4, &image);
    v.failed = v.failed || image.failed;
    return write_value(e, step, &v);
}

/* google.protobuf.Value: number 2, string 3, bool 4. */
static void put_option(lw_str *out, const json_t *v)
{
    if (json_is_boolean(v)) {
        lw_pb_int(out, 4, json_is_true(v));
    } else if (json_is_number(v)) {
        lw_pb_double(out, 2, json_number_value(v));
    } else if (json_is_string(v)) {
        lw_pb_text(out, 3, json_string_value(v));
    } else {
        char *dump = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
        lw_pb_text(out, 3, dump ? dump : "");
        free(dump);
    }
}

/* HParamsPluginData { session_start_info (3) { hparams (1): map of texts to values } }, as metadata of
 * a tag that the plugin looks for (tensorboard/plugins/hparams/plugin_data.proto). */
int lw_events_hparams(lw_events *e, const json_t *options)
{
    LW_CLEANUP(lw_str_clear) lw_str info = {0}, data = {0}, plugin = {0}, meta = {0}, v = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)options, key, value)
    {
        LW_CLEANUP(lw_str_clear) lw_str pair = {0}, one = {0};
        put_option(&one, value);
        lw_pb_text(&pair, 1, key);
        lw_pb_message(&pair, 2, &one);
        lw_pb_message(&info, 1, &pair);
        info.failed = info.failed || pair.failed || one.failed;
    }
    lw_pb_message(&data, 3, &info);
    lw_pb_text(&plugin, 1, "hparams");
    lw_pb_message(&plugin, 2, &data);
    lw_pb_message(&meta, 1, &plugin);
    lw_pb_text(&v, 1, "_hparams_/session_start_info");
    lw_pb_message(&v, 9, &meta);
    v.failed = v.failed || info.failed || data.failed || plugin.failed || meta.failed;
    return write_value(e, 0, &v);
}

int lw_events_text(lw_events *e, const char *tag, int64_t step, const char *markdown)
{
    LW_CLEANUP(lw_str_clear) lw_str v = {0}, plugin = {0}, meta = {0}, tensor = {0};
    lw_pb_text(&plugin, 1, "text");
    lw_pb_message(&meta, 1, &plugin);
    lw_pb_int(&tensor, 1, 7); /* DT_STRING; no shape: a scalar */
    lw_pb_text(&tensor, 8, markdown);
    lw_pb_text(&v, 1, tag);
    lw_pb_message(&v, 8, &tensor);
    lw_pb_message(&v, 9, &meta);
    v.failed = v.failed || plugin.failed || meta.failed || tensor.failed;
    return write_value(e, step, &v);
}
