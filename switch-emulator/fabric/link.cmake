cepheus_library(link SOURCES link.cc LIBS cepheus::wire)
cepheus_test(link_test SOURCES link_test.cc LIBS cepheus::link)
