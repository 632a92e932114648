package pacluster

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// The shell neither dials nor accepts, and counts the attempts. An event by which Proto.Actor's
// remote would dial does no harm to the existing link.
func TestShell(t *testing.T) {
	t.Parallel()
	m := startAll(t, roles(t, 2)...)
	id := grainsAt(m[0], m[1].role.Name, 1)[0]
	silent(m...)
	m[0].do("dial-grpc %s", m[1].role.Name)
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if counts := strings.Fields(m[0].do("streams")); counts[1] != "0" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("an attempt to dial is not counted")
		}
	}
	if got := m[0].do("where %s", id); got != m[1].role.Name {
		t.Errorf("the link gives %q", got)
	}
	silent(m[1])

	c, err := net.Dial("tcp", m[1].do("shell"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	if _, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("who connects to the shell is not sent away: %v", err)
	}
	m[1].until("0 0 1", "streams")
}
