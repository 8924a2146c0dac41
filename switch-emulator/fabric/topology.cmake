# A fabric's description (topology), its snapshot (status) and how to ask a running one (control protocol).
find_package(nlohmann_json REQUIRED)

cepheus_library(topology
  SOURCES control_protocol.cc nearest_name.cc status.cc status_json.cc status_text.cc text_table.cc toml_table.cc topology.cc
          topology_check.cc topology_file.cc units.cc
  LIBS cepheus::mrp_key cepheus::wire nlohmann_json::nlohmann_json)

if(BUILD_TESTING)
  find_package(rapidcheck REQUIRED)
endif()
cepheus_test(units_test SOURCES units_test.cc LIBS cepheus::topology rapidcheck)
cepheus_test(topology_test SOURCES topology_test.cc topology_file_test.cc LIBS cepheus::topology rapidcheck)
cepheus_test(status_test SOURCES status_test.cc text_table_test.cc LIBS cepheus::topology)
cepheus_test(control_protocol_test SOURCES control_protocol_test.cc LIBS cepheus::topology)
