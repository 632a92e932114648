package inspect

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

func TestDenialsAreLoggedOnceASecond(t *testing.T) {
	var d denials
	now := time.Now()
	for i, want := range []struct {
		after    time.Duration
		unlogged int
		ok       bool
	}{
		{0, 0, true}, {0, 0, false}, {denialsEvery - 1, 0, false}, {denialsEvery, 2, true}, {denialsEvery, 0, false}, {3 * denialsEvery, 1, true},
	} {
		if unlogged, ok := d.shouldLog(now.Add(want.after)); unlogged != want.unlogged || ok != want.ok {
			t.Errorf("%d: %d, %v, want %d, %v", i, unlogged, ok, want.unlogged, want.ok)
		}
	}
}

// lines collects log output. Any goroutine.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// A wrong token is logged, without the token, and further ones soon after it are not.
func TestWrongTokensAreLogged(t *testing.T) {
	var log lines
	cfg := rdma.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	r := newRig(t, Config{Interval: minInterval, Actions: &Actions{Token: token}}, cfg)
	const wrong = "0123456789abcdeF"
	began := time.Now()
	for range 50 {
		r.post("actions/disconnect", `{"id":1}`, "Authorization", "Bearer "+wrong)
	}
	most := 1 + int(time.Since(began)/denialsEvery)
	log.mu.Lock()
	defer log.mu.Unlock()
	text := log.b.String()
	if n := strings.Count(text, "an action without the token was denied"); n < 1 || n > most {
		t.Errorf("%d lines, want 1 to %d:\n%s", n, most, text)
	}
	if !strings.Contains(text, "peer=127.0.0.1:") || strings.Contains(text, wrong) {
		t.Errorf("the log is\n%s", text)
	}
}
