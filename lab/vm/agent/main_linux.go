// Command agent runs in the guest of package vm. It reads frames from a virtio-serial port, runs
// the commands in them, and sends back their output and exit codes.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/lab/vm/wire"
)

func main() {
	port, err := os.OpenFile(os.Args[1], os.O_RDWR, 0)
	if err != nil {
		fmt.Println("agent:", err)
		os.Exit(1)
	}
	a := &agent{port: port, commands: map[uint32]*command{}}
	a.sendFrame(wire.Frame{Kind: wire.Ready})
	fmt.Println("agent:", a.serveFrames())
	os.Exit(1)
}

type agent struct {
	write sync.Mutex
	port  *os.File

	mu       sync.Mutex
	commands map[uint32]*command
}

type command struct {
	process *os.Process
	input   chan []byte
	ended   chan struct{}
}

// sendFrame sends a frame. It blocks while the rig does not read. It ignores errors of the port,
// because serveFrames gets them too.
func (a *agent) sendFrame(f wire.Frame) {
	a.write.Lock()
	defer a.write.Unlock()
	_ = wire.Write(a.port, f)
}

func (a *agent) serveFrames() error {
	for {
		f, err := wire.Read(a.port)
		if err != nil {
			return err
		}
		if f.Kind == wire.Start {
			a.startCommand(f.Command, string(f.Payload))
			continue
		}
		a.mu.Lock()
		c := a.commands[f.Command]
		a.mu.Unlock()
		switch {
		case c == nil: // the command has ended in the meantime
		case f.Kind == wire.Stdin:
			select {
			case c.input <- f.Payload:
			case <-c.ended:
			}
		case f.Kind == wire.Kill:
			_ = unix.Kill(-c.process.Pid, unix.SIGKILL)
		}
	}
}

func (a *agent) startCommand(id uint32, script string) {
	fail := func(err error) {
		a.sendFrame(wire.Frame{Kind: wire.Output, Command: id, Payload: []byte("agent: " + err.Error() + "\n")})
		a.sendFrame(wire.Frame{Kind: wire.Exit, Command: id, Payload: []byte("126")})
	}
	var out, in, ended [2]int
	for _, p := range []*[2]int{&out, &in, &ended} {
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			fail(err)
			return
		}
	}
	stdin, stdout := os.NewFile(uintptr(in[0]), "stdin"), os.NewFile(uintptr(out[1]), "stdout")
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = "/root", stdin, stdout, stdout
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	err := cmd.Start()
	_, _ = stdin.Close(), stdout.Close()
	if err != nil {
		fail(err)
		return
	}
	c := &command{process: cmd.Process, input: make(chan []byte, 64), ended: make(chan struct{})}
	a.mu.Lock()
	a.commands[id] = c
	a.mu.Unlock()
	go c.writeInput(os.NewFile(uintptr(in[1]), "stdin"))
	go a.forwardOutput(id, out[0], ended[0], cmd)
	go func() {
		_ = cmd.Wait()
		_ = unix.Close(ended[1])
	}()
}

// writeInput writes input to the command until an empty piece ends the input. Once the command has
// closed its input, writeInput drops the rest.
func (c *command) writeInput(w *os.File) {
	for {
		select {
		case b := <-c.input:
			if len(b) == 0 {
				_ = w.Close()
				continue
			}
			_, _ = w.Write(b)
		case <-c.ended:
			_ = w.Close()
			return
		}
	}
}

// forwardOutput sends a command's output, then its exit code. It sends everything that was written
// before the command's end. It does not wait for more, because processes in the background may keep
// the pipe open forever. It reads and drops their output.
func (a *agent) forwardOutput(id uint32, out, ended int, cmd *exec.Cmd) {
	buf := make([]byte, wire.MaxPayload)
	exited := false
	for {
		fds := []unix.PollFd{{Fd: int32(out), Events: unix.POLLIN}, {Fd: int32(ended), Events: unix.POLLIN}}
		if exited {
			fds = fds[:1]
		}
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if fds[0].Revents != 0 {
			n, err := unix.Read(out, buf)
			if n > 0 {
				if !exited {
					a.sendFrame(wire.Frame{Kind: wire.Output, Command: id, Payload: buf[:n]})
				}
				continue
			}
			if err == nil && exited {
				break
			}
		}
		if !exited && (fds[1].Revents != 0 || fds[0].Revents != 0) {
			// The command may only have closed its output. This waits for its end.
			_, _ = unix.Read(ended, buf)
			exited = true
			a.reportExit(id, cmd)
		}
	}
	_, _ = unix.Close(out), unix.Close(ended)
}

func (a *agent) reportExit(id uint32, cmd *exec.Cmd) {
	a.mu.Lock()
	close(a.commands[id].ended)
	delete(a.commands, id)
	a.mu.Unlock()
	code := cmd.ProcessState.ExitCode()
	status, ok := cmd.ProcessState.Sys().(interface {
		Signaled() bool
		Signal() unix.Signal
	})
	if ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	a.sendFrame(wire.Frame{Kind: wire.Exit, Command: id, Payload: []byte(strconv.Itoa(code))})
}
