package network

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// firstFile is the lowest descriptor that a process may get, after the standard ones.
const firstFile = 3

// Limits bounds a process's resources. Zero means no bound.
type Limits struct {
	Files int // RLIMIT_NOFILE: each descriptor is below it
}

// Process is a program on a machine. It has descriptors.
type Process struct {
	m     *Machine
	limit int
	files []*sock // indexed by descriptor
	dead  bool
}

// Process starts a process on the machine.
func (m *Machine) Process(l Limits) *Process {
	p := &Process{m: m, limit: l.Files}
	if p.limit <= 0 {
		p.limit = math.MaxInt
	}
	p.dead = m.off
	m.procs = append(m.procs, p)
	return p
}

// Ready returns a descriptor's ready events, as epoll would report them: Hangup and Error included.
// It returns none if the descriptor is not open.
func (p *Process) Ready(fd int) eventloop.Events {
	s, err := p.sockOf(fd)
	if err != nil {
		return 0
	}
	return s.readyEvents()
}

// File identifies the open file behind a descriptor, in the whole network. It is 0 if the
// descriptor is not open. A reused descriptor has another file.
func (p *Process) File(fd int) uint64 {
	s, err := p.sockOf(fd)
	if err != nil {
		return 0
	}
	return s.flow.serial
}

// Kill ends the process without notice. The machine closes its descriptors.
func (p *Process) Kill() {
	for fd, s := range p.files {
		if s != nil {
			p.releaseFD(fd)
			s.close()
		}
	}
	p.closeAll()
	for i, q := range p.m.procs {
		if q == p {
			p.m.procs = append(p.m.procs[:i:i], p.m.procs[i+1:]...)
			break
		}
	}
}

// Dead reports whether the process has ended.
func (p *Process) Dead() bool { return p.dead }

// Left describes the open descriptors of all processes.
func (m *Machine) Left() (left []string) {
	for _, p := range m.procs {
		for fd, s := range p.files {
			if s != nil {
				left = append(left, fmt.Sprintf("%s: fd %d: %v", m.name, fd, s))
			}
		}
	}
	return left
}

func (p *Process) closeAll() {
	for fd, s := range p.files {
		if s != nil {
			p.releaseFD(fd)
		}
	}
	p.files, p.dead = nil, true
}

// sockOf returns the socket behind a descriptor.
func (p *Process) sockOf(fd int) (*sock, error) {
	if fd < 0 || fd >= len(p.files) || p.files[fd] == nil {
		return nil, unix.EBADF
	}
	return p.files[fd], nil
}

// lowestFree returns the lowest free descriptor.
func (p *Process) lowestFree() (int, error) {
	if p.dead {
		return -1, unix.EMFILE
	}
	fd := firstFile
	for fd < len(p.files) && p.files[fd] != nil {
		fd++
	}
	switch {
	case fd >= p.limit:
		return -1, unix.EMFILE
	case p.m.files >= p.m.net.cfg.Files:
		return -1, unix.ENFILE
	}
	return fd, nil
}

// assignFD assigns s a descriptor returned by lowestFree.
func (p *Process) assignFD(fd int, s *sock) {
	for len(p.files) <= fd {
		p.files = append(p.files, nil)
	}
	p.files[fd] = s
	p.m.files++
}

// releaseFD frees a descriptor.
func (p *Process) releaseFD(fd int) {
	p.files[fd] = nil
	p.m.files--
}
