package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/verbs"
)

const (
	bulkSize   = 1 << 20
	bulkWarmUp = 256
	bulkCount  = 2048
	bulkRounds = 7
	bulkAhead  = 4 // work requests on their way, and receives posted
)

// bulkResult is what one side reports.
type bulkResult struct {
	PerSecond float64 // bytes; receivers only
	CPU       float64 // ns per MiB
}

// bulk compares messages of 1 MiB at verbs level with TCP: one CPU for each process, blocking.
func bulk() ([]row, error) {
	kinds := []struct {
		name string
		op   verbs.Opcode
		crc  bool
		bar  float64
	}{
		{"Send", verbs.Send, false, 0.9},
		{"Send, CRC", verbs.Send, true, 0.7},
		{"Write", verbs.Write, false, 0.9},
		{"Write, CRC", verbs.Write, true, 0.7},
	}
	fmt.Printf("1 MiB messages, two processes on a CPU each, blocking, %d messages a run\n", bulkCount)
	fmt.Printf("GiB/s, its ratio to TCP's, and the ratio of both processes' CPU to TCP's\n%-5s %8s", "run", "TCP")
	for _, k := range kinds {
		fmt.Printf(" %22s", k.name)
	}
	fmt.Println()
	speeds, costs := make([][]float64, len(kinds)), make([][]float64, len(kinds))
	for i := range bulkRounds {
		tr, ts, err := runPair[bulkResult](ownCPU, "stream")
		if err != nil {
			return nil, err
		}
		fmt.Printf("%-5d %8.2f", i+1, tr.PerSecond/(1<<30))
		for k, kind := range kinds {
			r, s, err := runPair[bulkResult](ownCPU, "bulk", strconv.Itoa(int(kind.op)), strconv.FormatBool(kind.crc))
			if err != nil {
				return nil, err
			}
			speeds[k] = append(speeds[k], r.PerSecond/tr.PerSecond)
			costs[k] = append(costs[k], (r.CPU+s.CPU)/(tr.CPU+ts.CPU))
			fmt.Printf(" %8.2f %6.2f %6.2f", r.PerSecond/(1<<30), speeds[k][i], costs[k][i])
		}
		fmt.Println()
	}
	var rows []row
	fmt.Printf("median ratios:")
	for k, kind := range kinds {
		fmt.Printf(" %s %.2f, CPU %.2f;", kind.name, median(speeds[k]), median(costs[k]))
		rows = append(rows, atLeast("1 MiB "+kind.name+", verbs level, against TCP: throughput", kind.bar, median(speeds[k])))
	}
	fmt.Println()
	return rows, nil
}

// bulkMeter measures the run behind the warm-up.
type bulkMeter struct {
	start time.Time
	cpu   time.Duration
}

func (m *bulkMeter) begin() { m.cpu, m.start = cpuTime(), time.Now() }

func (m *bulkMeter) result() bulkResult {
	return bulkResult{
		PerSecond: bulkCount * bulkSize / time.Since(m.start).Seconds(),
		CPU:       float64(cpuTime()-m.cpu) / bulkCount,
	}
}

func bulkOptions(crc string) iwarp.Option {
	return func(c *iwarp.Config) { c.CRC = crc == strconv.FormatBool(true) }
}

// bulkServer receives messages, or the markers behind Writes. Its private data says where to write to.
func bulkServer(args []string) error {
	op := verbs.Opcode(atoi(args[0]))
	p := newPeer()
	var mr *verbs.MR
	var meter bulkMeter
	got, first, last := 0, bulkWarmUp, bulkWarmUp+bulkCount
	if op == verbs.Write {
		first, last = 1, 2
	}
	post := func(i uint64) error {
		return p.qp.PostRecv(verbs.RecvWR{ID: i, SGE: verbs.SGE{MR: mr, Offset: uint32(i) * bulkSize, Length: bulkSize}})
	}
	p.prepare = func() (private []byte, err error) {
		if mr, err = p.dev.Alloc(bulkAhead*bulkSize, verbs.LocalWrite|verbs.RemoteWrite); err != nil {
			return nil, err
		}
		for i := range uint64(bulkAhead) {
			if err := post(i); err != nil {
				return nil, err
			}
		}
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, mr.Addr), mr.RKey), nil
	}
	p.up = func([]byte) error { return nil }
	p.complete = func(wc *verbs.WC) error {
		if wc.Op != verbs.Recv {
			return nil
		}
		switch got++; got {
		case first:
			meter.begin()
		case last:
			return report(meter.result())
		}
		return post(wc.ID)
	}
	p.down = func() error { return nil }
	go func() { p.end(waitFor(nil)) }()
	return p.run(p.listen, bulkOptions(args[1]))
}

// bulkClient keeps some messages on their way. All are sent from the same memory, as the stream's are.
func bulkClient(args []string) error {
	op := verbs.Opcode(atoi(args[1]))
	p := newPeer()
	var mr *verbs.MR
	var addr uint64
	var key uint32
	var meter bulkMeter
	sent, expected := 0, bulkWarmUp+bulkCount
	post := func() error {
		if sent == bulkWarmUp+bulkCount {
			return nil
		}
		sent++
		wr := verbs.SendWR{Op: op, Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: mr, Length: bulkSize}}, RemoteAddr: addr, RKey: key}
		if err := p.qp.PostSend(&wr); err != nil || op == verbs.Send || sent != bulkWarmUp && sent != bulkWarmUp+bulkCount {
			return err
		}
		expected++
		return p.qp.PostSend(&verbs.SendWR{Op: verbs.Send, Flags: verbs.Signaled, Inline: []byte("marker")})
	}
	done := 0
	p.prepare = func() (_ []byte, err error) {
		mr, err = p.dev.Alloc(bulkSize, 0)
		return nil, err
	}
	p.up = func(private []byte) error {
		if len(private) < 12 {
			return fmt.Errorf("private data of %d bytes", len(private))
		}
		addr, key = binary.BigEndian.Uint64(private), binary.BigEndian.Uint32(private[8:])
		for range bulkAhead {
			if err := post(); err != nil {
				return err
			}
		}
		return nil
	}
	p.complete = func(*verbs.WC) error {
		switch done++; {
		case done == bulkWarmUp:
			meter.begin()
		case done == expected && sent == bulkWarmUp+bulkCount:
			if err := report(meter.result()); err != nil {
				return err
			}
			return p.do(p.id, &cmid.Disconnect{})
		}
		return post()
	}
	p.down = func() error {
		p.end(nil)
		return nil
	}
	return p.run(func() error { return p.dial(args[0]) }, bulkOptions(args[2]))
}

// streamServer reads what the stream has, up to 1 MiB at a time.
func streamServer([]string) error {
	fd, err := plainServer()
	if err != nil {
		return err
	}
	b := make([]byte, bulkSize)
	var meter bulkMeter
	for got := 0; got < (bulkWarmUp+bulkCount)*bulkSize; {
		n, err := unix.Read(fd, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if got < bulkWarmUp*bulkSize && got+n >= bulkWarmUp*bulkSize {
			meter.begin()
		}
		got += n
	}
	if err := report(meter.result()); err != nil {
		return err
	}
	return waitFor(nil)
}

// streamClient writes 1 MiB at a time.
func streamClient(args []string) error {
	fd, err := plainDial(args[0])
	if err != nil {
		return err
	}
	b := make([]byte, bulkSize)
	var meter bulkMeter
	for i := range bulkWarmUp + bulkCount {
		if i == bulkWarmUp {
			meter.begin()
		}
		for rest := b; len(rest) > 0; {
			n, err := unix.Write(fd, rest)
			if err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
			rest = rest[max(n, 0):]
		}
	}
	return report(meter.result())
}
