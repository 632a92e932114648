package main

import (
	"errors"
	"flag"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// batch is what ucmatose, udaddy and mckey have in common.
type batch struct {
	server, bind                string
	connections, messages, size int
}

func (b *batch) flags(f *flag.FlagSet) {
	f.StringVar(&b.bind, "b", "", "local `ADDR`")
	f.IntVar(&b.connections, "c", 1, "`NUMBER` of connections")
	f.IntVar(&b.messages, "C", 10, "`NUMBER` of messages")
	f.IntVar(&b.size, "S", 100, "`BYTES` of a message")
}

func (b *batch) check() error {
	if b.connections < 1 || b.messages < 1 || b.size < 1 {
		return errors.New("-c, -C and -S are at least 1")
	}
	return nil
}

// prepare makes every endpoint ready to receive.
func (b *batch) prepare(h *host) error {
	for _, e := range h.endpoints {
		if err := e.prepare(b.messages, b.size); err != nil {
			return err
		}
	}
	return nil
}

// send has every endpoint send its messages.
func (b *batch) send(h *host) error {
	for _, e := range h.endpoints {
		if err := e.send(b.messages, verbs.SendWR{}); err != nil {
			return err
		}
	}
	return nil
}

// resolve resolves the server for every connection.
func (b *batch) resolve(h *host, port string, ps cmid.PortSpace) error {
	dst, err := h.lookup(b.server, port, ps, false)
	if err != nil {
		return err
	}
	src, err := b.source(h, ps)
	if err != nil {
		return err
	}
	return h.resolve(b.connections, src, dst, ps)
}

// source is the address of -b, zero when there is none.
func (b *batch) source(h *host, ps cmid.PortSpace) (cmid.Addr, error) {
	if b.bind == "" {
		return cmid.Addr{}, nil
	}
	return h.lookup(b.bind, "0", ps, true)
}

// ucmatose is ucmatose(1).
func ucmatose(f *flag.FlagSet) func(h *host) error {
	var b batch
	b.flags(f)
	f.StringVar(&b.server, "s", "", "`ADDR` of the server; without it be the server")
	port := f.String("p", "7471", "`PORT`; a server takes a free one for 0")
	return func(h *host) error {
		err := b.check()
		switch {
		case err != nil:
		case b.server == "":
			err = b.serve(h, *port)
		default:
			err = b.dial(h, *port)
		}
		return h.conclude(err)
	}
}

// depths is one outstanding read each way, as ucmatose asks for.
func depths() *cmid.ConnParam {
	return &cmid.ConnParam{ResponderResources: 1, InitiatorDepth: 1, RetryCount: 5}
}

func (b *batch) serve(h *host, port string) error {
	h.say("cmatose: starting server")
	err := h.listen(b.bind, port, cmid.PortSpaceTCP, func(e *peer) error {
		if err := e.prepare(b.messages, b.size); err != nil {
			return err
		}
		return e.ID.Accept(nil, nil)
	})
	if err != nil {
		return err
	}
	if err := h.established(b.connections); err != nil {
		return err
	}
	h.say("initiating data transfers")
	if err := b.send(h); err != nil {
		return err
	}
	h.say("completing sends")
	if err := h.exchanged("sending", 0, b.messages); err != nil {
		return err
	}
	h.say("receiving data transfers")
	if err := h.exchanged("receiving", b.messages, b.messages); err != nil {
		return err
	}
	h.say("data transfers complete\ncmatose: disconnecting")
	if err := h.disconnect(); err != nil {
		return err
	}
	h.say("disconnected")
	return nil
}

func (b *batch) dial(h *host, port string) error {
	h.say("cmatose: starting client")
	if err := b.resolve(h, port, cmid.PortSpaceTCP); err != nil {
		return err
	}
	if err := b.prepare(h); err != nil {
		return err
	}
	h.say("cmatose: connecting")
	if err := h.connect(depths()); err != nil {
		return err
	}
	h.say("receiving data transfers")
	if err := h.exchanged("receiving", b.messages, 0); err != nil {
		return err
	}
	h.say("sending replies")
	if err := b.send(h); err != nil {
		return err
	}
	h.say("data transfers complete")
	return h.goodbye()
}
