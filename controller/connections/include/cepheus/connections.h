/* Connections of one sending program with receivers, which it names by host and service, through
 * the daemon of each host (cepheus-cmd(1)). MC-RDMA sets up its groups so (III-A, IV-A). All or none
 * of the receivers are connected. Later each side receives an event when the other has gone.
 *
 *     receivers   cepheus_cmd_listen()    -> OFFER -> cepheus_cmd_accept()  -> ESTABLISHED -> CLOSED
 *                                                                           -> CANCELLED
 *     sender      cepheus_cmd_connect()   -> CONNECTING -> CONNECTED -> LEFT ...
 *                                                       -> FAILED
 *
 * A receiver's answer is opaque here: 16 bytes of a name (mcast_member_t), and data of the
 * application.
 *
 * Nothing blocks: poll() cepheus_cmd_fd() for cepheus_cmd_poll_events(), then take events until there are none.
 * One thread at a time uses a client. No function keeps pointers to its arguments. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CEPHEUS_CMD_API __attribute__((visibility("default")))
#define CEPHEUS_CMD_NAME_SIZE 16
#define CEPHEUS_CMD_MAX_DATA 4096 /* bytes */
#define CEPHEUS_CMD_MAX_RECEIVERS 16

typedef enum {
  CEPHEUS_CMD_OK = 0,
  CEPHEUS_CMD_NO_EVENT = 1,         /* poll */
  CEPHEUS_CMD_ERR_INVALID = -1,     /* an argument is wrong */
  CEPHEUS_CMD_ERR_UNAVAILABLE = -2, /* no daemon is there */
  CEPHEUS_CMD_ERR_AGAIN = -3,       /* take events first */
  CEPHEUS_CMD_ERR_GONE = -4, /* the daemon has gone or hung up, and all connections with it */
  CEPHEUS_CMD_ERR_NO_MEMORY = -5
} cepheus_cmd_status_t;

typedef enum {
  CEPHEUS_CMD_LISTENING = 1, /* service */
  CEPHEUS_CMD_NOT_LISTENING, /* service, reason */
  /* At the sender; all with `request`. */
  CEPHEUS_CMD_CONNECTING, /* connection, virtual_qpn */
  CEPHEUS_CMD_CONNECTED,  /* connection, virtual_qpn, members in the order of hosts */
  CEPHEUS_CMD_FAILED,     /* connection (0: none was begun), host if it is about one, reason */
  CEPHEUS_CMD_LEFT,       /* without `request`: connection, host, reason; the others stay */
  /* At a receiver. */
  CEPHEUS_CMD_OFFER,       /* connection, host of the sender, virtual_qpn, service, data */
  CEPHEUS_CMD_ESTABLISHED, /* connection: all have accepted */
  CEPHEUS_CMD_CANCELLED,   /* connection, reason: before it was established; it is over */
  CEPHEUS_CMD_CLOSED       /* connection, reason: the sender has gone; it is over */
} cepheus_cmd_event_type_t;

typedef struct {
  char host[16]; /* "10.0.0.2" */
  uint8_t name[CEPHEUS_CMD_NAME_SIZE];
  const void* data;
  size_t data_length; /* bytes */
} cepheus_cmd_member_t;

/* Fields that the type lacks are zero, an empty text, or NULL. */
typedef struct {
  cepheus_cmd_event_type_t type;
  uint32_t request;    /* as given to cepheus_cmd_connect() */
  uint64_t connection; /* of this client; never 0 if there is one */
  /* Held by the connection, for one sender group of the sending program
   * (mcast_group_params_t::virtual_qpn): 0xE00000 to 0xFFFFFE, the paper's MC_ID. */
  uint32_t virtual_qpn;
  char host[16];
  const char* service;
  const char* reason; /* a sentence; words of programs and daemons elsewhere may be in it */
  const void* data;
  size_t data_length; /* bytes */
  const cepheus_cmd_member_t* members;
  size_t member_count;
} cepheus_cmd_event_t;

typedef struct cepheus_cmd_client* cepheus_cmd_client_h;

/* `socket`: NULL for $CEPHEUS_CMD_SOCKET, else /run/cepheus-cmd/cmd.sock. On an error *out is NULL. */
CEPHEUS_CMD_API cepheus_cmd_status_t cepheus_cmd_open(const char* socket,
                                                      cepheus_cmd_client_h* out);
/* Ends its services and connections. The other sides receive an event. */
CEPHEUS_CMD_API void cepheus_cmd_destroy(cepheus_cmd_client_h client);
/* The reason of this thread's last failed call, as a sentence, until the next failure. */
CEPHEUS_CMD_API const char* cepheus_cmd_last_error(void);

CEPHEUS_CMD_API int cepheus_cmd_fd(cepheus_cmd_client_h client);
CEPHEUS_CMD_API short cepheus_cmd_poll_events(cepheus_cmd_client_h client); /* POLLIN, POLLOUT */
/* The next event, valid until the next call with this client. CEPHEUS_CMD_NO_EVENT: none. */
CEPHEUS_CMD_API cepheus_cmd_status_t cepheus_cmd_next(cepheus_cmd_client_h client,
                                                      cepheus_cmd_event_t* out);

/* `service`: 1 to 64 printable characters without blanks. -> LISTENING, NOT_LISTENING */
CEPHEUS_CMD_API cepheus_cmd_status_t cepheus_cmd_listen(cepheus_cmd_client_h client,
                                                        const char* service);
/* `hosts`: 1 to 16 addresses ("10.0.0.2"), each once, without the sender's own. `timeout_ms` 0: 5000; at most
 * 60000. `request` comes back in events. -> CONNECTING, then CONNECTED or FAILED; or FAILED alone */
CEPHEUS_CMD_API cepheus_cmd_status_t cepheus_cmd_connect(cepheus_cmd_client_h client,
                                                         uint32_t request, const char* service,
                                                         const char* const* hosts,
                                                         size_t host_count, const void* data,
                                                         size_t data_length, uint32_t timeout_ms);
/* Answers to an OFFER; one that was cancelled meanwhile is ignored. `name`: CEPHEUS_CMD_NAME_SIZE bytes. */
CEPHEUS_CMD_API cepheus_cmd_status_t cepheus_cmd_accept(cepheus_cmd_client_h client,
                                                        uint64_t connection, const void* name,
                                                        const void* data, size_t data_length);
/* `reason`: a sentence for the sender, at most 512 bytes of it. */
CEPHEUS_CMD_API cepheus_cmd_status_t cepheus_cmd_refuse(cepheus_cmd_client_h client,
                                                        uint64_t connection, const char* reason);
/* For either side. The sender of an unconnected one receives FAILED, and then no event follows. */
CEPHEUS_CMD_API cepheus_cmd_status_t cepheus_cmd_close(cepheus_cmd_client_h client,
                                                       uint64_t connection);

#ifdef __cplusplus
}
#endif
