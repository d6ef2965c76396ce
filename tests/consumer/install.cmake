# Installs the build into a folder, then moves it: a package must not remember
# where it was made. Run with -DBUILD=... -DPREFIX=... -DCONFIG=...
file(REMOVE_RECURSE ${PREFIX} ${PREFIX}.staging)
execute_process(
  COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX}.staging
    --config ${CONFIG}
  COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${PREFIX}.staging ${PREFIX})
