# How library and programs are installed, and found by find_package(logpjit).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/logpjit)

# Before 1.0 a minor version may change the binary interface.
set_target_properties(logpjit PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(logpjit INTERFACE cxx_std_20)
target_include_directories(logpjit INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# Another copy of Boost.Context may live in the same process.
target_link_options(logpjit PRIVATE LINKER:--exclude-libs,libboost_context.a)
add_library(logpjit::logpjit ALIAS logpjit)

install(TARGETS logpjit EXPORT logpjitTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/logpjit
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/logpjit)

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/logpjitConfig.cmake.in logpjitConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(logpjitConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(EXPORT logpjitTargets NAMESPACE logpjit:: DESTINATION ${package_dir})
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/logpjitConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/logpjitConfigVersion.cmake
  DESTINATION ${package_dir})

# Programs are defined by folders that are read later, or not at all: their
# rules are added when the whole tree is known.
function(logpjit_install_programs)
  foreach(program logpjit_cli logpjit-scan)
    if(TARGET ${program})
      # Where libclang is outside the loader's folders.
      set_target_properties(${program} PROPERTIES
        INSTALL_RPATH_USE_LINK_PATH TRUE)
      install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    endif()
  endforeach()
endfunction()
cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR}
  CALL logpjit_install_programs)
