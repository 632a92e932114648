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

func (b *batch) flags(f *flag.FlagSet) {
	f.StringVar(&b.bind, "b", "", "local `ADDR`")
	f.IntVar(&b.connections, "c", 1, "`NUMBER` of connections")
	f.IntVar(&b.messages, "C", 10, "`NUMBER` of messages")
	f.IntVar(&b.size, "S", 100, "`BYTES` of a message")
}

// run runs part, and prints its outcome as the C programs do.
func (b *batch) run(h *host, part func()) {
	b.host = h
	if b.connections < 1 || b.messages < 1 || b.size < 1 {
		h.err = errors.New("-c, -C and -S are at least 1")
	} else {
		part()
	}
	h.say("test complete")
	fmt.Fprintf(h.out, "return status %d\n", h.outcome())
}

// prepare makes a peer ready to receive.
func (b *batch) prepare(e *peer) error { return e.prepare(b.messages, b.size) }

// send makes a peer send its messages.
func (b *batch) send(e *peer) error { return e.send(b.messages, verbs.SendWR{}) }

// resolve makes every connection's peer and resolves the server's address for it.
func (b *batch) resolve(port string, ps cmid.PortSpace) {
	dst := b.lookup(b.server, port, ps, false)
	b.host.resolve(b.connections, b.source(ps), dst, ps)
}

// source returns the address of -b, or zero if there is none.
func (b *batch) source(ps cmid.PortSpace) cmid.Addr {
	if b.bind == "" {
		return cmid.Addr{}
	}
	return b.lookup(b.bind, "0", ps, true)
}

// ucmatose is ucmatose(1).
func ucmatose(f *flag.FlagSet) func(h *host) {
	var b batch
	b.flags(f)
	f.StringVar(&b.server, "s", "", "`ADDR` of the server; without it be the server")
	port := f.String("p", "7471", "`PORT`; a server takes a free one for 0")
	return func(h *host) {
		b.run(h, func() {
			if b.server == "" {
				b.serve(*port)
			} else {
				b.dial(*port)
			}
		})
	}
}

// depths returns parameters that ask for one outstanding Read in each direction, as ucmatose does.
func depths() *cmid.ConnParam {
	return &cmid.ConnParam{ResponderResources: 1, InitiatorDepth: 1, RetryCount: 5}
}

func (b *batch) serve(port string) {
	b.say("cmatose: starting server")
	b.listen(b.bind, port, cmid.PortSpaceTCP, func(e *peer) error {
		if err := b.prepare(e); err != nil {
			return err
		}
		return e.ID.Accept(nil, nil)
	})
	b.established(b.connections)
	b.say("initiating data transfers")
	b.each(b.send)
	b.say("completing sends")
	b.exchanged("sending", 0, b.messages)
	b.say("receiving data transfers")
	b.exchanged("receiving", b.messages, b.messages)
	b.say("data transfers complete\ncmatose: disconnecting")
	b.disconnect()
	b.say("disconnected")
}

func (b *batch) dial(port string) {
	b.say("cmatose: starting client")
	b.resolve(port, cmid.PortSpaceTCP)
	b.each(b.prepare)
	b.say("cmatose: connecting")
	b.connect(depths())
	b.say("receiving data transfers")
	b.exchanged("receiving", b.messages, 0)
	b.say("sending replies")
	b.each(b.send)
	b.say("data transfers complete")
	b.goodbye()
}
