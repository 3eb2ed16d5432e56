# What is installed, all of it relative to the prefix, so that `cmake --install --prefix` and moving the
# directory both work.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tenure)
set(pkgconfig ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# The static libraries under a second directory, without the shared ones: `pkg-config --static` puts it
# first.
set(archives ${CMAKE_INSTALL_LIBDIR}/tenure)
file(RELATIVE_PATH TENURE_PREFIX_FROM_PC ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})

foreach(mode IN ITEMS "tenure 0" "tenure-hardened 1" "tenure-debug 2")
  string(REPLACE " " ";" mode ${mode})
  list(GET mode 0 TENURE_LIBRARY)
  list(GET mode 1 TENURE_MODE_NUMBER)
  install(TARGETS ${TENURE_LIBRARY}_static ${TENURE_LIBRARY}_shared EXPORT tenure-targets
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  configure_file(cmake/tenure.pc.in ${TENURE_LIBRARY}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${TENURE_LIBRARY}.pc DESTINATION ${pkgconfig})
  if(UNIX)
    set(archive lib${TENURE_LIBRARY}.a)
    install(CODE "set(archives \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${archives}\")
      file(MAKE_DIRECTORY \${archives})
      file(CREATE_LINK ../${archive} \${archives}/${archive} SYMBOLIC)")
  endif()
endforeach()
configure_file(cmake/tenure-directory.pc.in tenure-directory.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tenure-directory.pc DESTINATION ${pkgconfig})

install(DIRECTORY c/include/tenure cpp/include/tenure DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT tenure-targets NAMESPACE tenure:: DESTINATION ${package})
configure_package_config_file(cmake/tenure-config.cmake.in tenure-config.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(tenure-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tenure-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/tenure-config-version.cmake DESTINATION ${package})

install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.md)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING
  PATTERN *.c PATTERN *.cpp PATTERN *.expected)
if(TENURE_TOP)
  install(TARGETS tenure-top)
  install(FILES c/top/tenure-top.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
# A page for each header of the C API.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  file(GLOB headers CONFIGURE_DEPENDS c/include/tenure/*.h)
  set(pages ${CMAKE_CURRENT_BINARY_DIR}/man)
  add_custom_command(OUTPUT ${pages}/stamp
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/man_pages.py ${PROJECT_VERSION} ${pages}
      ${headers}
    COMMAND ${CMAKE_COMMAND} -E touch ${pages}/stamp
    DEPENDS tools/man_pages.py ${headers} VERBATIM)
  add_custom_target(tenure_man ALL DEPENDS ${pages}/stamp)
  install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3 FILES_MATCHING PATTERN *.3)
else()
  message(STATUS "No python3: the man pages of section 3 are left out")
endif()
