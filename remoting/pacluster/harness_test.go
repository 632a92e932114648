package pacluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/proctest"
)

const (
	// patience is how long an expected event may take, on a busy machine.
	patience = 2 * time.Minute
	// busy is the delay that a busy machine may add. It is less than the time after which a silent
	// member is given up.
	busy = defaultSilence / 2
)

// child is a member's process, as a test has it.
type child struct {
	*proctest.Process
	t    *testing.T
	role role
}

// freeAddrs returns unused addresses of loopback.
func freeAddrs(t *testing.T, n int) []string {
	t.Helper()
	return proctest.FreeAddrs(t, n)
}

// roles returns the roles of n members of one cluster.
func roles(t *testing.T, n int) []role {
	t.Helper()
	addrs := freeAddrs(t, 2*n)
	var all []role
	for i := range n {
		all = append(all, role{Name: addrs[i], Health: append(append([]string{}, addrs[n+i:]...), addrs[n:n+i]...)})
	}
	return all
}

// startAll starts members at the same time, and waits until each knows all.
func startAll(t *testing.T, all ...role) []*child {
	t.Helper()
	var members []*child
	var names []string
	for _, r := range all {
		members = append(members, start(t, r))
		if !r.Client {
			names = append(names, r.Name)
		}
	}
	for _, c := range members {
		c.want("= member ", "it has started")
		c.knows(names...)
	}
	return members
}

func start(t *testing.T, r role) *child {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return &child{proctest.Start(t, r.Name, proctest.Config{Env: []string{asMember + "=" + string(text), proctest.LogRaces(t)}}), t, r}
}

// want waits for a line that contains text, also one that came before and that no want has wanted.
// It returns the rest of the line.
func (c *child) want(text, why string) string {
	c.t.Helper()
	if rest, ok := c.seen(text); ok {
		return rest
	}
	_, rest, _ := strings.Cut(c.Want(text, why), text)
	return rest
}

func (c *child) seen(text string) (rest string, ok bool) {
	for i, l := range c.Seen {
		if _, rest, ok := strings.Cut(l, text); ok {
			c.Seen = slices.Delete(c.Seen, i, i+1)
			return rest, true
		}
	}
	return "", false
}

// never checks that no line so far contains text.
func (c *child) never(text, why string) {
	c.t.Helper()
	l, ok := c.seen(text)
	if !ok {
		var err error
		l, err = c.Next(text, 0)
		ok = err == nil
	}
	if ok {
		c.t.Errorf("%s wrote %q, %q (%s)", c.role.Name, text, l, why)
	}
}

// begin sends a command; its answer is for ends.
func (c *child) begin(format string, args ...any) (command string) {
	c.t.Helper()
	command = fmt.Sprintf(format, args...)
	c.Say("%s", command)
	return command
}

func (c *child) ends(command string) string {
	c.t.Helper()
	return c.want("= "+command+": ", "the answer")
}

// do sends a command, and gives its answer.
func (c *child) do(format string, args ...any) string {
	c.t.Helper()
	return c.ends(c.begin(format, args...))
}

// until repeats a command until it gets the answer.
func (c *child) until(answer, format string, args ...any) {
	c.t.Helper()
	var got string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if got = c.do(format, args...); got == answer {
			return
		}
	}
	c.t.Fatalf("%s: %s is %q, and never %q", c.role.Name, fmt.Sprintf(format, args...), got, answer)
}

// knows waits until the member knows these members, and no others.
func (c *child) knows(names ...string) {
	c.t.Helper()
	c.until(sorted(names...), "members")
}

// leaves terminates the process, and waits for its end.
func (c *child) leaves() {
	c.t.Helper()
	c.Signal(unix.SIGTERM)
	c.left()
}

// left waits for the end of a process that was terminated, and checks that it is in order.
func (c *child) left() {
	c.t.Helper()
	c.want("= left", "it ends in order")
	c.Exit(0, "in order")
}

// silent checks that gRPC was not used.
func silent(members ...*child) {
	for _, c := range members {
		c.t.Helper()
		if got := c.do("streams"); got != "0 0 0" {
			c.t.Errorf("%s: gRPC streams, dials and connections are %s", c.role.Name, got)
		}
	}
}
