// Rdmapeer speaks the protocols of rdmacm-utils' small programs, to be tested against them:
//
//	rdmapeer rdma_server|rdma_client   one message of 16 bytes each way
//	rdmapeer ucmatose [-s ADDR]        -c connections, -C messages of -S bytes each way; the server sends first
//	rdmapeer udaddy [-s ADDR]          the same with datagrams; the client sends first
//	rdmapeer mckey -m GROUP [-s]       datagrams to a multicast group
//	rdmapeer writeimm [-s ADDR]        a Write of -S bytes with immediate data each way (not of rdmacm-utils)
//
// Flags and exit status are those of the C programs. The exit status is 0, or 255 after a failure.
// The C programs do not check whether a message has the size that was asked for. Rdmapeer does. A
// server prints the address on which it listens. --device chooses between the embedded device and
// the kernel's.
//
// Rdmapeer uses cmid's plain calls, one after the other, as the C programs do.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/device"
	"github.com/rdmactor/rdmactor/internal/endpoint"
)

// program is one of the programs. flags registers the program's flags and returns the function that
// runs it.
type program struct {
	name  string
	flags func(f *flag.FlagSet) func(h *host)
}

var programs = []program{
	{"rdma_server", rdmaServer},
	{"rdma_client", rdmaClient},
	{"ucmatose", ucmatose},
	{"udaddy", udaddy},
	{"mckey", mckey},
	{"writeimm", writeImm},
}

// Exit statuses. The C programs return -1 from main.
const (
	badUsage = 1
	failed   = 255
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, newDriver)) }

// run runs one command line and returns the exit status. drivers makes the driver for the value of
// --device.
func run(args []string, stdout, stderr io.Writer, drivers func(kind string) (cmid.Driver, error)) int {
	if len(args) > 0 {
		for _, p := range programs {
			if p.name == args[0] {
				return p.runProgram(args[1:], stdout, stderr, drivers)
			}
		}
	}
	fmt.Fprintln(stderr, "which program?")
	for _, p := range programs {
		fmt.Fprintln(stderr, "  rdmapeer", p.name, "[flags]")
	}
	return badUsage
}

func (p program) runProgram(args []string, stdout, stderr io.Writer, drivers func(kind string) (cmid.Driver, error)) int {
	f := flag.NewFlagSet("rdmapeer "+p.name, flag.ContinueOnError)
	f.SetOutput(stderr)
	kind := f.String("device", string(device.IWARP), "`KIND` of device: iwarp, the embedded one, or kernel")
	timeout := f.Duration("timeout", 20*time.Second, "how long a step may take")
	body := p.flags(f)
	if err := f.Parse(args); err != nil {
		return badUsage
	}
	if f.NArg() > 0 {
		fmt.Fprintf(stderr, "%s: unexpected %q\n", p.name, f.Arg(0))
		return badUsage
	}
	d, err := drivers(*kind)
	if err == nil {
		err = runBody(d, *timeout, stdout, body)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", p.name, err)
		return failed
	}
	return 0
}

// runBody runs a program's body on a device.
func runBody(d cmid.Driver, timeout time.Duration, stdout io.Writer, body func(h *host)) error {
	ch, err := endpoint.Open(d)
	if err != nil {
		return err
	}
	h := &host{ch: ch, timeout: timeout, out: stdout}
	body(h)
	return errors.Join(h.err, h.close())
}

// newDriver makes the driver for the value of --device.
func newDriver(kind string) (cmid.Driver, error) {
	switch k := device.Kind(kind); k {
	case device.IWARP, device.Kernel:
		return device.Choice{Kind: k}.Driver(), nil
	}
	return nil, fmt.Errorf("--device %s: want iwarp or kernel", kind)
}
