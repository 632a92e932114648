// Rdmactor is the project's command-line tool; see rdmactor --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rdmactor/rdmactor/internal/cli"
)

const overview = `rdmactor: RDMA from one program, without kernel modules and without root

  rdmactor ping -s|-c [flags]    rping's conversation: Send, Read and Write with data that can be checked
  rdmactor time [-s|-c] [flags]  cmtime's measurement: what each step of a connection takes
  rdmactor perf -s|-c [flags]    perftest's measurements: latency and bandwidth of send, write and read
  rdmactor list ADDRESS          the methods of an rpc server
  rdmactor call ADDRESS METHOD   one call, its request and answer as JSON
  rdmactor bench ADDRESS METHOD  calls at a fixed rate: how long they take, and which fail
  rdmactor probe ADDRESS         whether an rpc server takes calls: the status is 0 if it does
  rdmactor top URL               a running program's identifiers, loops and memory, live, in a terminal
  rdmactor ids [URL] [flags]     the identifiers of a running program, of the kernel, or both joined
  rdmactor doctor                this machine's RDMA devices, and what is missing
  rdmactor keygen IDENTITY       a pre-shared key, in a file, for programs that take --key
  rdmactor certs [NAME...]       certificates for development, for programs that take --tls-cert

Each takes --help. An address is HOST or HOST:PORT everywhere, an IPv6 address with a port [IPV6]:PORT. Ctrl-C is how a server, and a
client that was given no end, are ended: the status is 0. A client that had its work to do says what it has got until then: the status
is 0 if that is a result, else 130. rdmactor --version prints the build.

ping, time and perf are measurements: they neither authenticate nor encrypt, and their servers take whoever can reach them. rping and
its like are their peers. Run them where all machines of the network are trusted.
`

func main() { cli.Main("rdmactor", runCommand) }

// runCommand runs one command line. When ctx is done, it returns early and frees everything.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New("which command? see rdmactor --help")
	}
	switch args[0] {
	case "ping":
		return runPing(ctx, args[1:], stdout, stderr)
	case "time":
		return timeSteps(ctx, args[1:], stdout, stderr)
	case "perf":
		return runPerf(ctx, args[1:], stdout, stderr)
	case "list":
		return listMethods(ctx, args[1:], stdout, stderr)
	case "call":
		return callMethod(ctx, args[1:], stdout, stderr)
	case "probe":
		return probeServer(ctx, args[1:], stdout, stderr)
	case "bench":
		return benchMethod(ctx, args[1:], stdout, stderr)
	case "top":
		return runTop(ctx, args[1:], stdout, stderr)
	case "ids":
		return listIDs(ctx, args[1:], stdout, stderr)
	case "doctor":
		return runDoctor(ctx, args[1:], stdout)
	case "keygen":
		return runKeygen(args[1:], stdout)
	case "certs":
		return runCerts(args[1:], stdout)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, overview)
		return nil
	}
	return fmt.Errorf("unknown command %q; see rdmactor --help", args[0])
}
