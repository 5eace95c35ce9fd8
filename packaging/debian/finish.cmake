# SPDX-License-Identifier: BSD-3-Clause
# CPack runs this on the files of a package before it packs them. An archive stays as it is. A Debian package gets what
# Debian's policy asks for (chapter 12: copyright, changelogs, compressed manual pages), and loses what has no place in it.
if(NOT CPACK_GENERATOR STREQUAL DEB)
  return()
endif()
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX})
set(doc ${root}/share/doc/vecmpi)

# The benchmark for Open MPI would make the package depend on it. A module would put /usr before a site's own paths.
file(REMOVE ${root}/bin/vecmpi-bench-ranks-openmpi ${root}/share/man/man1/vecmpi-bench-ranks-openmpi.1)
file(REMOVE_RECURSE ${root}/share/vecmpi/modulefiles)

function(compress file)
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# A page that only names another one (.so) is a link to it: the named page has another name now.
file(GLOB_RECURSE pages ${root}/share/man/*)
foreach(page IN LISTS pages)
  file(READ ${page} text LIMIT 200)
  if(text MATCHES "^\\.so man[0-9]/([^\n]+)")
    file(REMOVE ${page})
    file(CREATE_LINK ${CMAKE_MATCH_1}.gz ${page}.gz SYMBOLIC)
  else()
    compress(${page})
  endif()
endforeach()

file(REMOVE ${doc}/LICENSE)  # the text is in copyright
file(COPY ${CMAKE_CURRENT_LIST_DIR}/copyright DESTINATION ${doc})
file(COPY ${CMAKE_CURRENT_LIST_DIR}/overrides DESTINATION ${root}/share/lintian)
file(RENAME ${doc}/CHANGELOG.md ${doc}/changelog)
compress(${doc}/changelog)
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, where that is set
file(WRITE ${doc}/changelog.Debian
     "vecmpi (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
     "  * Version ${CPACK_PACKAGE_VERSION}: see changelog.gz.\n\n"
     " -- ${CPACK_PACKAGE_CONTACT}  ${now}\n")
compress(${doc}/changelog.Debian)
