# SPDX-License-Identifier: Apache-2.0
# The public API linked in, then as an installed library. make_model is in tests/cli.
add_executable(test_api ${CMAKE_SOURCE_DIR}/tests/api/test_api.c ${CMAKE_SOURCE_DIR}/tests/api/layout.c)
target_link_libraries(test_api PRIVATE lw_api ${CMOCKA_LIBRARY})
set(models ${CMAKE_BINARY_DIR}/api)
add_test(NAME api_models COMMAND sh -c "rm -rf '${models}' && mkdir -p '${models}' && \
'$<TARGET_FILE:make_model>' unet '${models}/unet' && '$<TARGET_FILE:make_model>' encoder '${models}/encoder' && '$<TARGET_FILE:make_model>' clip '${models}/clip'")
set_tests_properties(api_models PROPERTIES LABELS api FIXTURES_SETUP api_models)
add_test(NAME test_api COMMAND test_api ${models}/unet ${models}/encoder ${models}/clip)
set_tests_properties(test_api PROPERTIES LABELS api FIXTURES_REQUIRED api_models)
# Whole API misused; again where inputs and outputs are copies (docs/adr/0016-device-contract.md), and on the emulated
# GPU (tests/cuda), where the API's other tests run again, too.
add_executable(test_misuse ${CMAKE_SOURCE_DIR}/tests/api/test_misuse.c)
target_link_libraries(test_misuse PRIVATE lw_api ${CMOCKA_LIBRARY})
set(gpu "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/emulated_gpu;UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1")
add_test(NAME api_cuda COMMAND test_api ${models}/unet ${models}/encoder ${models}/clip)
set_tests_properties(api_cuda PROPERTIES LABELS api FIXTURES_REQUIRED api_models ENVIRONMENT "LW_DEVICE=cuda;${gpu}")
foreach(where cpu cpu-discrete cuda)
  add_test(NAME api_misuse_${where} COMMAND test_misuse ${models}/unet)
  set_tests_properties(api_misuse_${where} PROPERTIES LABELS api FIXTURES_REQUIRED api_models
    ENVIRONMENT "LW_DEVICE=${where};${gpu}")
endforeach()
if(NOT LW_SANITIZE) # a program that is not built with the sanitizer cannot load a library that is
  find_program(LW_PYTHON python3)
  if(LW_PYTHON)
    set(python "LEEWAY=$<TARGET_FILE:leeway>;MODELS=${models};PYTHONPATH=${CMAKE_SOURCE_DIR}/python;LEEWAY_LIBRARY=$<TARGET_FILE:leeway_shared>;PYTHONDONTWRITEBYTECODE=1")
    add_test(NAME api_python COMMAND ${LW_PYTHON} ${CMAKE_SOURCE_DIR}/tests/api/test_python.py)
    set_tests_properties(api_python PROPERTIES LABELS api FIXTURES_REQUIRED api_models SKIP_RETURN_CODE 77 ENVIRONMENT "${python}")
    add_test(NAME api_python_cuda COMMAND ${LW_PYTHON} ${CMAKE_SOURCE_DIR}/tests/api/test_python.py
      Running.test_device_stays_for_its_models)
    set_tests_properties(api_python_cuda PROPERTIES LABELS api FIXTURES_REQUIRED api_models SKIP_RETURN_CODE 77
      ENVIRONMENT "LW_DEVICE=cuda;${gpu};${python}")
    # Exit code 77, a skip with its reason: neither ONNX Runtime nor OpenVINO is there.
    add_test(NAME onnx_check COMMAND ${LW_PYTHON} ${CMAKE_SOURCE_DIR}/tools/onnx_check.py $<TARGET_FILE:leeway>
      ${models}/unet ${models}/encoder ${models}/clip)
    set_tests_properties(onnx_check PROPERTIES LABELS api FIXTURES_REQUIRED api_models SKIP_RETURN_CODE 77)
  else()
    message(STATUS "api_python is not tested: there is no python3")
  endif()
endif()
if(NOT LW_SANITIZE) # an example built without the sanitizer cannot load a library built with it
  add_test(NAME api_install COMMAND sh ${CMAKE_SOURCE_DIR}/tests/api/install.sh ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}
    ${CMAKE_BINARY_DIR}/api_install ${CMAKE_C_COMPILER})
  set_tests_properties(api_install PROPERTIES LABELS api TIMEOUT 300)
  # Exit code 77, a skip with its reason: a system without Debian's tools.
  add_test(NAME api_package COMMAND sh ${CMAKE_SOURCE_DIR}/tests/api/package.sh ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}
    ${CMAKE_BINARY_DIR}/api_package ${CMAKE_C_COMPILER})
  set_tests_properties(api_package PROPERTIES LABELS api TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()
