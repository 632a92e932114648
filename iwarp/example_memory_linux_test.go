package iwarp_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/verbs"
)

// endpoint is one side's memory and queues.
type endpoint struct {
	cq verbs.CQ
	qp verbs.QP
	mr *verbs.MR // 64 bytes for the peer, 64 for messages
}

func newEndpoint(id *cmid.ID) (e endpoint) {
	dev := id.Device()
	var err error
	e.mr, err = dev.Alloc(128, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	must(err)
	e.cq, err = dev.CreateCQ(16, func() {}) // polled below
	must(err)
	e.qp, err = id.CreateQP(verbs.QPInitAttr{SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: 8, MaxRecvWR: 8})
	must(err)
	// before the peer can send
	must(e.qp.PostRecv(verbs.RecvWR{SGE: verbs.SGE{MR: e.mr, Offset: 64, Length: 64}}))
	return e
}

// Remote memory: in its private data the listening side sends the address and key of memory that
// its peer may write and read. The other side writes to it, reports that in a Send, and reads the
// memory back. The listening side looks at the written bytes only after it has received that Send.
func Example_remoteMemory() {
	ch, err := cmid.OpenChannel(iwarp.New())
	must(err)
	defer ch.Close()
	fd, err := ch.FD()
	must(err)
	listener, err := ch.CreateID(cmid.PortSpaceTCP)
	must(err)
	must(listener.BindAddr(cmid.MustAddr("127.0.0.1:0")))
	must(listener.Listen(1))
	active, err := ch.CreateID(cmid.PortSpaceTCP)
	must(err)
	must(active.ResolveAddr(cmid.Addr{}, listener.LocalAddr(), 0))

	var a, b endpoint // the connecting side and the listening one
	var addr uint64
	var key uint32
	handle := func(id *cmid.ID, ev cmid.Event) {
		switch e := ev.(type) {
		case *cmid.AddrResolved:
			must(id.ResolveRoute(0))
		case *cmid.RouteResolved:
			a = newEndpoint(id)
			must(id.Connect(nil, nil))
		case *cmid.ConnectRequest:
			b = newEndpoint(id)
			where := binary.BigEndian.AppendUint64(nil, b.mr.Addr)
			must(id.Accept(binary.BigEndian.AppendUint32(where, b.mr.RKey), nil))
		case *cmid.Established:
			if id == active {
				addr, key = binary.BigEndian.Uint64(e.PrivateData), binary.BigEndian.Uint32(e.PrivateData[8:])
			}
		case cmid.Failure:
			log.Fatal(e)
		}
	}
	// until calls GetEvent, which also sends posted messages and receives completions. So it checks
	// the condition after each call, before it waits.
	until := func(done func() bool) {
		for {
			ev, id, err := ch.GetEvent()
			switch {
			case err == nil:
				handle(id, ev)
			case !errors.Is(err, unix.EAGAIN):
				log.Fatal(err)
			}
			if done() {
				return
			}
			if err != nil {
				_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
				if err != nil && !errors.Is(err, unix.EINTR) {
					log.Fatal(err)
				}
			}
		}
	}
	completion := func(cq verbs.CQ) {
		var wc [1]verbs.WC
		until(func() bool { return cq.Poll(wc[:]) == 1 })
		fmt.Println(wc[0].Op, wc[0].Status)
	}
	until(func() bool { return key != 0 })

	n := uint32(copy(a.mr.Bytes, "written by the peer"))
	must(a.qp.PostSend(&verbs.SendWR{Op: verbs.Write, SGL: []verbs.SGE{{MR: a.mr, Length: n}}, RemoteAddr: addr, RKey: key}))
	must(a.qp.PostSend(&verbs.SendWR{Op: verbs.Send, Inline: []byte("look")}))
	completion(b.cq)
	fmt.Printf("%s\n", b.mr.Bytes[:n])

	back := verbs.SGE{MR: a.mr, Offset: 32, Length: n}
	must(a.qp.PostSend(&verbs.SendWR{Op: verbs.Read, Flags: verbs.Signaled, SGL: []verbs.SGE{back}, RemoteAddr: addr, RKey: key}))
	completion(a.cq)
	fmt.Printf("%s\n", a.mr.Bytes[32:32+n])
	// Output:
	// recv success
	// written by the peer
	// read success
	// written by the peer
}
