#include "wire/capture_reader.h"

#include <pcap/pcap.h>

#include <memory>
#include <stdexcept>

namespace cepheus::wire {

std::vector<Packet> read_capture(const std::string& name) {
  const std::string path = CEPHEUS_SOURCE_DIR "/wire/testdata/" + name;
  char reason[PCAP_ERRBUF_SIZE];
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> capture(
      pcap_open_offline(path.c_str(), reason), pcap_close);
  if (!capture) throw std::runtime_error(reason);
  if (pcap_datalink(capture.get()) != DLT_EN10MB) throw std::runtime_error(path + ": not Ethernet");

  std::vector<Packet> packets;
  pcap_pkthdr* info;
  const u_char* bytes;
  int status;
  while ((status = pcap_next_ex(capture.get(), &info, &bytes)) == 1) {
    if (info->caplen != info->len) throw std::runtime_error(path + ": a packet is cut short");
    packets.emplace_back(bytes, bytes + info->caplen);
  }
  if (status != PCAP_ERROR_BREAK) throw std::runtime_error(pcap_geterr(capture.get()));
  if (packets.empty()) throw std::runtime_error(path + ": empty");
  return packets;
}

}  // namespace cepheus::wire
