/* SPDX-License-Identifier: Apache-2.0 */
/* Video files read, and the module's table. Nothing of the program is called: a module may not. */
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <stdio.h>
#include <string.h>

#include "frames/libav/libav_calls.h"

typedef struct reader {
    AVFormatContext *file;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFrame *frame;
    struct SwsContext *convert; /* NULL: pixels are as they are */
    enum AVPixelFormat from, to;
    int stream, w, h;
    bool drained; /* the decoder was told that no packets are left */
    int ended;    /* why there are none, when that is an error: LW_E* */
    char why[LW_LIBAV_WHY];
} reader;

int lw_libav_bad(char *why, int code, const char *what, int reason)
{
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(reason, text, sizeof text);
    snprintf(why, LW_LIBAV_WHY, "%s: %s", what, text);
    return reason == AVERROR(ENOMEM) ? LW_ENOMEM : code;
}

static int bad(char *why, const char *what, int reason)
{
    return lw_libav_bad(why, LW_EFORMAT, what, reason);
}

/* What pixels of a file are read as. */
static enum AVPixelFormat target_of(enum AVPixelFormat from)
{
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(from);
    switch (from) {
    case AV_PIX_FMT_YUV420P:
    case AV_PIX_FMT_YUV422P:
    case AV_PIX_FMT_YUV444P:
    case AV_PIX_FMT_NV12:
    case AV_PIX_FMT_YUYV422:
    case AV_PIX_FMT_GRAY8:
    case AV_PIX_FMT_RGB24:
        return from;
    case AV_PIX_FMT_YUVJ420P:
        return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P:
        return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ444P:
        return AV_PIX_FMT_YUV444P;
    default:
        break;
    }
    if (!d || d->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_HWACCEL))
        return AV_PIX_FMT_RGB24;
    if (d->nb_components < 3)
        return AV_PIX_FMT_GRAY8;
    if (d->log2_chroma_h > 0)
        return AV_PIX_FMT_YUV420P;
    return d->log2_chroma_w > 0 ? AV_PIX_FMT_YUV422P : AV_PIX_FMT_YUV444P;
}

static lw_pixels_form form_of(enum AVPixelFormat to)
{
    switch (to) {
    case AV_PIX_FMT_YUV422P:
        return LW_PIXELS_422;
    case AV_PIX_FMT_YUV444P:
        return LW_PIXELS_444;
    case AV_PIX_FMT_NV12:
        return LW_PIXELS_NV12;
    case AV_PIX_FMT_YUYV422:
        return LW_PIXELS_YUYV;
    case AV_PIX_FMT_GRAY8:
        return LW_PIXELS_GRAY;
    case AV_PIX_FMT_RGB24:
        return LW_PIXELS_RGB;
    default:
        return LW_PIXELS_420;
    }
}

static bool is_full(enum AVPixelFormat from, enum AVColorRange range)
{
    return range == AVCOL_RANGE_JPEG || from == AV_PIX_FMT_YUVJ420P ||
           from == AV_PIX_FMT_YUVJ422P || from == AV_PIX_FMT_YUVJ444P;
}

/* Deeper or rarer pixels become 8 bits of the nearest layout; range and matrix stay what they are. */
static int open_convert(reader *r, lw_libav_said *said, char *why)
{
    const AVCodecContext *c = r->codec;
    const bool same_bytes = r->to == r->from || is_full(r->from, AVCOL_RANGE_UNSPECIFIED);
    if (same_bytes)
        return 0;
    snprintf(said->converted, sizeof said->converted, "%s", av_get_pix_fmt_name(r->from));
    r->convert = sws_getContext(r->w, r->h, r->from, r->w, r->h, r->to,
                                SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT, NULL, NULL,
                                NULL);
    if (!r->convert) {
        snprintf(why, LW_LIBAV_WHY, "pixels %s cannot be converted", said->converted);
        return LW_EUNSUPPORTED;
    }
    const int *colours = sws_getCoefficients(c->colorspace == AVCOL_SPC_BT709 ? SWS_CS_ITU709
                                                                              : SWS_CS_ITU601);
    const int full = is_full(r->from, c->color_range);
    sws_setColorspaceDetails(r->convert, colours, full, colours, full, 0, 1 << 16, 1 << 16);
    return 0;
}

/* Containers of the five endings and nothing else: a text that names other files is no video. */
static int open_file(reader *r, const char *path, char *why)
{
    char url[4200];
    int rc = AVERROR_INVALIDDATA;
    if (snprintf(url, sizeof url, "file:%s", path) >= (int)sizeof url) {
        snprintf(why, LW_LIBAV_WHY, "its name is too long");
        return LW_EIO;
    }
    /* Read front to back where that fails: an index cut off at the end is not looked for. */
    for (int seekable = 1; seekable >= 0 && rc == AVERROR_INVALIDDATA; seekable--) {
        AVDictionary *only = NULL;
        av_dict_set(&only, "format_whitelist", "mov,matroska,webm,avi", 0);
        av_dict_set(&only, "protocol_whitelist", "file", 0);
        if (!seekable)
            av_dict_set(&only, "seekable", "0", 0);
        rc = avformat_open_input(&r->file, url, NULL, &only);
        av_dict_free(&only);
    }
    if (rc >= 0)
        rc = avformat_find_stream_info(r->file, NULL);
    return rc < 0 ? bad(why, "no video file, or cut off before its index", rc) : 0;
}

static int open_codec(reader *r, char *why)
{
    const AVCodec *codec = NULL;
    r->stream = av_find_best_stream(r->file, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
    if (r->stream < 0 || !codec) {
        snprintf(why, LW_LIBAV_WHY, "no video in it that can be decoded");
        return LW_EFORMAT;
    }
    for (unsigned i = 0; i < r->file->nb_streams; i++)
        if ((int)i != r->stream)
            r->file->streams[i]->discard = AVDISCARD_ALL;
    r->codec = avcodec_alloc_context3(codec);
    r->packet = av_packet_alloc();
    r->frame = av_frame_alloc();
    if (!r->codec || !r->packet || !r->frame)
        return bad(why, "a decoder", AVERROR(ENOMEM));
    int rc = avcodec_parameters_to_context(r->codec, r->file->streams[r->stream]->codecpar);
    r->codec->thread_count = 1; /* threads are the program's */
    r->codec->max_pixels = LW_FRAME_MAX_PIXELS;
    if (rc >= 0)
        rc = avcodec_open2(r->codec, codec, NULL);
    return rc < 0 ? bad(why, "cannot decode", rc) : 0;
}

static void describe(reader *r, lw_frame_format *f, lw_libav_said *said)
{
    AVStream *stream = r->file->streams[r->stream];
    const AVRational rate = av_guess_frame_rate(r->file, stream, NULL);
    const uint8_t *matrix = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, NULL);
    *f = (lw_frame_format){.form = form_of(r->to), .w = r->w, .h = r->h, .rate = 25, .per = 1};
    if (rate.num > 0 && rate.den > 0 && rate.num / rate.den <= 1000) {
        f->rate = rate.num;
        f->per = rate.den;
    }
    said->full_range = is_full(r->from, r->codec->color_range);
    said->matrix = r->codec->colorspace == AVCOL_SPC_BT709 ? 2
                   : r->codec->colorspace == AVCOL_SPC_BT470BG ||
                           r->codec->colorspace == AVCOL_SPC_SMPTE170M
                       ? 1
                       : 0;
    said->turned = matrix ? av_display_rotation_get((const int32_t *)matrix) : 0;
}

static int read_open(const char *path, lw_frame_format *f, lw_libav_said *said, void **out,
                     char *why)
{
    reader *r = *out = av_mallocz(sizeof *r);
    int rc;
    *said = (lw_libav_said){0};
    why[0] = '\0';
    av_log_set_level(AV_LOG_QUIET); /* reasons are returned */
    if (!r)
        return bad(why, "a reader", AVERROR(ENOMEM));
    if ((rc = open_file(r, path, why)) < 0 || (rc = open_codec(r, why)) < 0)
        return rc;
    r->w = r->codec->width;
    r->h = r->codec->height;
    r->from = r->codec->pix_fmt;
    r->to = target_of(r->from);
    if (r->w < 1 || r->h < 1 || r->from == AV_PIX_FMT_NONE) {
        snprintf(why, LW_LIBAV_WHY, "no frame of it can be decoded");
        return LW_EFORMAT;
    }
    if ((rc = open_convert(r, said, why)) < 0)
        return rc;
    describe(r, f, said);
    return 0;
}

/* There are no more packets; what the decoder still holds comes first. */
static void end(reader *r, int code)
{
    r->ended = code;
    r->drained = true;
    avcodec_send_packet(r->codec, NULL);
}

/* The next packet of the video into the decoder. */
static void feed(reader *r)
{
    int rc;
    while ((rc = av_read_frame(r->file, r->packet)) >= 0 && r->packet->stream_index != r->stream)
        av_packet_unref(r->packet);
    if (rc == AVERROR_EOF && !(r->file->pb && r->file->pb->error)) {
        end(r, 0);
        return;
    }
    if (rc < 0) {
        end(r, bad(r->why, "cut off or damaged", rc));
        return;
    }
    if (r->packet->flags & AV_PKT_FLAG_CORRUPT) {
        snprintf(r->why, sizeof r->why, "cut off");
        end(r, LW_EFORMAT);
    } else if ((rc = avcodec_send_packet(r->codec, r->packet)) < 0) {
        end(r, bad(r->why, "damaged", rc));
    }
    av_packet_unref(r->packet);
}

static int copy(reader *r, uint8_t *bytes, char *why)
{
    const AVFrame *f = r->frame;
    const int n = av_image_get_buffer_size(r->to, r->w, r->h, 1);
    if (f->width != r->w || f->height != r->h || f->format != (int)r->from) {
        snprintf(why, LW_LIBAV_WHY, "%dx%d pixels %s, those before it have %dx%d %s", f->width,
                 f->height, av_get_pix_fmt_name((enum AVPixelFormat)f->format), r->w, r->h,
                 av_get_pix_fmt_name(r->from));
        return LW_EFORMAT;
    }
    if (f->decode_error_flags || f->flags & AV_FRAME_FLAG_CORRUPT) {
        snprintf(why, LW_LIBAV_WHY, "damaged");
        return LW_EFORMAT;
    }
    if (!r->convert)
        return av_image_copy_to_buffer(bytes, n, (const uint8_t *const *)f->data, f->linesize,
                                       r->to, r->w, r->h, 1);
    uint8_t *plane[4];
    int line[4], rc = av_image_fill_arrays(plane, line, bytes, r->to, r->w, r->h, 1);
    if (rc >= 0)
        rc = sws_scale(r->convert, (const uint8_t *const *)f->data, f->linesize, 0, r->h, plane,
                       line);
    return rc;
}

static int read_next(void *self, uint8_t *bytes, char *why)
{
    reader *r = self;
    int rc;
    why[0] = '\0';
    while ((rc = avcodec_receive_frame(r->codec, r->frame)) == AVERROR(EAGAIN) && !r->drained)
        feed(r);
    if (rc == AVERROR_EOF || (rc < 0 && r->ended < 0)) {
        snprintf(why, LW_LIBAV_WHY, "%s", r->why);
        return r->ended < 0 ? r->ended : 1;
    }
    if (rc < 0)
        return bad(why, "damaged", rc);
    rc = copy(r, bytes, why);
    av_frame_unref(r->frame);
    if (rc < 0 && !why[0])
        return bad(why, "cannot copy", rc);
    return rc < 0 ? rc : 0;
}

static int read_rewind(void *self, char *why)
{
    reader *r = self;
    why[0] = '\0';
    int rc = av_seek_frame(r->file, r->stream, INT64_MIN, AVSEEK_FLAG_BACKWARD);
    if (rc < 0) /* containers without an index */
        rc = av_seek_frame(r->file, -1, 0, AVSEEK_FLAG_BYTE);
    if (rc < 0)
        return bad(why, "cannot begin again", rc);
    avcodec_flush_buffers(r->codec);
    r->drained = false;
    r->ended = 0;
    r->why[0] = '\0';
    return 0;
}

static void read_close(void **self)
{
    reader *r = *self;
    if (!r)
        return;
    sws_freeContext(r->convert);
    av_frame_free(&r->frame);
    av_packet_free(&r->packet);
    avcodec_free_context(&r->codec);
    avformat_close_input(&r->file);
    av_freep(self);
}

/* What cameras, phones and editors write; x264 and MPEG-4 are all that libav_write.c makes. */
static const char *codec(bool writes, int k)
{
    static const char *const reads[] = {"h264",  "hevc",     "vp8",   "vp9",
                                        "av1",   "libdav1d", "mpeg4", "mpeg2video",
                                        "mjpeg", "prores",   "ffv1",  NULL};
    static const char *const makes[] = {"libx264", "mpeg4", NULL};
    for (const char *const *name = writes ? makes : reads; *name; name++)
        if ((writes ? avcodec_find_encoder_by_name(*name) : avcodec_find_decoder_by_name(*name)) &&
            k-- == 0)
            return *name;
    return NULL;
}

extern const lw_libav_calls lw_module_libav;
__attribute__((visibility("default"))) const lw_libav_calls lw_module_libav = {
    .version = LW_LIBAV_VERSION,
    .open = read_open,
    .next = read_next,
    .rewind = read_rewind,
    .close_reader = read_close,
    .create = lw_libav_create,
    .put = lw_libav_put,
    .finish = lw_libav_finish,
    .close_writer = lw_libav_close_writer,
    .codec = codec,
};
