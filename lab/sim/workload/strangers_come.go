package workload

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// intrude is the strangers' program.
func (w *strangers) intrude(p *world.Process) {
	rt, err := p.Open(rdma.Config{Timeouts: w.Config.Timeouts})
	if err != nil {
		w.come = len(w.comes) // memory or descriptors are short: nobody comes
		return
	}
	for w.come < len(w.comes) {
		o := w.comes[w.come]
		p.Sleep(firstStranger + o.at - w.now())
		if p.Dead() || p.Context().Err() != nil {
			return
		}
		w.come++
		w.World.Trace("%s %v", p.Name(), o)
		w.there += o.n
		for range o.n {
			if o.verb == strangeSlow || o.verb == strangeFlood {
				p.Go(func() { w.knock(p, o) })
				continue
			}
			s := &stranger{strangerOp: o, w: w, p: p, rt: rt}
			p.System().Root.Spawn(actor.PropsFromFunc(s.receive, rt.OnLoop()))
		}
	}
}

// stranger is one who speaks to the server by a runtime.
type stranger struct {
	*strangerOp
	w     *strangers
	p     *world.Process
	rt    *rdma.Runtime
	stays *oracle.Wait

	failed bool
}

// strangerLeaves has a stranger close its connection at last: the server may have gone, and who has
// no key notices nothing.
type strangerLeaves struct{ id *actor.PID }

func (s *stranger) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		cfg, private := s.says(s.p.Rand().Uint64())
		ctx.Send(s.rt.CreateID(ctx.Self(), cfg), &rdma.Dial{Addr: s.w.Addr(0, s.listener), PrivateData: private})
	case *rdma.Established:
		if s.verb == strangeInsecure || s.verb == strangeKey {
			s.w.fail("a stranger (%s) is connected, to %q", s.verb, m.Identity)
		}
		rdma.After(ctx, 2*strangerWithin, &strangerLeaves{ctx.Sender()})
		s.stays = s.w.unwelcome.Begin(s.w.now(), fmt.Sprintf("the end of a stranger's connection (%s)", s.verb))
		if s.verb == strangeGarbage {
			for n := range 1 + s.size%3 {
				b := make([]byte, s.size>>n)
				oracle.Fill(b, strange, uint64(n))
				ctx.Respond(rdma.NewSend(b))
			}
		}
	case *strangerLeaves:
		ctx.Request(m.id, &rdma.Close{})
	case rdma.Failure:
		if !s.failed { // a Close may fail, too
			s.failed = true
			ctx.Respond(&rdma.Close{})
		}
	case *rdma.Closed:
		s.stays.Over()
		if !s.p.Dead() {
			s.w.there--
		}
		ctx.Stop(ctx.Self())
	}
}

// says is how a stranger connects.
func (s *stranger) says(random uint64) (cfg rdma.IDConfig, private []byte) {
	switch s.verb {
	case strangeInsecure:
		cfg.Security = &rdma.Security{Mode: rdma.Insecure}
		return cfg, []byte("let me in")
	case strangeKey:
		k := new(rdma.Keyring)
		c := rdma.Credential{Identity: s.w.identity(1)}
		oracle.Fill(c.Key[:], strange, random)
		if err := k.Use(c); err != nil {
			s.w.fail("a stranger's key: %v", err)
		}
		cfg.Security = &rdma.Security{Mode: rdma.PSK, Keys: k}
		return cfg, nil
	}
	cfg.Raw = true
	hello := []byte{0x7e, 0xda, 4, 0, 0, 16, 1, 8, 0, 0, 0x10, 0}
	hint := make([]byte, 4)
	if s.w.Security.Mode == rdma.TLS {
		hello[3], hello[6] = 4, 2
		return cfg, append(hello, hint...)
	}
	hello[3] = 44
	public := make([]byte, 32)
	oracle.Fill(public, strange, random)
	return cfg, append(append(append(hello, hint...), public...), keyID(s.w.credential(1, 0))...)
}

// keyID is what a request in PSK mode names its key by. Whoever is on the path has seen those of
// the members.
func keyID(c rdma.Credential) []byte {
	const label = "rdmactor psk id"
	info := binary.BigEndian.AppendUint16(nil, 8)
	info = append(append(info, byte(len(label))), label...)
	info = append(append(info, byte(len(c.Identity))), c.Identity...)
	id, err := hkdf.Expand(sha256.New, c.Key[:], string(info), 8)
	if err != nil {
		panic(err)
	}
	return id
}

// knock is a stranger who speaks to the embedded device by a socket: nothing that it says is a
// whole request, so the server hangs up.
func (w *strangers) knock(p *world.Process, o *strangerOp) {
	defer func() {
		if !p.Dead() {
			w.there--
		}
	}()
	k := p.Sockets()
	fd, err := k.Socket(unix.AF_INET, unix.SOCK_STREAM)
	if err != nil {
		return // descriptors are short
	}
	defer func() { _ = k.Close(fd) }() // its process may have ended
	at := netip.MustParseAddrPort(w.Addr(0, o.listener))
	if err := k.Connect(fd, &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}); !errors.Is(err, unix.EINPROGRESS) {
		return
	}
	says, piece := []byte("MPA ID Req Frame\x00\x02\x00\xff"), 1
	if o.verb == strangeFlood {
		says, piece = make([]byte, o.size), o.size
		oracle.Fill(says, strange, uint64(o.n))
	}
	stays := w.unwelcome.Begin(w.now(), "the end of a stranger's connection ("+o.verb+")")
	defer stays.Over()
	end := w.now() + 2*strangerWithin // nobody answers
	for answer := make([]byte, 64); p.Context().Err() == nil && w.now() < end; p.Sleep(o.every) {
		n, err := k.Send(fd, [][]byte{says[:min(piece, len(says))]}, 0)
		if err == nil {
			says = says[n:]
		}
		if n, err = k.Recv(fd, answer); n == 0 && err == nil || err != nil && !passes(err) {
			return
		}
	}
}

// passes reports whether a socket that has failed so may be asked again.
func passes(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.ENOTCONN)
}
