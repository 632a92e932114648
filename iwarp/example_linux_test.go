package iwarp_test

import (
	"errors"
	"fmt"
	"log"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/verbs"
)

// next waits for an event. The channel's fd can be used with any poll or epoll.
func next(ch *cmid.Channel) (cmid.Event, *cmid.ID) {
	fd, err := ch.FD()
	if err != nil {
		log.Fatal(err)
	}
	for {
		ev, id, err := ch.GetEvent()
		if err == nil {
			return ev, id
		}
		if !errors.Is(err, unix.EAGAIN) {
			log.Fatal(err)
		}
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			log.Fatal(err)
		}
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// queuePair does rdma_create_qp(3): without one an identifier can neither connect nor accept.
func queuePair(id *cmid.ID) {
	cq, err := id.Device().CreateCQ(16, func() {})
	must(err)
	_, err = id.CreateQP(verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: 8, MaxRecvWR: 8})
	must(err)
}

// The plain calls, which correspond one to one to librdmacm's. There are no actors, but one event
// channel, an identifier that listens and one that connects.
func Example_plainCalls() {
	ch, err := cmid.OpenChannel(iwarp.New())
	must(err)
	defer ch.Close()

	listener, err := ch.CreateID(cmid.PortSpaceTCP)
	must(err)
	must(listener.BindAddr(cmid.MustAddr("127.0.0.1:0"))) // port 0: the device chooses
	must(listener.Listen(16))

	active, err := ch.CreateID(cmid.PortSpaceTCP)
	must(err)
	must(active.ResolveAddr(cmid.Addr{}, listener.LocalAddr(), 0))
	for done := 0; done < 2; {
		ev, id := next(ch)
		switch e := ev.(type) {
		case *cmid.AddrResolved:
			must(id.ResolveRoute(0))
		case *cmid.RouteResolved:
			queuePair(id)
			must(id.Connect([]byte("hello"), nil))
		case *cmid.ConnectRequest:
			fmt.Printf("request: %s\n", e.PrivateData)
			queuePair(id)
			must(id.Accept([]byte("welcome"), nil))
		case *cmid.Established:
			if id == active {
				fmt.Printf("reply: %s\n", e.PrivateData)
			}
			done++
		case cmid.Failure:
			log.Fatal(e)
		}
	}
	fmt.Println(active.State())
	fmt.Println(errors.Is(listener.Connect(nil, nil), unix.EINVAL)) // not in this state
	// Output:
	// request: hello
	// reply: welcome
	// connected
	// true
}
