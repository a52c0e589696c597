set(SOURCES
  ir_type.c ir_graph.c ir_ops.c ir_builder.c ir_print.c ir_hash.c
  ops/op_leaf.c ops/op_ew.c ops/op_cast.c ops/op_matmul.c ops/op_conv.c ops/op_depthwise.c ops/op_conv_chain.c ops/op_upconv.c ops/op_norm.c ops/op_attention.c
  ops/op_reduce.c ops/op_shape.c ops/op_space.c ops/op_random.c ops/op_pairs.c ops/op_pixels.c ops/op_bag.c ops/op_reverse.c ops/op_drift.c)
