package main

import (
	"flag"
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// simpleSize is the size in bytes of the messages of rdma_client and rdma_server.
const simpleSize = 16

// rdmaServer is rdma_server(1): it answers one message with another.
func rdmaServer(f *flag.FlagSet) func(h *host) {
	bind := f.String("s", "", "`ADDR` to listen on")
	port := f.String("p", "7471", "`PORT` to listen on, 0: a free one")
	return func(h *host) {
		h.say("rdma_server: start")
		h.listen(*bind, *port, cmid.PortSpaceTCP, func(e *peer) error {
			if err := e.prepare(1, simpleSize); err != nil {
				return err
			}
			return e.ID.Accept(nil, nil)
		})
		h.established(1)
		h.exchanged("receiving", 1, 0)
		h.each(sendOne)
		h.exchanged("sending", 1, 1)
		h.disconnect()
		fmt.Fprintf(h.out, "rdma_server: end %d\n", h.outcome())
	}
}

// rdmaClient is rdma_client(1).
func rdmaClient(f *flag.FlagSet) func(h *host) {
	server := f.String("s", "127.0.0.1", "`ADDR` of the server")
	port := f.String("p", "7471", "`PORT` of the server")
	return func(h *host) {
		h.say("rdma_client: start")
		h.resolve(1, cmid.Addr{}, h.lookup(*server, *port, cmid.PortSpaceTCP, false), cmid.PortSpaceTCP)
		h.each(func(e *peer) error { return e.prepare(1, simpleSize) })
		h.connect(nil)
		h.each(sendOne)
		h.exchanged("exchanging", 1, 1)
		h.disconnect()
		fmt.Fprintf(h.out, "rdma_client: end %d\n", h.outcome())
	}
}

func sendOne(e *peer) error { return e.send(1, verbs.SendWR{}) }
