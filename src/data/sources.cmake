# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  data_spec.c data_open.c data_cache.c data_cache_list.c data_sink.c data_fill.c data_range.c
  sources/data_synth.c sources/data_cifar.c sources/data_cifar_files.c sources/data_mnist.c
  sources/data_folder.c sources/data_folder_list.c sources/data_folder_size.c
  sources/data_manifest.c sources/data_tensor.c sources/data_shards.c sources/data_webdataset.c sources/data_video.c
  data_clips.c data_loader.c data_classes.c data_queue.c data_check.c data_degrade.c data_export.c data_listing.c data_sheet.c data_junk.c data_junk_pixels.c data_view.c
  data_pixels.c data_prepare.c data_prepare_read.c data_prepare_write.c data_features.c)
