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

// udaddyPort is the port of udaddy(1), which has no flag for it.
const udaddyPort = 7174

// udpQKey is the key of every queue pair of RDMA_PS_UDP.
const udpQKey = 0x01234567

// udaddy implements udaddy(1).
func udaddy(f *flag.FlagSet) func(h *host) {
	var b batch
	b.addFlags(f)
	f.StringVar(&b.server, "s", "", "`ADDR` of the server; without it be the server")
	return func(h *host) {
		if b.server == "" {
			b.runPart(h, b.runUDServer)
		} else {
			b.runPart(h, b.runUDClient)
		}
	}
}

// runUDClient runs udaddy's client.
func (b *batch) runUDClient() {
	b.printLine("udaddy: starting client")
	b.resolveServer(strconv.Itoa(udaddyPort), cmid.PortSpaceUDP)
	b.eachPeer(b.preparePeer)
	b.printLine("udaddy: connecting")
	b.connectAll(depthParams())
	b.printLine("initiating data transfers")
	b.eachPeer(func(e *peer) error {
		ud := e.seen[states.KindEstablished].(*cmid.Established).UD
		if ud == nil {
			return fmt.Errorf("%v says nothing of the server's queue pair", e.seen[states.KindEstablished])
		}
		return e.sendTo(b.messages, *ud)
	})
	b.printLine("receiving data transfers")
	b.awaitMessages("receiving", b.messages, b.messages)
	b.printLine("data transfers complete")
}

// runUDServer runs udaddy's server. It learns a client's address from the client's first message.
func (b *batch) runUDServer() {
	b.printLine("udaddy: starting server")
	b.startListener(b.bind, strconv.Itoa(udaddyPort), cmid.PortSpaceUDP, func(e *peer) error {
		if err := b.preparePeer(e); err != nil {
			return err
		}
		return e.ID.Accept(nil, &cmid.ConnParam{QPNum: e.QP.Num()})
	})
	b.handleUntil("awaiting the client", func() (bool, error) { return len(b.peers) == b.connections, nil })
	b.printLine("receiving data transfers")
	b.awaitMessages("receiving", b.messages, 0)
	b.printLine("sending replies")
	b.eachPeer(func(e *peer) error {
		way, err := e.ID.Device().InitAHFromWC(&e.first, e.Message(&e.first)[:e.front])
		if err != nil {
			return err
		}
		if !e.first.HasImm || e.first.Imm != e.first.SrcQPN {
			return fmt.Errorf("a message from queue pair %d says that it is from %d", e.first.SrcQPN, e.first.Imm)
		}
		return e.sendTo(b.messages, cmid.UDParam{AH: way, QPN: e.first.Imm, QKey: udpQKey})
	})
	b.awaitMessages("sending", b.messages, b.messages)
	b.printLine("data transfers complete")
}

// sendTo sends messages to a queue pair or a group. The immediate data of each is the number of the
// sender's queue pair.
func (e *peer) sendTo(messages int, to cmid.UDParam) (err error) {
	if e.ah, err = e.ID.Device().CreateAH(nil, &to.AH); err != nil {
		return err
	}
	return e.postMessages(messages, verbs.SendWR{
		Op: verbs.SendWithImm, Imm: e.QP.Num(), AH: e.ah, RemoteQPN: to.QPN, RemoteQKey: to.QKey,
	})
}

// mckey implements mckey(1).
func mckey(f *flag.FlagSet) func(h *host) {
	var b batch
	b.addFlags(f)
	group := f.String("m", "", "`GROUP`: a multicast address")
	sender := f.Bool("s", false, "send to the group; without it receive")
	pause := f.Duration("pause", 3*time.Second, "how long to wait for the others between the join and the first message")
	return func(h *host) {
		b.runPart(h, func() { b.runMulticast(*group, *sender, *pause) })
	}
}

func (b *batch) runMulticast(group string, sender bool, pause time.Duration) {
	b.printLine("mckey: starting %s", map[bool]string{true: "client", false: "server"}[sender])
	dst := b.lookUpAddr(group, "0", cmid.PortSpaceUDP, false)
	b.resolveAddr(b.connections, b.sourceAddr(cmid.PortSpaceUDP), dst, cmid.PortSpaceUDP)
	b.eachPeer(b.preparePeer)
	b.printLine("mckey: joining")
	b.eachPeer(func(e *peer) error { return e.ID.JoinMulticast(dst) })
	b.awaitEvent("joining", states.KindMulticastJoin)
	b.eachPeer(func(e *peer) error {
		b.printLine("mckey: joined %v", e.seen[states.KindMulticastJoin])
		return nil
	})
	if sender && b.err == nil {
		time.Sleep(pause)
		b.printLine("initiating data transfers")
		b.eachPeer(func(e *peer) error {
			return e.sendTo(b.messages, e.seen[states.KindMulticastJoin].(*cmid.MulticastJoin).UD)
		})
		b.awaitMessages("sending", 0, b.messages)
	} else {
		b.printLine("receiving data transfers")
		b.awaitMessages("receiving", b.messages, 0)
	}
	b.printLine("data transfers complete")
	b.eachPeer(func(e *peer) error { return e.ID.LeaveMulticast(dst) })
}
