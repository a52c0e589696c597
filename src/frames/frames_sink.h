/* SPDX-License-Identifier: Apache-2.0 */
/* What a kind of sink is. */
#ifndef LW_FRAMES_SINK_H
#define LW_FRAMES_SINK_H

#include "frames/frames.h"

typedef struct lw_frame_sink_def {
    const char *word, *spoken; /* as of sources */
    bool timed;
    int (*open)(lw_frame_sink *s, const char *spec); /* may change format */
    int (*put)(lw_frame_sink *s, const uint8_t *rgb);
    int (*finish)(lw_frame_sink *s, char text[64]);
    void (*close)(lw_frame_sink *s);
} lw_frame_sink_def;

extern const lw_frame_sink_def lw_frames_to_y4m, lw_frames_to_pipe, lw_frames_to_mjpeg,
    lw_frames_to_mp4, lw_frames_to_v4l2, lw_frames_to_folder, lw_frames_to_md5, lw_frames_to_null;

/* LW_EUSAGE: the folder holds frames already, which would stay beside new ones. LW_EIO. */
int lw_frame_folder_check(const char *dir);

/* A frame appended to a file; one that cannot be written whole is cut off again, and what is there is
 * finished, so that the frames before it are kept; with none before it there is no file. LW_EIO. */
typedef struct lw_frame_file {
    lw_new_file file;
    uint64_t size, whole, header; /* written; up to the last whole frame; before the first */
    bool seconds;                 /* frames get there by the second, not one by one */
} lw_frame_file;
int lw_frame_file_put(lw_frame_file *f, const void *bytes, size_t n);
/* The same in pieces: each added, then what is there is whole. */
int lw_frame_file_add(lw_frame_file *f, const void *bytes, size_t n);
void lw_frame_file_whole(lw_frame_file *f);
void lw_frame_file_header(lw_frame_file *f); /* what is there is no frame yet */

#endif
