package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"path"
	"regexp"
	"strings"
	"time"
)

// Config configures a Page. Zero fields have defaults.
type Config struct {
	// Path is where the handler is mounted, with a slash at both ends: /debug/rdma/.
	Path string
	// Interval is the time between events for viewers, and the least time between inspections of
	// the runtime: 1 s, and at least 100 ms.
	Interval time.Duration
	// Viewers is how many requests may get events at a time: 16.
	Viewers int
	// Sections are tables of the program, such as remoting's peers. See Rows.
	Sections []Section
	// Hosts are the names by which browsers may address the page, in small letters and without
	// ports: rdma.example.com. Addresses, localhost and this machine's name (os.Hostname, also
	// without its domain) need not be listed. "*" allows any name. For which names are safe, see
	// the package's documentation.
	Hosts []string
	// Actions switches actions on. nil: none.
	Actions *Actions
}

// Actions configures the page's actions. Each action is a POST whose body is JSON, with the header
//
//	Authorization: Bearer TOKEN
//
//	actions/disconnect, actions/drain    {"id": N}
//	actions/level                        {"level": "debug"}
//	actions/capture                      {"id": N} or {"peer": "10.0.0.7:4791"}, "seconds", "bytes"
//	actions/capture-stop, -delete        {"capture": N}
//
// A browser sends that header only for the page itself, because the page asks for the token and
// keeps it in its tab. Each action is logged.
type Actions struct {
	// Token is required by each action. It has at least 16 bytes.
	Token string
	// Level is set by actions/level. nil: the action is refused.
	Level *slog.LevelVar
	// Capture begins a capture: it writes the traffic of the chosen connections to w as a file that
	// Wireshark reads. The page calls it while none of its captures runs. nil: no captures. For the
	// embedded device:
	//
	//	func(w io.Writer, c inspect.Chosen) (inspect.Capture, error) {
	//		return driver.StartCapture(iwarp.CaptureConfig{
	//			Writer: w, MaxBytes: c.MaxBytes,
	//			Local: c.Local, LocalPort: c.LocalPort, Peer: c.Peer, PeerPort: c.PeerPort,
	//		})
	//	}
	Capture func(w io.Writer, c Chosen) (Capture, error)
	// CaptureBytes is the largest size of a capture's file: 16 MiB. The page keeps the last four in
	// memory.
	CaptureBytes int64
}

// Chosen selects the connections of a capture by the addresses of their two ends. Zero fields
// select all.
type Chosen struct {
	Local, Peer         netip.Prefix
	LocalPort, PeerPort uint16
	MaxBytes            int64 // of the file; never 0
}

// Capture is a running capture, such as an *iwarp.Capture.
type Capture interface {
	// Stop ends the capture, and returns when its writer has all of it or ctx is done.
	Stop(ctx context.Context) error
	// Done is closed when the capture has ended without Stop.
	Done() <-chan struct{}
}

const (
	defaultPath     = "/debug/rdma/"
	defaultInterval = time.Second
	minInterval     = 100 * time.Millisecond
	defaultViewers  = 16
	minToken        = 16
	defaultCapture  = 16 << 20
)

// sectionName matches names that may appear in a path and in a page's address.
var sectionName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// withDefaults returns c with its defaults, or an error.
func (c Config) withDefaults() (Config, error) {
	c.Path = cmp.Or(c.Path, defaultPath)
	if !strings.HasPrefix(c.Path, "/") || !strings.HasSuffix(c.Path, "/") || strings.ContainsAny(c.Path, "{} \t") ||
		path.Clean(c.Path+"x") != c.Path+"x" {
		return c, fmt.Errorf("inspect: the path %q has no slash at both ends, or no request can have it", c.Path)
	}
	c.Interval = max(cmp.Or(c.Interval, defaultInterval), minInterval)
	c.Viewers = cmp.Or(max(c.Viewers, 0), defaultViewers)
	names := make(map[string]bool)
	for _, s := range c.Sections {
		if !sectionName.MatchString(s.name) || names[s.name] {
			return c, fmt.Errorf("inspect: %q is no name for a section, or two have it", s.name)
		}
		names[s.name] = true
	}
	if c.Actions != nil {
		actions := *c.Actions // the original is the program's
		if len(actions.Token) < minToken {
			return c, errors.New("inspect: a token has at least 16 bytes")
		}
		actions.CaptureBytes = cmp.Or(max(actions.CaptureBytes, 0), defaultCapture)
		c.Actions = &actions
	}
	return c, nil
}
