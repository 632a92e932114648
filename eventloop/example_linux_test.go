package eventloop_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// A loop on its own goroutine, which reports when a pipe is readable.
func Example() {
	l, err := eventloop.New(eventloop.Config{Name: "example"})
	if err != nil {
		log.Fatal(err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		log.Fatal(err)
	}
	defer unix.Close(pipe[1])

	read := make(chan string)
	var reg *eventloop.Registration
	reg, err = l.Add(pipe[0], eventloop.Readable, readyFunc(func(ev eventloop.Events) {
		buf := make([]byte, 16)
		n, err := unix.Read(pipe[0], buf)
		if err != nil {
			log.Fatal(err)
		}
		if err := reg.Remove(); err != nil { // before the fd is closed
			log.Fatal(err)
		}
		unix.Close(pipe[0])
		read <- fmt.Sprintf("%v: %s", ev, buf[:n])
		l.Handoff() // the reader's goroutine has work now
	}))
	if err != nil {
		log.Fatal(err)
	}
	l.Start()

	if err := l.Post(func() {
		l.AfterFunc(time.Millisecond, func() { unix.Write(pipe[1], []byte("hello")) })
	}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-read)
	if err := l.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: readable: hello
}
