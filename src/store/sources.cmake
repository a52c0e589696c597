set(SOURCES
  store_table.c store_init.c store_layout.c store_naming.c store_match.c
  store_load.c store_save.c store_checkpoint.c
  store_checkpoint_load.c store_checkpoint_dirs.c)
