//go:build vm

package interoptest

import (
	"fmt"
	"strings"
)

// conversation is a pair of command lines, of a server and its client. This project's programs have
// the same flags as those of rdmacm-utils.
type conversation struct {
	server, client string // ADDR and PORT stand for the server's address
	// output of a success: rping's exit status is 0 in most failures too
	serverSays, clientSays string
	over                   []string
}

// name returns the name in the results: the client's program and the flags of both sides, except
// addresses.
func (c conversation) name() string {
	words := strings.Fields(c.client)
	keep := map[string]bool{"-C": true, "-S": true, "-c": words[0] != "rping"}
	name := words[0]
	for i, w := range words {
		if keep[w] {
			name += " " + w + " " + words[i+1]
		}
	}
	return name
}

// The ways between the two sides. Ours are this project's programs, theirs those of rdmacm-utils.
const (
	rxe = "rxe" // ours on the kernel's rdma_cm, both on the soft-RoCE device
	siw = "siw" // ours on the kernel's rdma_cm, both on the soft-iWARP device
	// ours on the embedded device outside the machine, theirs on the soft-iWARP device inside
	iwarp = "iwarp to siw"
)

var (
	connected = []string{rxe, siw, iwarp}
	datagrams = []string{rxe} // iWARP has none
	// iWARP has no immediate data
	immediates = []string{rxe}
)

var conversations = []conversation{
	{
		"rdma_server -s ADDR -p PORT", "rdma_client -s ADDR -p PORT",
		"rdma_server: end 0", "rdma_client: end 0", connected,
	},
	ucmatose(""),
	ucmatose(" -S 4000"),
	ucmatose(" -c 10"),
	ucmatose(" -c 10 -C 20 -S 20000"),
	rping(" -C 10 -S 100"),
	rping(" -C 20 -S 4097"),
	rping(" -C 5 -S 65000"),
	writeimm(" -S 100"),
	writeimm(" -S 20000"),
	{"udaddy -b ADDR", "udaddy -s ADDR", "return status 0", "return status 0", datagrams},
	{"udaddy -b ADDR -c 10 -S 1000", "udaddy -s ADDR -c 10 -S 1000", "return status 0", "return status 0", datagrams},
	{
		"mckey -m 239.1.1.1 -b ADDR -S 1000", "mckey -m 239.1.1.1 -b ADDR -S 1000 -s",
		"return status 0", "return status 0", datagrams,
	},
}

// others returns the command line for a program of rdmacm-utils, or for this project's C program.
// The sender of mckey destroys its queue pair right after its last post, without waiting for a
// completion. rxe of 6.12 sends in a work queue (rxe of 6.1 sends in the post itself). It drops the
// messages that the work queue has not yet sent, often all ten. So the sender is delayed after the
// tenth post: strace makes that system call take 2 s longer.
func others(line string) string {
	if strings.HasPrefix(line, "writeimm ") {
		return "/share/" + line
	}
	if strings.HasPrefix(line, "mckey ") && strings.HasSuffix(line, " -s") {
		return "strace -qq -o /dev/null -P /dev/infiniband/uverbs0 -e trace=write -e inject=write:delay_exit=2000000:when=10+ " + line
	}
	return line
}

func ucmatose(flags string) conversation {
	return conversation{
		"ucmatose -b ADDR -p PORT" + flags, "ucmatose -s ADDR -p PORT" + flags,
		"return status 0", "return status 0", connected,
	}
}

// writeimm is a C program of this project, because rdmacm-utils has none with immediate data.
func writeimm(flags string) conversation {
	return conversation{
		"writeimm -b ADDR -p PORT" + flags, "writeimm -s ADDR -p PORT" + flags,
		"writeimm: end 0", "writeimm: end 0", immediates,
	}
}

func rping(flags string) conversation {
	var rounds int
	fmt.Sscanf(flags, " -C %d", &rounds)
	last := fmt.Sprintf("ping data: rdma-ping-%d: ", rounds-1)
	return conversation{
		"rping -s -v -a ADDR -p PORT" + flags, "rping -c -v -V -a ADDR -p PORT" + flags,
		"server " + last, last, connected,
	}
}

// cell is a conversation over one way, with either program as the server.
type cell struct {
	conversation
	over       string
	ourServer  bool   // else the client is ours
	port       string // of the server
	wantFailed string
}

func (c cell) String() string {
	ours := "client"
	if c.ourServer {
		ours = "server"
	}
	if c.wantFailed != "" {
		ours += " sees a wrong size"
	}
	return fmt.Sprintf("%s: our %s, over %s", c.name(), ours, c.over)
}

// cells returns all cells. Those whose failure does not affect the machine are first.
func cells() (list []cell) {
	for _, over := range []string{rxe, siw, iwarp} {
		for _, c := range conversations {
			for _, way := range c.over {
				if way == over {
					list = append(list, cell{conversation: c, over: over}, cell{conversation: c, over: over, ourServer: true})
				}
			}
		}
		// This checks the test itself: it must notice a peer that sends another size.
		wrong := ucmatose("")
		wrong.server += " -S 99"
		list = append(list, cell{conversation: wrong, over: over, wantFailed: "message 0 has 99 bytes, want 100"})
	}
	return list
}
