package inspect

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
)

// The environment of this program as a crowd of peers: the address that they connect to, their
// number, and their messages per second.
const (
	crowdOf   = "RDMACTOR_TEST_CROWD_OF"
	crowdSize = "RDMACTOR_TEST_CROWD_SIZE"
	crowdRate = "RDMACTOR_TEST_CROWD_RATE"
)

// crowd reports when all have connected, and sends until its input ends.
func crowd(addr string) (status int) {
	size, err1 := strconv.Atoi(os.Getenv(crowdSize))
	rate, err2 := strconv.Atoi(os.Getenv(crowdRate))
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New()})
	if err != nil || err1 != nil || err2 != nil {
		fmt.Fprintln(os.Stderr, err, err1, err2)
		return 1
	}
	established := make(chan struct{})
	s := &sender{rate: rate, message: make([]byte, 64)}
	owner := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *rdma.Established:
			established <- struct{}{}
		case tick:
			s.send(ctx)
		}
	}, rt.OnLoop()))
	for range size {
		id := rt.CreateID(owner)
		s.ids = append(s.ids, id)
		sys.Root.Send(id, &rdma.Dial{Addr: addr})
		<-established
	}
	s.began = time.Now()
	sys.Root.Send(owner, tick{})
	fmt.Println("connected")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// tick makes the sender send the messages that are due.
type tick struct{}

// sender sends to the peers in turn, at a rate of messages per second.
type sender struct {
	ids     []*actor.PID
	rate    int
	message []byte
	began   time.Time
	sent    int
}

// send sends at most 10 ms' worth: messages that are later than that are skipped.
func (s *sender) send(ctx actor.Context) {
	due := int(time.Since(s.began).Seconds() * float64(s.rate))
	s.sent = max(s.sent, due-s.rate/100)
	for ; s.sent < due; s.sent++ {
		ctx.Send(s.ids[s.sent%len(s.ids)], rdma.NewSend(s.message))
	}
	rdma.After(ctx, time.Millisecond, tick{})
}
