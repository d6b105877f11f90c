# What `cmake --install` puts where, and the .deb that `cpack` makes of it. The simulator is for tests: it stays out.
install(TARGETS crcr-ingest crcr-dispatcher crcr-reporter crcrctl RUNTIME DESTINATION bin)
install(SCRIPT deploy/systemd/install_units.cmake)
install(FILES deploy/topics/topics.conf deploy/systemd/crcr.env DESTINATION share/crcr)
install(FILES deploy/redis/users DESTINATION share/crcr/redis)
install(PROGRAMS deploy/redis/make-users DESTINATION share/crcr/redis)
install(FILES deploy/topics/users.conf DESTINATION share/crcr/topics)
install(PROGRAMS deploy/topics/acls DESTINATION share/crcr/topics)
install(PROGRAMS deploy/capacity DESTINATION share/crcr)
install(FILES deploy/monitoring/alerts.yml deploy/monitoring/alerts_test.yml deploy/monitoring/alerts_kubernetes.yml
              deploy/monitoring/alerts_kubernetes_test.yml deploy/monitoring/dashboard.json deploy/monitoring/prometheus.yml
              deploy/monitoring/prometheus_compose.yml DESTINATION share/crcr/monitoring)
install(FILES deploy/proxy/nginx.conf DESTINATION share/crcr/proxy)
# crcrctl prints its own manual page and completion; the folders are those that Debian's shells look into.
foreach(page manual "completion bash" "completion zsh" "completion fish")
  string(REPLACE " " "." file "crcrctl.${page}")
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:crcrctl>\" ${page} COMMAND_ERROR_IS_FATAL ANY
                                OUTPUT_FILE \"${CMAKE_BINARY_DIR}/${file}\")")
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/crcrctl.manual DESTINATION share/man/man1 RENAME crcrctl.1)
install(FILES ${CMAKE_BINARY_DIR}/crcrctl.completion.bash DESTINATION share/bash-completion/completions RENAME crcrctl)
install(FILES ${CMAKE_BINARY_DIR}/crcrctl.completion.zsh DESTINATION share/zsh/vendor-completions RENAME _crcrctl)
install(FILES ${CMAKE_BINARY_DIR}/crcrctl.completion.fish DESTINATION share/fish/vendor_completions.d RENAME crcrctl.fish)
# All documents, and what they link to: in an installed tree, too, each link leads somewhere.
file(GLOB_RECURSE documents RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS
     .github/*.md common/*.md ingest/*.md dispatcher/*.md reporter/*.md deploy/*.md tests/*README.md deploy/hud/*.webp)
foreach(document README.md LICENSE ${documents} reporter/web/openapi.json ingest/openapi.json deploy/redis/users deploy/topics/users.conf
                 deploy/github-app/manifest.json deploy/proxy/nginx.conf)
  get_filename_component(folder ${document} DIRECTORY)
  install(FILES ${document} DESTINATION share/doc/crcr/${folder})
endforeach()

# 0.3.0 of the commit with the tag v0.3.0, and where no commit is known; else 0.3.0+git<its time in UTC>.<commit>, which
# sorts after 0.3.0 and before 0.3.1.
set(version "${PROJECT_VERSION}")
execute_process(COMMAND git describe --tags --exact-match --dirty --match=v${PROJECT_VERSION}
                WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE tag OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(commit AND NOT tag STREQUAL "v${PROJECT_VERSION}")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S
                  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE committed OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_QUIET)
  string(REPLACE "-" "." version "${version}+git${committed}.${commit}")
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME crcr)
set(CPACK_PACKAGE_VERSION ${version})
set(CPACK_PACKAGE_CONTACT "CRCR operators <crcr@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_SET_DESTDIR ON) # the units name /usr/bin, not the folder in which the package is put together
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS ca-certificates)
include(CPack)
