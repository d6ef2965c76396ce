# Fails when the committed manifest is not what a scan of the templates prints.
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${FRESH} ${COMMITTED}
  RESULT_VARIABLE differs OUTPUT_QUIET ERROR_QUIET)
if(differs)
  message(FATAL_ERROR "${COMMITTED} is stale: run\n"
    "  cmake --build ${BUILD} --target update-manifest\n"
    "and commit the file")
endif()
