set(SOURCES
  cpu_device.c cpu_pack.c cpu_matmul.c cpu_conv.c cpu_upconv.c cpu_cast.c cpu_norm.c cpu_attention.c cpu_ew.c
  cpu_pitch.c cpu_shape.c cpu_random.c cpu_pairs.c cpu_bag.c cpu_drift.c cpu_optim.c)
