package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// batch is the state that ucmatose, udaddy and mckey have in common.
type batch struct {
	*host
	server, bind                string
	connections, messages, size int
}

func (b *batch) addFlags(f *flag.FlagSet) {
	f.StringVar(&b.bind, "b", "", "local `ADDR`")
	f.IntVar(&b.connections, "c", 1, "`NUMBER` of connections")
	f.IntVar(&b.messages, "C", 10, "`NUMBER` of messages")
	f.IntVar(&b.size, "S", 100, "`BYTES` of a message")
}

// runPart runs part, and prints its outcome as the C programs do.
func (b *batch) runPart(h *host, part func()) {
	b.host = h
	if b.connections < 1 || b.messages < 1 || b.size < 1 {
		h.err = errors.New("-c, -C and -S are at least 1")
	} else {
		part()
	}
	h.printLine("test complete")
	fmt.Fprintf(h.out, "return status %d\n", h.finalStatus())
}

// preparePeer makes a peer ready to receive.
func (b *batch) preparePeer(e *peer) error { return e.setUpQueuePair(b.messages, b.size) }

// sendMessages makes a peer send its messages.
func (b *batch) sendMessages(e *peer) error { return e.postMessages(b.messages, verbs.SendWR{}) }

// resolveServer makes every connection's peer and resolves the server's address for it.
func (b *batch) resolveServer(port string, ps cmid.PortSpace) {
	dst := b.lookUpAddr(b.server, port, ps, false)
	b.resolvePeers(b.connections, b.sourceAddr(ps), dst, ps)
}

// sourceAddr returns the address of -b, or zero if there is none.
func (b *batch) sourceAddr(ps cmid.PortSpace) cmid.Addr {
	if b.bind == "" {
		return cmid.Addr{}
	}
	return b.lookUpAddr(b.bind, "0", ps, true)
}

// ucmatose implements ucmatose(1).
func ucmatose(f *flag.FlagSet) func(h *host) {
	var b batch
	b.addFlags(f)
	f.StringVar(&b.server, "s", "", "`ADDR` of the server; without it be the server")
	port := f.String("p", "7471", "`PORT`; a server takes a free one for 0")
	return func(h *host) {
		b.runPart(h, func() {
			if b.server == "" {
				b.runServer(*port)
			} else {
				b.runClient(*port)
			}
		})
	}
}

// depthParams returns parameters that ask for one outstanding Read in each direction, as ucmatose
// does.
func depthParams() *cmid.ConnParam {
	return &cmid.ConnParam{ResponderResources: 1, InitiatorDepth: 1, RetryCount: 5}
}

func (b *batch) runServer(port string) {
	b.printLine("cmatose: starting server")
	b.startListener(b.bind, port, cmid.PortSpaceTCP, func(e *peer) error {
		if err := b.preparePeer(e); err != nil {
			return err
		}
		return e.ID.Accept(nil, nil)
	})
	b.awaitConnections(b.connections)
	b.printLine("initiating data transfers")
	b.eachPeer(b.sendMessages)
	b.printLine("completing sends")
	b.awaitMessages("sending", 0, b.messages)
	b.printLine("receiving data transfers")
	b.awaitMessages("receiving", b.messages, b.messages)
	b.printLine("data transfers complete\ncmatose: disconnecting")
	b.disconnectAll()
	b.printLine("disconnected")
}

func (b *batch) runClient(port string) {
	b.printLine("cmatose: starting client")
	b.resolveServer(port, cmid.PortSpaceTCP)
	b.eachPeer(b.preparePeer)
	b.printLine("cmatose: connecting")
	b.connectAll(depthParams())
	b.printLine("receiving data transfers")
	b.awaitMessages("receiving", b.messages, 0)
	b.printLine("sending replies")
	b.eachPeer(b.sendMessages)
	b.printLine("data transfers complete")
	b.awaitDisconnects()
}
