package eventlooptest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// printer prints the events of a descriptor.
type printer struct{}

func (printer) Ready(ev eventloop.Events) { fmt.Println(ev) }

// A handler is called for a descriptor that does not exist.
func Example() {
	poller := eventlooptest.NewPoller()
	loop, err := eventloop.New(eventloop.Config{Poller: poller})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := loop.Add(5, eventloop.Readable, printer{}); err != nil {
		log.Fatal(err)
	}
	poller.Fire(5, eventloop.Readable)
	if err := loop.Turn(); err != nil { // or let it run in a bubble of testing/synctest
		log.Fatal(err)
	}
	if err := loop.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: readable
}
