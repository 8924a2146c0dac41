# One RPM of what is installed, by CPack: ./run package --rpm. Debian's packages are debian/'s; CPack makes no others.
set(CPACK_GENERATOR RPM)
set(CPACK_PACKAGE_NAME cepheus)
set(CPACK_PACKAGE_VENDOR "The Cepheus authors")
set(CPACK_PACKAGE_CONTACT "The Cepheus authors <maintainers@cepheus.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RPM_PACKAGE_DESCRIPTION
  "With Cepheus one ordinary RDMA connection (RC) per member talks to a whole group:
switches replicate data packets along a tree, rewrite each copy for its
receiver, and merge the receivers' acknowledgements. This package has the
switch, MPI_Bcast over it for Open MPI and UCX, the library, a RoCE NIC in user
space, replicated volumes, and what operating them takes.")
set(CPACK_RPM_PACKAGE_LICENSE BSD-3-Clause)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)  # /etc lies outside of the prefix
set(CPACK_STRIP_FILES ON)
set(CPACK_RPM_USER_FILELIST "%config(noreplace) /etc/cepheus/fabric.toml")
# Directories of the distribution's own.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
  /etc /usr /usr/bin /usr/include /usr/lib /usr/lib64 /usr/lib64/nbdkit /usr/lib64/nbdkit/plugins /usr/lib64/openmpi
  /usr/lib64/pkgconfig /usr/lib64/wireshark /usr/lib64/wireshark/plugins /usr/lib/systemd /usr/lib/systemd/system /usr/share
  /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/doc /usr/share/man /usr/share/man/man1
  /usr/share/man/man7)
# Programs load these; they satisfy nobody's need of a library.
set(CPACK_RPM_SPEC_MORE_DEFINE
  "%global __provides_exclude_from ^/usr/lib64/(cepheus|nbdkit)/.*\$\n%global _build_id_links none\n%global use_source_date_epoch_as_buildtime 1\n%global clamp_mtime_to_source_date_epoch 1\n%global _buildhost reproducible")
set(CPACK_RPM_PACKAGE_REQUIRES python3)
set(CPACK_RPM_POST_INSTALL_SCRIPT_FILE ${CMAKE_CURRENT_LIST_DIR}/ldconfig.sh)
set(CPACK_RPM_POST_UNINSTALL_SCRIPT_FILE ${CMAKE_CURRENT_LIST_DIR}/ldconfig.sh)
include(CPack)
