package inspect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Bounds of captures.
const (
	keptCaptures   = 4
	captureFor     = time.Minute // unless another time is asked for
	longestCapture = 10 * time.Minute
	stopCaptureFor = 5 * time.Second // after that its writer is no longer waited for
	fileChunk      = part
)

// Reasons why a capture's file does not grow.
var (
	errFull = errors.New("the file is as large as it may become")
	errOver = errors.New("the capture is over")
)

// captures are those of a page: a running one, and some that have ended.
type captures struct {
	mu   sync.Mutex
	made int
	kept []*capture // oldest first
}

// capture is a capture and its file.
type capture struct {
	number int
	of     string
	begun  time.Time
	limit  time.Duration
	most   int64
	stop   chan struct{} // closed to stop it
	over   chan struct{} // closed when it has ended

	mu      sync.Mutex
	ended   time.Time // zero: it runs
	err     error
	stopped bool
	chunks  [][]byte // the file
	bytes   int64
}

// captureRow is a capture as shown.
type captureRow struct {
	Capture int     `json:"capture"` // its number
	Of      string  `json:"of"`
	State   string  `json:"state"` // running, ended
	Begun   string  `json:"begun"`
	For     float64 `json:"for_seconds"`
	Limit   float64 `json:"limit_seconds"`
	Bytes   int64   `json:"file_bytes"`
	Most    int64   `json:"limit_bytes"`
	Error   string  `json:"error"`
}

// Write appends a part to the file.
func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended.IsZero() {
		return 0, errOver
	}
	if c.bytes+int64(len(b)) > c.most {
		return 0, errFull
	}
	for rest := b; len(rest) > 0; {
		last := len(c.chunks) - 1
		if last < 0 || len(c.chunks[last]) == cap(c.chunks[last]) {
			c.chunks = append(c.chunks, make([]byte, 0, fileChunk))
			last++
		}
		at := c.chunks[last]
		n := min(cap(at)-len(at), len(rest))
		c.chunks[last], rest = append(at, rest[:n]...), rest[n:]
	}
	c.bytes += int64(len(b))
	return len(b), nil
}

// fileChunks returns the chunks of the file so far. Readers may keep them: later parts are appended
// after them.
func (c *capture) fileChunks() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.chunks)
}

func (c *capture) isRunning() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended.IsZero()
}

func (c *capture) row(now time.Time) captureRow {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := captureRow{
		Capture: c.number, Of: c.of, State: "running", Begun: formatTime(c.begun), Limit: c.limit.Seconds(), Bytes: c.bytes, Most: c.most,
	}
	if !c.ended.IsZero() {
		r.State, now = "ended", c.ended
	}
	if r.For = max(now.Sub(c.begun), 0).Seconds(); c.err != nil {
		r.Error = truncateText(c.err.Error())
	}
	return r
}

// recordEnd records the end of the capture. Only the first call counts.
func (c *capture) recordEnd(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.IsZero() {
		c.ended, c.err = time.Now(), err
		close(c.over)
	}
}

// requestStop makes the capture end soon.
func (c *capture) requestStop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.stopped = true
		close(c.stop)
	}
}

// awaitEnd ends the capture when its time is over, it is stopped or the page is closed. The
// program's Capture may block or panic: that ends this capture.
func (c *capture) awaitEnd(running Capture, closed <-chan struct{}) {
	err := errors.New("it has ended its goroutine") // unless it returns or panics
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it has panicked: %v", p)
		}
		c.recordEnd(err)
	}()
	timer := time.NewTimer(c.limit)
	defer timer.Stop()
	select {
	case <-running.Done():
	case <-timer.C:
	case <-c.stop:
	case <-closed:
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopCaptureFor)
	defer cancel()
	err = running.Stop(ctx)
}

// add makes room for a new capture and adds it, unless one runs.
func (s *captures) add(c *capture) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.kept, (*capture).isRunning) {
		return &failure{http.StatusConflict, "a capture runs already"}
	}
	if len(s.kept) == keptCaptures {
		s.kept = slices.Delete(s.kept, 0, 1)
	}
	s.made++
	c.number = s.made
	s.kept = append(s.kept, c)
	return nil
}

func (s *captures) find(number int) (*capture, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.kept {
		if c.number == number {
			return c, nil
		}
	}
	return nil, &failure{http.StatusNotFound, "there is no such capture, or no more"}
}

func (s *captures) remove(c *capture) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = slices.DeleteFunc(s.kept, func(o *capture) bool { return o == c })
}

func (s *captures) rows(now time.Time) []captureRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := make([]captureRow, 0, len(s.kept))
	for _, c := range s.kept {
		rows = append(rows, c.row(now))
	}
	return rows
}

// startCapture begins a capture of an identifier's connection, or of a peer's.
func (p *Page) startCapture(ctx context.Context, what asked) (string, error) {
	begin := p.cfg.Actions.Capture
	if begin == nil {
		return "", &failure{http.StatusNotFound, "this program captures nothing"}
	}
	if p.closed.Err() != nil {
		return "", &failure{http.StatusServiceUnavailable, "the page is closed"}
	}
	most := p.cfg.Actions.CaptureBytes
	if !(what.Seconds >= 0 && what.Seconds <= longestCapture.Seconds()) || what.Bytes < 0 || what.Bytes > most {
		return "", &failure{http.StatusBadRequest, fmt.Sprintf("a capture takes at most %.0f seconds and %d bytes", longestCapture.Seconds(), most)}
	}
	chosen, of, err := p.chooseConnections(ctx, what)
	if err != nil {
		return "", err
	}
	c := &capture{of: of, begun: time.Now(), limit: captureFor, most: most, stop: make(chan struct{}), over: make(chan struct{})}
	if what.Seconds > 0 {
		c.limit = time.Duration(what.Seconds * float64(time.Second))
	}
	if what.Bytes > 0 {
		c.most = what.Bytes
	}
	if err := p.captures.add(c); err != nil {
		return "", err
	}
	began := false
	defer func() {
		if !began { // also if it panics, which net/http survives
			c.recordEnd(nil)
			p.captures.remove(c)
		}
	}()
	chosen.MaxBytes = c.most
	running, err := begin(c, chosen)
	if err != nil {
		return "", &failure{http.StatusConflict, truncateText(err.Error())}
	}
	began = true
	go c.awaitEnd(running, p.closed.Done())
	return fmt.Sprintf("capture %d of %s", c.number, of), nil
}

// chooseConnections returns the connections that are asked for.
func (p *Page) chooseConnections(ctx context.Context, what asked) (c Chosen, of string, err error) {
	switch {
	case what.ID != 0 && what.Peer == "":
		found, err := p.findID(ctx, what.ID)
		if err != nil {
			return c, "", err
		}
		c, of := connectionsOf(found)
		if of == "" {
			return c, "", &failure{http.StatusConflict, "the identifier has no address yet by which to choose"}
		}
		return c, of, nil
	case what.ID == 0 && what.Peer != "":
		c.Peer, c.PeerPort, err = parsePeer(what.Peer)
		if err != nil {
			return c, "", &failure{http.StatusBadRequest, "a peer is an address, an address with a port, or a prefix"}
		}
		of = c.Peer.String()
		if c.PeerPort != 0 {
			of = netip.AddrPortFrom(c.Peer.Addr(), c.PeerPort).String()
		}
		return c, "peer " + of, nil
	}
	return c, "", &failure{http.StatusBadRequest, "of which identifier, or of which peer?"}
}

// connectionsOf returns an identifier's connection, or a listener's connections; "": it has no
// address.
func connectionsOf(i *rdma.IDInfo) (c Chosen, of string) {
	one := func(a rdma.Addr) netip.Prefix {
		ip := a.Addr().Unmap().WithZone("")
		return netip.PrefixFrom(ip, ip.BitLen())
	}
	if i.Local.IsZero() || i.Local.IB != nil || i.Local.Port() == 0 {
		return c, ""
	}
	if c.LocalPort = i.Local.Port(); !i.Local.IsWildcard() {
		c.Local = one(i.Local)
	}
	if !i.Peer.IsZero() {
		c.Peer, c.PeerPort = one(i.Peer), i.Peer.Port()
	}
	return c, fmt.Sprintf("identifier %d, %s", i.ID, strings.TrimSpace(addrText(i.Local)+" "+addrText(i.Peer)))
}

// parsePeer reads 10.0.0.7, 10.0.0.7:4791, [::1]:4791 or 10.0.0.0/8.
func parsePeer(text string) (netip.Prefix, uint16, error) {
	if whole, err := netip.ParsePrefix(text); err == nil {
		return whole.Masked(), 0, nil
	}
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return netip.Prefix{}, 0, err
		}
		at = netip.AddrPortFrom(addr, 0)
	}
	ip := at.Addr().Unmap().WithZone("")
	return netip.PrefixFrom(ip, ip.BitLen()), at.Port(), nil
}

// stopCapture ends a capture, and waits until its file is complete.
func (p *Page) stopCapture(ctx context.Context, what asked) (string, error) {
	c, err := p.captures.find(what.Capture)
	if err != nil {
		return "", err
	}
	c.requestStop()
	select {
	case <-c.over:
		return "ended", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// deleteCapture removes a capture that has ended.
func (p *Page) deleteCapture(_ context.Context, what asked) (string, error) {
	c, err := p.captures.find(what.Capture)
	if err != nil {
		return "", err
	}
	if c.isRunning() {
		return "", &failure{http.StatusConflict, "it runs"}
	}
	p.captures.remove(c)
	return "deleted", nil
}

// downloadCapture sends the file of a capture. It requires the token.
func (p *Page) downloadCapture(w http.ResponseWriter, r *http.Request) {
	if !p.isAuthorized(r) {
		p.logDenial(r)
		p.writeError(w, errDenied)
		return
	}
	name, _ := strings.CutSuffix(r.PathValue("file"), ".pcapng")
	number, err := strconv.Atoi(name)
	if err != nil {
		number = 0
	}
	c, err := p.captures.find(number)
	if err != nil {
		p.writeError(w, err)
		return
	}
	p.logAction(r, "download", 0, fmt.Sprintf("capture %d of %s", number, c.of), nil)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="capture-%d.pcapng"`, number))
	for _, chunk := range c.fileChunks() {
		if writeInParts(w, chunk) != nil {
			return
		}
	}
}
