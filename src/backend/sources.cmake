set(SOURCES backend.c
  cpu/cpu_device.c cpu/cpu_discrete.c cpu/cpu_pack.c cpu/cpu_matmul.c cpu/cpu_conv.c cpu/cpu_depthwise.c cpu/cpu_chain.c cpu/cpu_upconv.c cpu/cpu_cast.c cpu/cpu_norm.c
  cpu/cpu_attention.c cpu/cpu_window.c cpu/cpu_ew.c cpu/cpu_pitch.c cpu/cpu_shape.c cpu/cpu_resize.c cpu/cpu_random.c cpu/cpu_pairs.c cpu/cpu_pixels.c cpu/cpu_bag.c
  cpu/cpu_reverse.c cpu/cpu_drift.c cpu/cpu_optim.c
  cuda/cuda_driver.c cuda/cuda_device.c cuda/cuda_replay.c cuda/cuda_marks.c cuda/cuda_pitch.c cuda/cuda_lower_product.c cuda/cuda_lower_norm.c cuda/cuda_lower_ew.c cuda/cuda_lower_move.c cuda/cuda_lower_rows.c cuda/cuda_lower_pixels.c
  cuda/cuda_lower_random.c cuda/cuda_lower_drift.c)
