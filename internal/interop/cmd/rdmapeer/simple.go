package main

import (
	"flag"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// simpleSize is the bytes of rdma_client's and rdma_server's messages.
const simpleSize = 16

// rdmaServer is rdma_server(1): it answers one message with another.
func rdmaServer(f *flag.FlagSet) func(h *host) error {
	bind := f.String("s", "", "`ADDR` to listen on")
	port := f.String("p", "7471", "`PORT` to listen on, 0: a free one")
	return func(h *host) error {
		h.say("rdma_server: start")
		err := serveOne(h, *bind, *port)
		h.say("rdma_server: end %d", outcome(err))
		return err
	}
}

func serveOne(h *host, bind, port string) error {
	err := h.listen(bind, port, cmid.PortSpaceTCP, func(e *peer) error {
		if err := e.prepare(1, simpleSize); err != nil {
			return err
		}
		return e.ID.Accept(nil, nil)
	})
	if err != nil {
		return err
	}
	if err := h.established(1); err != nil {
		return err
	}
	if err := h.exchanged("receiving", 1, 0); err != nil {
		return err
	}
	if err := h.endpoints[0].send(1, verbs.SendWR{}); err != nil {
		return err
	}
	if err := h.exchanged("sending", 1, 1); err != nil {
		return err
	}
	return h.disconnect()
}

// rdmaClient is rdma_client(1).
func rdmaClient(f *flag.FlagSet) func(h *host) error {
	server := f.String("s", "127.0.0.1", "`ADDR` of the server")
	port := f.String("p", "7471", "`PORT` of the server")
	return func(h *host) error {
		h.say("rdma_client: start")
		err := askOne(h, *server, *port)
		h.say("rdma_client: end %d", outcome(err))
		return err
	}
}

func askOne(h *host, server, port string) error {
	dst, err := h.lookup(server, port, cmid.PortSpaceTCP, false)
	if err != nil {
		return err
	}
	if err := h.resolve(1, cmid.Addr{}, dst, cmid.PortSpaceTCP); err != nil {
		return err
	}
	e := h.endpoints[0]
	if err := e.prepare(1, simpleSize); err != nil {
		return err
	}
	if err := h.connect(nil); err != nil {
		return err
	}
	if err := e.send(1, verbs.SendWR{}); err != nil {
		return err
	}
	if err := h.exchanged("exchanging", 1, 1); err != nil {
		return err
	}
	return h.disconnect()
}

// established waits for n connections of the listener's.
func (h *host) established(n int) error {
	return h.until("awaiting the client", func() (bool, error) {
		return len(h.endpoints) == n && h.saw(states.KindEstablished), nil
	})
}

// outcome is what the programs print of their end.
func outcome(err error) int {
	if err != nil {
		return -1
	}
	return 0
}

// conclude prints the end of a program of messages, as the C programs do.
func (h *host) conclude(err error) error {
	if err == nil {
		h.say("test complete")
	}
	h.say("return status %d", outcome(err))
	return err
}
