# SPDX-License-Identifier: Apache-2.0
# cmake -DDIR=folder -DFILES=a.html,b.css -DTABLE=lw_name -DHEADER=folder/header.h -DOUTPUT=name.c -P tools/embed.cmake:
# files as one C file with `const lw_embedded TABLE[]`, which HEADER declares.
set(text "/* Written by tools/embed.cmake. */\n#include \"${HEADER}\"\n\n")
set(rows "")
string(REPLACE "," ";" FILES "${FILES}")
foreach(file ${FILES})
  file(READ ${DIR}/${file} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(MAKE_C_IDENTIFIER ${file} id)
  string(APPEND text "static const unsigned char ${id}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${file}\", ${id}, sizeof ${id}},\n")
endforeach()
string(APPEND text "const lw_embedded ${TABLE}[] = {\n${rows}};\n")
file(WRITE ${OUTPUT} "${text}")
