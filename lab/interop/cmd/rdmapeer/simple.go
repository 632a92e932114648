package main

import (
	"flag"
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// simpleSize is the size in bytes of the messages of rdma_client and rdma_server.
const simpleSize = 16

// rdmaServer implements rdma_server(1): it answers one message with another.
func rdmaServer(f *flag.FlagSet) func(h *host) {
	bind := f.String("s", "", "`ADDR` to listen on")
	port := f.String("p", "7471", "`PORT` to listen on, 0: a free one")
	return func(h *host) {
		h.printLine("rdma_server: start")
		h.startListener(*bind, *port, cmid.PortSpaceTCP, func(e *peer) error {
			if err := e.setUpQueuePair(1, simpleSize); err != nil {
				return err
			}
			return e.ID.Accept(nil, nil)
		})
		h.awaitConnections(1)
		h.awaitMessages("receiving", 1, 0)
		h.eachPeer(sendOne)
		h.awaitMessages("sending", 1, 1)
		h.disconnectAll()
		fmt.Fprintf(h.out, "rdma_server: end %d\n", h.finalStatus())
	}
}

// rdmaClient implements rdma_client(1).
func rdmaClient(f *flag.FlagSet) func(h *host) {
	server := f.String("s", "127.0.0.1", "`ADDR` of the server")
	port := f.String("p", "7471", "`PORT` of the server")
	return func(h *host) {
		h.printLine("rdma_client: start")
		h.resolvePeers(1, cmid.Addr{}, h.lookUpAddr(*server, *port, cmid.PortSpaceTCP, false), cmid.PortSpaceTCP)
		h.eachPeer(func(e *peer) error { return e.setUpQueuePair(1, simpleSize) })
		h.connectAll(nil)
		h.eachPeer(sendOne)
		h.awaitMessages("exchanging", 1, 1)
		h.disconnectAll()
		fmt.Fprintf(h.out, "rdma_client: end %d\n", h.finalStatus())
	}
}

func sendOne(e *peer) error { return e.postMessages(1, verbs.SendWR{}) }
