/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mp4 files written front to back: a fragment for each second, begun by a key frame. What was written
 * plays wherever it ends, and nothing is ever gone back to, so a full disk costs the last second at
 * most. No frame waits for one behind it, and one thread codes: the same frames, the same bytes.
 */
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <stdio.h>
#include <string.h>

#include "frames/libav/libav_calls.h"

enum { BLOCK = 1 << 16 };

typedef struct writer {
    AVFormatContext *file;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFrame *frame;
    AVStream *stream; /* the file's */
    lw_libav_write_fn *write;
    void *self;
    bool begun;
} writer;

static int bad(char *why, const char *what, int reason)
{
    if (reason == AVERROR_EXTERNAL) { /* the callback's, which said why */
        why[0] = '\0';
        return LW_EIO;
    }
    return lw_libav_bad(why, LW_EIO, what, reason);
}

/* FFmpeg's bytes on their way out. */
static int hand_out(void *self, uint8_t *bytes, int n, enum AVIODataMarkerType what, int64_t time)
{
    (void)time;
    writer *w = self;
    const bool begins = what == AVIO_DATA_MARKER_SYNC_POINT ||
                        what == AVIO_DATA_MARKER_BOUNDARY_POINT || what == AVIO_DATA_MARKER_TRAILER;
    return w->write(w->self, bytes, (size_t)n, begins) < 0 ? AVERROR_EXTERNAL : n;
}

static int open_codec(writer *w, const lw_frame_format *f, char *why)
{
    /* x264 takes no odd sides of 4:2:0 */
    const AVCodec *x264 = avcodec_find_encoder_by_name("libx264");
    const AVCodec *codec = x264 && f->w % 2 == 0 && f->h % 2 == 0
                               ? x264
                               : avcodec_find_encoder(AV_CODEC_ID_MPEG4);
    AVCodecContext *c = w->codec = codec ? avcodec_alloc_context3(codec) : NULL;
    AVDictionary *how = NULL;
    if (!codec) {
        snprintf(why, LW_LIBAV_WHY, "FFmpeg has neither libx264 nor mpeg4");
        return LW_EUNSUPPORTED;
    }
    if (!c)
        return bad(why, "a coder", AVERROR(ENOMEM));
    c->width = f->w;
    c->height = f->h;
    c->pix_fmt = AV_PIX_FMT_YUV420P;
    c->time_base = (AVRational){f->per, f->rate};
    c->framerate = (AVRational){f->rate, f->per};
    c->gop_size = LW_MAX(f->rate / f->per, 1);
    c->max_b_frames = 0;
    c->thread_count = 1;
    c->color_range = AVCOL_RANGE_MPEG;
    c->colorspace = f->matrix == LW_MATRIX_709 ? AVCOL_SPC_BT709 : AVCOL_SPC_SMPTE170M;
    c->color_primaries = f->matrix == LW_MATRIX_709 ? AVCOL_PRI_BT709 : AVCOL_PRI_SMPTE170M;
    c->color_trc = AVCOL_TRC_BT709;
    c->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    if (codec == x264) {
        av_dict_set(&how, "preset", "veryfast", 0);
        av_dict_set(&how, "tune", "zerolatency", 0);
        av_dict_set(&how, "crf", "20", 0);
    } else {
        c->flags |= AV_CODEC_FLAG_QSCALE;
        c->global_quality = 3 * FF_QP2LAMBDA;
        if (c->time_base.den > 65535) /* what MPEG-4 can count */
            av_reduce(&c->time_base.num, &c->time_base.den, f->per, f->rate, 65535);
    }
    int rc = avcodec_open2(c, codec, &how);
    av_dict_free(&how);
    return rc < 0 ? bad(why, codec->name, rc) : 0;
}

static int open_file(writer *w, char *why)
{
    AVDictionary *how = NULL;
    unsigned char *block = av_malloc(BLOCK);
    int rc = block ? avformat_alloc_output_context2(&w->file, NULL, "mp4", NULL) : AVERROR(ENOMEM);
    if (rc >= 0) {
        w->file->pb = avio_alloc_context(block, BLOCK, 1, w, NULL, NULL, NULL);
        w->stream = avformat_new_stream(w->file, NULL);
    }
    if (rc < 0 || !w->file->pb || !w->stream) {
        if (!w->file || !w->file->pb)
            av_free(block);
        return bad(why, "cannot begin", rc < 0 ? rc : AVERROR(ENOMEM));
    }
    w->file->pb->seekable = 0;
    w->file->pb->write_data_type = hand_out;
    w->file->flags |= AVFMT_FLAG_CUSTOM_IO | AVFMT_FLAG_BITEXACT;
    w->stream->time_base = w->codec->time_base;
    w->stream->avg_frame_rate = w->codec->framerate;
    rc = avcodec_parameters_from_context(w->stream->codecpar, w->codec);
    av_dict_set(&how, "movflags", "frag_keyframe+empty_moov+default_base_moof", 0);
    if (rc >= 0)
        rc = avformat_write_header(w->file, &how);
    av_dict_free(&how);
    w->begun = rc >= 0;
    return rc < 0 ? bad(why, "cannot begin", rc) : 0;
}

int lw_libav_create(const lw_frame_format *f, lw_libav_write_fn *write, void *self, void **out,
                    const char **coder, char *why)
{
    writer *w = *out = av_mallocz(sizeof *w);
    int rc;
    why[0] = '\0';
    av_log_set_level(AV_LOG_QUIET);
    if (!w)
        return bad(why, "a writer", AVERROR(ENOMEM));
    w->write = write;
    w->self = self;
    w->packet = av_packet_alloc();
    w->frame = av_frame_alloc();
    if (!w->packet || !w->frame)
        return bad(why, "a writer", AVERROR(ENOMEM));
    if ((rc = open_codec(w, f, why)) < 0 || (rc = open_file(w, why)) < 0)
        return rc;
    w->frame->pts = 0;
    w->frame->width = f->w;
    w->frame->height = f->h;
    w->frame->format = AV_PIX_FMT_YUV420P;
    if ((rc = av_frame_get_buffer(w->frame, 0)) < 0)
        return bad(why, "a frame", rc);
    *coder = w->codec->codec->name;
    return 0;
}

/* A frame, or NULL for the end, through the coder; packets that come out go into the file. */
static int code(writer *w, const AVFrame *frame, char *why)
{
    int rc = avcodec_send_frame(w->codec, frame);
    while (rc >= 0) {
        rc = avcodec_receive_packet(w->codec, w->packet);
        if (rc == AVERROR(EAGAIN) || rc == AVERROR_EOF)
            return 0;
        if (rc < 0)
            break;
        w->packet->duration = 1;
        w->packet->stream_index = 0;
        av_packet_rescale_ts(w->packet, w->codec->time_base, w->stream->time_base);
        rc = av_write_frame(w->file, w->packet);
        av_packet_unref(w->packet);
        if (rc >= 0 && w->file->pb->error < 0)
            rc = w->file->pb->error;
    }
    return bad(why, "cannot code", rc);
}

int lw_libav_put(void *self, const uint8_t *bytes, char *why)
{
    writer *w = self;
    const uint8_t *plane[4];
    int line[4], rc = av_frame_make_writable(w->frame);
    why[0] = '\0';
    if (rc >= 0) /* copied from, whatever the type says */
        rc = av_image_fill_arrays((uint8_t **)plane, line, bytes, AV_PIX_FMT_YUV420P,
                                  w->frame->width, w->frame->height, 1);
    if (rc < 0)
        return bad(why, "a frame", rc);
    av_image_copy(w->frame->data, w->frame->linesize, plane, line, AV_PIX_FMT_YUV420P,
                  w->frame->width, w->frame->height);
    rc = code(w, w->frame, why);
    w->frame->pts++;
    return rc;
}

int lw_libav_finish(void *self, char *why)
{
    writer *w = self;
    why[0] = '\0';
    int rc = code(w, NULL, why);
    if (rc < 0)
        return rc;
    w->begun = false;
    rc = av_write_trailer(w->file);
    if (rc >= 0 && w->file->pb->error < 0)
        rc = w->file->pb->error;
    return rc < 0 ? bad(why, "cannot end", rc) : 0;
}

static int hand_nothing(void *self, uint8_t *bytes, int n, enum AVIODataMarkerType what,
                        int64_t time)
{
    (void)self;
    (void)bytes;
    (void)what;
    (void)time;
    return n;
}

void lw_libav_close_writer(void **self)
{
    writer *w = *self;
    if (!w)
        return;
    if (w->begun) { /* frees what the format holds; its bytes go nowhere */
        w->file->pb->write_data_type = hand_nothing;
        av_write_trailer(w->file);
    }
    if (w->file && w->file->pb) {
        av_freep(&w->file->pb->buffer);
        avio_context_free(&w->file->pb);
    }
    avformat_free_context(w->file);
    av_frame_free(&w->frame);
    av_packet_free(&w->packet);
    avcodec_free_context(&w->codec);
    av_freep(self);
}
