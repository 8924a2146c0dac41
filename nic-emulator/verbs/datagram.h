/* UDP datagrams through an emulated NIC, which has no kernel interface. Registration (MRP) uses
 * them.
 *
 * libcepheus-roce.so exports these; users find them with dlsym(RTLD_DEFAULT, ...) and fall back to
 * kernel sockets. Addresses and ports are in host byte order. All calls are thread-safe and never
 * block. */
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cepheus_datagram_socket;

/* Opens UDP port `udp_port` of the device behind `context`, or any free one for 0. It takes
 * datagrams of source port `from_port` only, or of any for 0, and sends with the IPv4 TOS `tos`. 0,
 * or an errno: EADDRINUSE (port taken in this process), EOPNOTSUPP (not a device of the emulated
 * NIC: use kernel sockets). */
int cepheus_datagram_open(struct ibv_context* context, uint16_t udp_port, uint16_t from_port,
                          uint8_t tos, struct cepheus_datagram_socket** out);
uint16_t cepheus_datagram_port(const struct cepheus_datagram_socket* s);
/* Sends one datagram of at most 1472 bytes from the NIC's own address; 0, EMSGSIZE, or EAGAIN (no
 * space: repeat later). */
int cepheus_datagram_send(struct cepheus_datagram_socket* s, uint32_t to_ipv4, uint16_t to_port,
                          const void* data, size_t size);
/* The next datagram (a queue of 256; further ones are dropped and counted): its size, or -1 with
 * errno EAGAIN. Drives the NIC as ibv_poll_cq does. */
ssize_t cepheus_datagram_recv(struct cepheus_datagram_socket* s, void* data, size_t capacity,
                              uint32_t* from_ipv4, uint16_t* from_port);
void cepheus_datagram_close(struct cepheus_datagram_socket* s);

#ifdef __cplusplus
}
#endif
