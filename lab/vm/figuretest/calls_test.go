//go:build vm

package figuretest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// calls maps names of system calls to their numbers.
type calls map[string]float64

// commands returns the number of system calls that are commands to the kernel's RDMA stack.
// librdmacm and libibverbs use write(2) and ioctl(2), and rdmactor uses only write(2). Writes that
// wake rdmactor's loop are not commands.
func (c calls) commands() float64 { return c["write"] + c["ioctl"] }

// shared allows for commands that several connections share: occasionally a queue is armed, or
// memory is registered.
const shared = 0.2

const (
	// wake is a write(2) of as many bytes as an eventfd takes. A command has more.
	wake = "eventfd write"
	// vain is a GET_EVENT that found no event. rdmactor's last GET_EVENT after a wake-up usually
	// finds none. cmtime has threads that wait in the command instead. Their number depends on the
	// load, so they are counted separately.
	vain = "write in vain"
)

// waiting returns the number of system calls that a program makes while it waits. cmtime's client
// spins on sched_yield(2), and Go's runtime checks its threads occasionally. The number depends
// only on the duration of the wait.
func (c calls) waiting() float64 { return c["sched_yield"] + c["nanosleep"] }

func (c calls) all() (n float64) {
	for _, v := range c {
		n += v
	}
	return n
}

// String lists the calls, the most frequent first.
func (c calls) String() string {
	names := slices.SortedFunc(maps.Keys(c), func(a, b string) int { return int(1000 * (c[b] - c[a])) })
	var out []string
	for _, name := range names {
		if n := c[name]; n >= 0.05 {
			out = append(out, fmt.Sprintf("%s %.2f", name, n))
		}
	}
	return strings.Join(out, ", ")
}

// callsRows returns the system calls of a connection, on both sides. It subtracts the calls of one
// connection from those of n connections. The kernel's tracing counts them without slowing the
// programs down.
func (g *guest) callsRows(n int) (rows []string) {
	per := make(map[string]calls)
	for _, who := range []string{"cmtime", "rdmactor"} {
		one, many := g.count(who, 1), g.count(who, n)
		for _, side := range []string{"client", "server"} {
			c := make(calls)
			for name, total := range many[side] {
				// The cost of a connection. A negative value is chance.
				c[name] = max((total-one[side][name])/float64(n-1), 0)
			}
			per[who+side] = c
			g.t.Logf("system calls of a connection, %s's %s: %v", who, side, c)
		}
	}
	for _, side := range []string{"client", "server"} {
		theirs, ours := per["cmtime"+side], per["rdmactor"+side]
		if theirs.commands() < 5 || ours.commands() < 5 {
			g.t.Errorf("%s: %.1f commands of cmtime's for a connection and %.1f of rdmactor's: the counter is broken", side, theirs.commands(), ours.commands())
		}
		if ours.commands() > theirs.commands()+shared {
			g.t.Errorf("%s: a connection costs %.2f commands, librdmacm needs %.2f", side, ours.commands(), theirs.commands())
		}
		rows = append(rows,
			fmt.Sprintf("| %s: commands to the kernel for a connection (write, ioctl) | %.1f | %.1f, and %.1f in vain | %.2f (bar 1) |",
				side, theirs.commands(), ours.commands(), ours[vain], ours.commands()/theirs.commands()),
			fmt.Sprintf("| %s: system calls for a connection, without sched_yield and nanosleep | %.1f | %.1f | |",
				side, theirs.all()-theirs.waiting(), ours.all()-ours.waiting()),
			fmt.Sprintf("| %s: all system calls for a connection | %.1f | %.1f | |", side, theirs.all(), ours.all()))
	}
	return rows
}

// count makes a program's client connect n times to the program's own server, and counts the system
// calls of each side.
func (g *guest) count(who string, n int) map[string]calls {
	out := g.run(fmt.Sprintf(`
trace=/sys/kernel/tracing/events
[ -d $trace ] || mount -t tracefs none /sys/kernel/tracing
ln -sf "$(command -v %[1]s)" /tmp/fig-client; ln -sf "$(command -v %[1]s)" /tmp/fig-server
for side in client server; do
	echo "hist:keys=id.syscall:size=1024 if comm==\"fig-$side\"" >>$trace/raw_syscalls/sys_enter/trigger
	echo "hist:keys=fd:size=1024 if comm==\"fig-$side\" && count==8" >>$trace/syscalls/sys_enter_write/trigger
	echo "hist:keys=ret:size=1024 if comm==\"fig-$side\" && ret<0" >>$trace/syscalls/sys_exit_write/trigger
done
serve %[2]s
%[3]s >/tmp/out 2>&1 || { cat /tmp/out; exit 1; }
sleep 1 # the server destroys after the client
cat $trace/raw_syscalls/sys_enter/hist $trace/syscalls/sys_enter_write/hist $trace/syscalls/sys_exit_write/hist
: >$trace/raw_syscalls/sys_enter/trigger
: >$trace/syscalls/sys_enter_write/trigger
: >$trace/syscalls/sys_exit_write/trigger
unserve
`, who, g.serverOf(who, "/tmp/fig-server"), g.clientOf(who, "/tmp/fig-client", n)))
	return g.histograms(out)
}

var (
	histogram = regexp.MustCompile(`# trigger info: .* if comm=="fig-(\w+)"`)
	bucket    = regexp.MustCompile(`id: sys_(\w+) .*hitcount: *(\d+)`)
	others    = regexp.MustCompile(`\{ (fd|ret): .*hitcount: *(\d+)`)
)

func (g *guest) histograms(text string) map[string]calls {
	found := make(map[string]calls)
	side := ""
	for line := range strings.Lines(text) {
		if m := histogram.FindStringSubmatch(line); m != nil {
			if side = m[1]; found[side] == nil {
				found[side] = make(calls)
			}
		} else if m := others.FindStringSubmatch(line); m != nil && side != "" {
			n, _ := strconv.ParseFloat(m[2], 64)
			found[side][map[string]string{"fd": wake, "ret": vain}[m[1]]] += n
			found[side]["write"] -= n
		} else if m := bucket.FindStringSubmatch(line); m != nil && side != "" {
			n, _ := strconv.ParseFloat(m[2], 64)
			found[side][m[1]] += n
		}
	}
	if len(found["client"]) == 0 || len(found["server"]) == 0 {
		g.t.Fatalf("the kernel counts no system calls of both sides:\n%s", text)
	}
	return found
}
