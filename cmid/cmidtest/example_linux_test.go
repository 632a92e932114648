package cmidtest_test

import (
	"errors"
	"fmt"
	"log"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
)

// A program resolves an address at which no machine answers.
func Example() {
	fabric := cmidtest.NewFabric()
	fabric.AddDevice("mem0", "10.0.0.1/24")
	fabric.Silence("10.0.0.9")

	ch, err := cmid.OpenChannel(fabric.Driver())
	if err != nil {
		log.Fatal(err)
	}
	defer ch.Close()
	id, err := ch.CreateID(cmid.PortSpaceTCP)
	if err != nil {
		log.Fatal(err)
	}
	if err := id.ResolveAddr(cmid.Addr{}, cmid.MustAddr("10.0.0.9:7471"), 10*time.Millisecond); err != nil {
		log.Fatal(err)
	}
	fd, err := ch.FD()
	if err != nil {
		log.Fatal(err)
	}
	ev, _, err := ch.GetEvent()
	for errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if err == nil {
			ev, _, err = ch.GetEvent()
		}
	}
	failure, ok := ev.(*cmid.AddrError)
	fmt.Println(ok, errors.Is(failure, unix.ETIMEDOUT), id.State())
	// Output: true true bound
}
