# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=leeway -DDIR=share -P pages.cmake: manual pages and completions where programs look for them below share/.
file(REMOVE_RECURSE ${DIR})
function(write file)
  get_filename_component(folder ${DIR}/${file} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  execute_process(COMMAND ${PROGRAM} completion ${ARGN} OUTPUT_FILE ${DIR}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
write(bash-completion/completions/leeway bash)
write(zsh/site-functions/_leeway zsh)
write(fish/vendor_completions.d/leeway.fish fish)
execute_process(COMMAND ${PROGRAM} help --man ${DIR}/man/man1 COMMAND_ERROR_IS_FATAL ANY)
