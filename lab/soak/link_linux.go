package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// queued is the maximum number of delayed packets in one direction. Further ones are lost, as at a
// router.
const queued = 4096

// direction forwards packets from one interface to the other.
type direction struct {
	from, to *os.File
	weather  atomic.Pointer[weather]
	cut      atomic.Bool
	random   *rand.Rand // the reader's
	delayed  chan packet
	spare    sync.Pool // of *[mtu]byte
}

type packet struct {
	due  time.Time
	data *[mtu]byte
	n    int
}

// link joins two namespaces, as netem does where the kernel supports it: packets travel through
// this process, which delays and drops them.
type link struct {
	ends    [2]*namespace
	names   [2]string
	to      [2]*direction // to each end
	files   [2]*os.File
	forward sync.WaitGroup
}

// newLink creates two namespaces, for [server] and [client], and the link between them.
func newLink(seed uint64) (l *link, err error) {
	l = &link{names: [2]string{"soak0", "soak1"}}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	for i, ip := range []string{serverIP, clientIP} {
		if l.ends[i], err = newNamespace(); err != nil {
			return l, err
		}
		fd, err := l.ends[i].createTUN(l.names[i], ip)
		if err != nil {
			return l, err
		}
		l.files[i] = os.NewFile(uintptr(fd), l.names[i])
	}
	for i := range l.to {
		d := &direction{from: l.files[1-i], to: l.files[i], random: rand.New(rand.NewPCG(seed, uint64(i))), delayed: make(chan packet, queued)}
		d.spare.New = func() any { return new([mtu]byte) }
		d.weather.Store(&weather{})
		l.to[i] = d
		l.forward.Go(d.readPackets)
		l.forward.Go(d.writePackets)
	}
	return l, nil
}

// readPackets reads packets, and drops them or queues them for writing.
func (d *direction) readPackets() {
	defer close(d.delayed)
	var last time.Time
	for {
		buf := d.spare.Get().(*[mtu]byte)
		n, err := d.from.Read(buf[:])
		if errors.Is(err, os.ErrClosed) {
			return
		}
		w := d.weather.Load()
		if err != nil || d.cut.Load() || d.random.Float64() < w.Loss {
			d.spare.Put(buf)
			continue
		}
		due := time.Now().Add(w.Delay)
		if w.Jitter > 0 {
			due = due.Add(upTo(d.random, w.Jitter))
		}
		if due.Before(last) { // packets keep their order
			due = last
		}
		last = due
		select {
		case d.delayed <- packet{due, buf, n}:
		default:
			d.spare.Put(buf)
		}
	}
}

// writePackets writes packets when they are due. Packets that are under way when the link is cut
// are lost.
func (d *direction) writePackets() {
	for p := range d.delayed {
		if wait := time.Until(p.due); wait > 0 {
			time.Sleep(wait)
		}
		if !d.cut.Load() {
			_, _ = d.to.Write(p.data[:p.n]) // an interface that is down accepts nothing
		}
		d.spare.Put(p.data)
	}
}

func (l *link) setWeather(w weather) {
	for _, d := range l.to {
		d.weather.Store(&w)
	}
}

// setCut starts or stops dropping all packets to an end.
func (l *link) setCut(end side, yes bool) { l.to[end].cut.Store(yes) }

// setDown sets an end's interface down, or up. While it is down, its namespace has no route, and
// its address does not exist.
func (l *link) setDown(end side, yes bool) error {
	return l.ends[end].runInside(func() error { return setFlags(l.names[end], !yes) })
}

func (l *link) close() (err error) {
	for _, f := range l.files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	l.forward.Wait()
	for _, n := range l.ends {
		if n != nil {
			n.close()
		}
	}
	return err
}
