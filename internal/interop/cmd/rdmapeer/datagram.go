package main

import (
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// udaddyPort is fixed in udaddy(1).
const udaddyPort = 7174

// udpQKey is the key of every queue pair of RDMA_PS_UDP.
const udpQKey = 0x01234567

// udaddy is udaddy(1).
func udaddy(f *flag.FlagSet) func(h *host) error {
	var b batch
	b.flags(f)
	f.StringVar(&b.server, "s", "", "`ADDR` of the server; without it be the server")
	return func(h *host) error {
		err := b.check()
		switch {
		case err != nil:
		case b.server == "":
			err = b.reply(h)
		default:
			err = b.ask(h)
		}
		return h.conclude(err)
	}
}

// ask is udaddy's client.
func (b *batch) ask(h *host) error {
	h.say("udaddy: starting client")
	if err := b.resolve(h, strconv.Itoa(udaddyPort), cmid.PortSpaceUDP); err != nil {
		return err
	}
	if err := b.prepare(h); err != nil {
		return err
	}
	h.say("udaddy: connecting")
	if err := h.connect(depths()); err != nil {
		return err
	}
	h.say("initiating data transfers")
	for _, e := range h.endpoints {
		ud := e.seen[states.KindEstablished].(*cmid.Established).UD
		if ud == nil {
			return fmt.Errorf("%v says nothing of the server's queue pair", e.seen[states.KindEstablished])
		}
		if err := e.sendTo(b.messages, *ud); err != nil {
			return err
		}
	}
	h.say("receiving data transfers")
	if err := h.exchanged("receiving", b.messages, b.messages); err != nil {
		return err
	}
	h.say("data transfers complete")
	return nil
}

// reply is udaddy's server. What it knows of a client is what the client's first message says.
func (b *batch) reply(h *host) error {
	h.say("udaddy: starting server")
	err := h.listen(b.bind, strconv.Itoa(udaddyPort), cmid.PortSpaceUDP, func(e *peer) error {
		if err := e.prepare(b.messages, b.size); err != nil {
			return err
		}
		return e.ID.Accept(nil, &cmid.ConnParam{QPNum: e.QP.Num()})
	})
	if err != nil {
		return err
	}
	err = h.until("awaiting the client", func() (bool, error) { return len(h.endpoints) == b.connections, nil })
	if err != nil {
		return err
	}
	h.say("receiving data transfers")
	if err := h.exchanged("receiving", b.messages, 0); err != nil {
		return err
	}
	h.say("sending replies")
	for _, e := range h.endpoints {
		way, err := e.ID.Device().InitAHFromWC(&e.first, e.Message(&e.first)[:e.front])
		if err != nil {
			return err
		}
		if !e.first.HasImm || e.first.Imm != e.first.SrcQPN {
			return fmt.Errorf("a message from queue pair %d says that it is from %d", e.first.SrcQPN, e.first.Imm)
		}
		if err := e.sendTo(b.messages, cmid.UDParam{AH: way, QPN: e.first.Imm, QKey: udpQKey}); err != nil {
			return err
		}
	}
	if err := h.exchanged("sending", b.messages, b.messages); err != nil {
		return err
	}
	h.say("data transfers complete")
	return nil
}

// sendTo sends messages to a queue pair or a group; their immediate data is the sender's number.
func (e *peer) sendTo(messages int, to cmid.UDParam) (err error) {
	if e.ah, err = e.ID.Device().CreateAH(nil, &to.AH); err != nil {
		return err
	}
	return e.send(messages, verbs.SendWR{
		Op: verbs.SendWithImm, Imm: e.QP.Num(), AH: e.ah, RemoteQPN: to.QPN, RemoteQKey: to.QKey,
	})
}

// mckey is mckey(1).
func mckey(f *flag.FlagSet) func(h *host) error {
	var b batch
	b.flags(f)
	group := f.String("m", "", "`GROUP`: a multicast address")
	sender := f.Bool("s", false, "send to the group; without it receive")
	pause := f.Duration("pause", 3*time.Second, "how long to wait for the others between the join and the first message")
	return func(h *host) error {
		err := b.check()
		if err == nil {
			err = b.join(h, *group, *sender, *pause)
		}
		return h.conclude(err)
	}
}

func (b *batch) join(h *host, group string, sender bool, pause time.Duration) error {
	h.say("mckey: starting %s", map[bool]string{true: "client", false: "server"}[sender])
	dst, err := h.lookup(group, "0", cmid.PortSpaceUDP, false)
	if err != nil {
		return err
	}
	src, err := b.source(h, cmid.PortSpaceUDP)
	if err != nil {
		return err
	}
	if err := h.resolveAddr(b.connections, src, dst, cmid.PortSpaceUDP); err != nil {
		return err
	}
	if err := b.prepare(h); err != nil {
		return err
	}
	h.say("mckey: joining")
	for _, e := range h.endpoints {
		if err := e.ID.JoinMulticast(dst); err != nil {
			return err
		}
	}
	if err := h.await("joining", states.KindMulticastJoin); err != nil {
		return err
	}
	for _, e := range h.endpoints {
		h.say("mckey: joined %v", e.seen[states.KindMulticastJoin])
	}
	if sender {
		time.Sleep(pause)
		h.say("initiating data transfers")
		for _, e := range h.endpoints {
			if err := e.sendTo(b.messages, e.seen[states.KindMulticastJoin].(*cmid.MulticastJoin).UD); err != nil {
				return err
			}
		}
		err = h.exchanged("sending", 0, b.messages)
	} else {
		h.say("receiving data transfers")
		err = h.exchanged("receiving", b.messages, 0)
	}
	if err != nil {
		return err
	}
	h.say("data transfers complete")
	for _, e := range h.endpoints {
		if err := e.ID.LeaveMulticast(dst); err != nil {
			return err
		}
	}
	return nil
}
