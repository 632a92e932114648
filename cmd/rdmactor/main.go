// Rdmactor is the project's command-line tool; see rdmactor --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rdmactor/rdmactor/internal/cli"
)

const overview = `rdmactor: RDMA in one program, without kernel modules and without root

  rdmactor ping -s|-c            rping's conversation, with verifiable data
  rdmactor time [-s|-c]          cmtime's measurement of a connection's steps
  rdmactor perf -s|-c            perftest's latency and bandwidth measurements
  rdmactor list ADDRESS          the methods of an rpc server
  rdmactor call ADDRESS METHOD   one call, with request and answer as JSON
  rdmactor bench ADDRESS METHOD  calls at a fixed rate: latencies and errors
  rdmactor probe ADDRESS         whether an rpc server takes calls
  rdmactor top URL               a running program, live, in a terminal
  rdmactor ids [URL]             the identifiers of a program, or of the kernel
  rdmactor doctor                this machine's RDMA devices, and their defects
  rdmactor keygen IDENTITY       create a pre-shared key for --key
  rdmactor certs [NAME...]       create certificates for development

rdmactor help COMMAND, or COMMAND --help, describes one. An ADDRESS is HOST or
HOST:PORT, with IPv6 [IPV6]:PORT. rdmactor --version prints the build.

Ctrl-C ends a server, and a client without an end, with status 0. A client with
a fixed amount of work prints its results so far: the status is 0 if there are
any, otherwise 130.

ping, time and perf are measurements, like rping and the others: they neither
authenticate nor encrypt, and their servers serve everyone who can reach them.
Run them only where all machines of the network are trusted.
`

func main() { cli.Main("rdmactor", runCommand) }

// runCommand runs one command line. When ctx is done, it returns early and frees everything.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New("which command? see rdmactor help")
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
	case "help":
		if len(args) > 1 && args[1] != "help" {
			return runCommand(ctx, []string{args[1], "--help"}, stdout, stderr)
		}
		fmt.Fprint(stdout, overview)
		return nil
	case "-h", "-help", "--help":
		fmt.Fprint(stdout, overview)
		return nil
	case "version":
		fmt.Fprintln(stdout, cli.Version("rdmactor"))
		return nil
	}
	return fmt.Errorf("unknown command %q; see rdmactor help", args[0])
}
