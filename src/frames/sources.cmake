# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  frames_browser.c frames_bytes.c frames_camera.c frames_folder.c frames_md5.c frames_mjpeg.c frames_sink.c frames_source.c frames_test.c frames_v4l2.c frames_video.c frames_y4m.c)
set(libav_SOURCES libav/libav_read.c libav/libav_write.c)
