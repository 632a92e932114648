package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
	"github.com/rdmactor/rdmactor/slots"
)

// The contestants of the figure files.
const (
	bySlots    = "slots"
	bySendfile = "sendfile"        // the receiver reads and writes, 256 KiB at a time
	bySplice   = "sendfile+splice" // the receiver uses splice(2), too
)

// fileBytes is the length of the file.
const fileBytes, quickFileBytes = 1 << 30, 64 << 20

// newFile makes a file without a name, in memory if that is possible.
func newFile() (*os.File, error) {
	dir := "/dev/shm"
	if _, err := os.Stat(dir); err != nil {
		dir = ""
	}
	f, err := os.CreateTemp(dir, "rdmactor-figures-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// keepFile writes a file by write, and answers with its length. Freeing its memory is not measured.
func keepFile(write func(*os.File) error, answer func(n uint64) error) error {
	f, err := newFile()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := write(f); err != nil {
		return err
	}
	n, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	return answer(uint64(n))
}

func serveFiles(e measure.Entry) (measure.Service, error) {
	if e.Contestant != bySlots {
		return contest.ListenTCP(func(c net.Conn) { _ = takeTCP(e, c) })
	}
	w, err := contest.OpenWorld(e, rdma.Config{})
	if err != nil {
		return measure.Service{}, err
	}
	ctx, stop := context.WithCancel(context.Background())
	l, err := slots.Listen(ctx, w.RT, "127.0.0.1:0")
	if err != nil {
		stop()
		return measure.Service{}, errors.Join(err, w.Close())
	}
	go func() {
		for {
			c, err := l.Accept(ctx)
			if err != nil {
				return
			}
			_ = takeSlots(ctx, c)
		}
	}()
	return measure.Service{Addr: l.Addr().String(), Close: func() error {
		stop()
		return errors.Join(l.Close(), w.Close())
	}}, nil
}

// takeTCP writes the received bytes to a file, and answers with its length.
func takeTCP(e measure.Entry, c net.Conn) error {
	return keepFile(func(f *os.File) error {
		var err error
		if e.Contestant == bySplice {
			_, err = f.ReadFrom(c)
		} else {
			_, err = io.CopyBuffer(struct{ io.Writer }{f}, struct{ io.Reader }{c}, make([]byte, 256<<10))
		}
		return err
	}, func(n uint64) error {
		_, err := c.Write(binary.BigEndian.AppendUint64(nil, n))
		return err
	})
}

// takeSlots does what takeTCP does, for slots.
func takeSlots(ctx context.Context, c *slots.Conn) error {
	defer func() { _ = c.Close() }()
	return keepFile(func(f *os.File) error {
		for {
			r, err := c.Receive(ctx)
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
			_, err = f.Write(r.Bytes())
			r.Release()
			if err != nil {
				return err
			}
		}
	}, func(n uint64) error {
		r, err := c.Reserve(ctx)
		if err != nil {
			return err
		}
		return r.Send(len(binary.BigEndian.AppendUint64(r.Bytes()[:0], n)))
	})
}

// source is the file that is copied.
type source struct {
	*os.File
	n int64
}

func newSource(e measure.Entry) (*source, error) {
	f, err := newFile()
	if err != nil {
		return nil, err
	}
	s := &source{f, fileBytes}
	if e.Quick {
		s.n = quickFileBytes
	}
	part := contest.NewPayload(1 << 20)
	for i := int64(0); i < s.n && err == nil; i += int64(len(part)) {
		_, err = f.Write(part)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return s, nil
}

func dialFiles(addr string, e measure.Entry) (measure.Client, error) {
	s, err := newSource(e)
	if err != nil {
		return measure.Client{}, err
	}
	give, end := func() (uint64, error) { return giveTCP(addr, s) }, s.Close
	if e.Contestant == bySlots {
		w, err := contest.OpenWorld(e, rdma.Config{})
		if err != nil {
			return measure.Client{}, errors.Join(err, s.Close())
		}
		give = func() (uint64, error) { return giveSlots(w.RT, addr, s) }
		end = func() error { return errors.Join(w.Close(), s.Close()) }
	}
	return measure.Client{Run: func(d time.Duration) (measure.Sample, error) { return s.copyRepeatedly(d, give) }, Close: end}, nil
}

// copyRepeatedly copies the file repeatedly for the time d, at least once.
func (s *source) copyRepeatedly(d time.Duration, give func() (uint64, error)) (sample measure.Sample, err error) {
	for begun := time.Now(); sample.N == 0 || sample.Seconds < d.Seconds(); sample.Seconds = time.Since(begun).Seconds() {
		if _, err := s.Seek(0, io.SeekStart); err != nil {
			return sample, err
		}
		switch n, err := give(); {
		case err != nil:
			return sample, err
		case n != uint64(s.n):
			return sample, fmt.Errorf("%d bytes have arrived, of %d", n, s.n)
		}
		sample.N++
		sample.Bytes += int(s.n)
	}
	return sample, nil
}

func giveTCP(addr string, s *source) (uint64, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	if _, err := io.Copy(c, s.File); err != nil { // sendfile(2)
		return 0, err
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return 0, err
	}
	var b [8]byte
	_, err = io.ReadFull(c, b[:])
	return binary.BigEndian.Uint64(b[:]), err
}

func giveSlots(rt *rdma.Runtime, addr string, s *source) (uint64, error) {
	ctx := context.Background()
	c, err := slots.Dial(ctx, rt, addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	for left := s.n; left > 0; {
		r, err := c.Reserve(ctx)
		if err != nil {
			return 0, err
		}
		n, err := io.ReadFull(s, r.Bytes()[:min(left, int64(c.Size()))])
		if err != nil {
			r.Release()
			return 0, err
		}
		if err := r.Send(n); err != nil {
			return 0, err
		}
		left -= int64(n)
	}
	if err := c.End(); err != nil {
		return 0, err
	}
	r, err := c.Receive(ctx)
	if err != nil {
		return 0, err
	}
	defer r.Release()
	return binary.BigEndian.Uint64(r.Bytes()), nil
}
