# SPDX-License-Identifier: Apache-2.0
# cmake -DSOURCE=... -DOUTPUT=... -P commit.cmake: writes the commit as a C header, only when it changed.
set(commit "unknown")
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --match=nothing
  OUTPUT_VARIABLE said RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT failed AND said)
  set(commit ${said})
endif()
set(text "#define LW_COMMIT \"${commit}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE ${OUTPUT} "${text}")
endif()
