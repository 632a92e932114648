package slots_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/slots"
)

// One side reads a file into slots, and the other side writes what arrives to another one.
func Example() {
	ctx := context.Background()
	rt, err := rdma.Open(nil, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(ctx)
	l, err := slots.Listen(ctx, rt, "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	received := make(chan string)
	go func() {
		c, err := l.Accept(ctx)
		if err != nil {
			log.Fatal(err)
		}
		defer c.Close()
		var file strings.Builder
		for {
			r, err := c.Receive(ctx) // waits for a slot that the peer has filled
			if errors.Is(err, io.EOF) {
				received <- file.String()
				return
			}
			if err != nil {
				log.Fatal(err)
			}
			file.Write(r.Bytes())
			r.Release() // lets the peer fill it again
		}
	}()

	c, err := slots.Dial(ctx, rt, l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	file := strings.NewReader("frames, blocks, or files")
	for {
		s, err := c.Reserve(ctx) // waits for a free slot
		if err != nil {
			log.Fatal(err)
		}
		n, err := file.Read(s.Bytes()) // the device sends from this memory
		if errors.Is(err, io.EOF) {
			s.Release()
			break
		}
		if err := s.Send(n); err != nil {
			log.Fatal(err)
		}
	}
	if err := c.End(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-received)
	// Output: frames, blocks, or files
}
