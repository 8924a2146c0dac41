# The status of a live fabric and its control protocol, which are all that its tools need.
find_package(nlohmann_json REQUIRED)

cepheus_library(status
  SOURCES control_protocol.cc fabric_view.cc metrics.cc printable.cc readings.cc status.cc status_json.cc status_text.cc text_table.cc topology_graph.cc topology_svg.cc topology_text.cc
  LIBS cepheus::net cepheus::wire nlohmann_json::nlohmann_json COLD)

cepheus_test(status SOURCES control_protocol_test.cc counter_descriptions_test.cc fabric_view_test.cc metrics_test.cc printable_test.cc readings_test.cc status_test.cc text_table_test.cc topology_test.cc LIBS cepheus::switch_emulator_live_status)
