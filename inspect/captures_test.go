package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
)

var with = []string{"Authorization", "Bearer " + token}

// row returns a capture's row.
func (r *rig) row(number int) captureRow {
	r.Helper()
	for _, row := range read[actionsView](r, "actions").Rows {
		if row.Capture == number {
			return row
		}
	}
	return captureRow{}
}

// TestCapture captures one connection of two, and a peer's traffic, and downloads the files.
func TestCapture(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Actions: &Actions{Token: token}}, rdma.Config{})
	addr := r.echo()
	id := r.connect(addr, 1)
	r.connect(addr, 1)
	fresh()
	one := read[idView](r, "ids/"+id.Id)
	listener := read[idsView](r, "ids?state=listening").Rows[0].ID
	for i, body := range []string{
		fmt.Sprintf(`{"id":%d}`, one.ID), fmt.Sprintf(`{"id":%d,"seconds":30,"bytes":100000}`, listener), fmt.Sprintf(`{"peer":%q}`, addr), `{"peer":"127.0.0.0/8"}`,
	} {
		number := i + 1
		if status, answer := r.post("actions/capture", body, with...); status != 200 || !strings.Contains(answer, fmt.Sprintf("capture %d of", number)) {
			t.Fatalf("%s: %d %s", body, status, answer)
		}
		r.until("it has something", func() bool { return r.row(number).Bytes > 5000 })
		if status, answer := r.post("actions/capture-stop", fmt.Sprintf(`{"capture":%d}`, number), with...); status != 200 {
			t.Errorf("stop: %d %s", status, answer)
		}
		row := r.row(number)
		if row.State != "ended" || row.Error != "" || row.Bytes > row.Most {
			t.Errorf("%s: %+v", body, row)
		}
		status, h, file := r.get(fmt.Sprintf("captures/%d.pcapng", number), with...)
		if status != 200 || int64(len(file)) != row.Bytes || !strings.HasPrefix(file, "\x0a\x0d\x0d\x0a") || !strings.Contains(h.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: %d, %d bytes of %d: %v", body, status, len(file), row.Bytes, h)
		}
		if named := strings.Contains(file, fmt.Sprintf("rdma_cm_id %d", one.ID)); i == 0 && !named {
			t.Errorf("the file does not name identifier %d", one.ID)
		}
	}
	if status, _ := r.post("actions/capture", `{"peer":"127.0.0.9"}`, with...); status != 200 {
		t.Errorf("a fifth: %d", status)
	}
	if status, _ := r.post("actions/capture", `{"peer":"127.0.0.8"}`, with...); status != http.StatusConflict {
		t.Errorf("one beside it: %d", status)
	}
	if status, _ := r.post("actions/capture-delete", `{"capture":5}`, with...); status != http.StatusConflict {
		t.Errorf("one that runs is deleted: %d", status)
	}
	if v := read[actionsView](r, "actions"); len(v.Rows) != keptCaptures || v.Rows[0].Capture != 2 || !v.Captures {
		t.Errorf("the oldest has not gone: %+v", v)
	}
	if status, _, _ := r.get("captures/1", with...); status != http.StatusNotFound {
		t.Errorf("the file of one that has gone: %d", status)
	}
	if status, _ := r.post("actions/capture-delete", `{"capture":3}`, with...); status != 200 || r.row(3).Capture != 0 {
		t.Errorf("delete: %d", status)
	}
}

// TestCapturesNeedTheToken, even for a download, and without actions there are none.
func TestCapturesNeedTheToken(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Actions: &Actions{Token: token}}, rdma.Config{})
	if status, answer := r.post("actions/capture", `{"peer":"127.0.0.1"}`, with...); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	for _, header := range [][]string{nil, {"Authorization", "Bearer x"}, {"Cookie", "token=" + token}} {
		for _, path := range []string{"captures/1", "captures/1.pcapng", "captures/77"} {
			if status, _, body := r.get(path, header...); status != http.StatusForbidden || strings.Contains(body, "\x0a\x0d\x0d\x0a") {
				t.Errorf("%s: %d", path, status)
			}
		}
		for _, action := range []string{"capture", "capture-stop", "capture-delete"} {
			if status, _ := r.post("actions/"+action, `{"capture":1}`, header...); status != http.StatusForbidden {
				t.Errorf("%s: %d", action, status)
			}
		}
	}
	off := newRig(t, quick, rdma.Config{})
	for _, path := range []string{"captures/1", "captures/"} {
		if status, _, _ := off.get(path, with...); status != http.StatusNotFound {
			t.Errorf("%s without actions: %d", path, status)
		}
	}
	if v := read[actionsView](off, "actions"); v.Possible || v.Captures || v.Level != "" {
		t.Errorf("%+v", v)
	}
}

// TestCaptureRequests: invalid requests are refused, and no capture runs then.
func TestCaptureRequests(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Actions: &Actions{Token: token, CaptureBytes: 1 << 20}}, rdma.Config{})
	r.idle(1)
	idle := read[idsView](r, "ids").Rows[0].ID
	for body, want := range map[string]int{
		`{}`: 400, `{"id":1,"peer":"127.0.0.1"}`: 400, `{"peer":"example.com"}`: 400, `{"peer":"1.2.3.4:99999"}`: 400, `{"peer":"<script>"}`: 400,
		`{"id":99999999}`: 404, fmt.Sprintf(`{"id":%d}`, idle): 409, `{"peer":"127.0.0.1","seconds":601}`: 400, `{"peer":"127.0.0.1","seconds":-1}`: 400,
		`{"peer":"127.0.0.1","bytes":1048577}`: 400, `{"peer":"127.0.0.1","bytes":-1}`: 400, `{"peer":"127.0.0.1","seconds":1e999}`: 400,
	} {
		if status, answer := r.post("actions/capture", body, with...); status != want || strings.Contains(answer, "script") {
			t.Errorf("%s: %d %s, want %d", body, status, answer, want)
		}
	}
	for _, path := range []string{"captures/x", "captures/-1", "captures/0", "captures/99999999999999999999", "captures/.pcapng"} {
		if status, _, _ := r.get(path, with...); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
	if v := read[actionsView](r, "actions"); len(v.Rows) != 0 {
		t.Errorf("%+v", v)
	}
	other, err := r.driver.StartCapture(iwarp.CaptureConfig{Writer: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := r.post("actions/capture", `{"peer":"::1"}`, with...); status != http.StatusConflict || !strings.Contains(answer, "busy") {
		t.Errorf("while the program captures: %d %s", status, answer)
	}
	if err := other.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if status, answer := r.post("actions/capture", `{"peer":"::1","seconds":0.05}`, with...); status != 200 {
		t.Errorf("after that: %d %s", status, answer)
	}
	r.until("its time is over", func() bool { return r.row(read[actionsView](r, "actions").Rows[0].Capture).State == "ended" })
}

// TestCaptureIsBounded: a file grows no larger than requested.
func TestCaptureIsBounded(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Actions: &Actions{Token: token, CaptureBytes: 300_000}}, rdma.Config{})
	r.connect(r.echo(), 4)
	if status, answer := r.post("actions/capture", `{"peer":"127.0.0.1","bytes":20000}`, with...); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	r.until("it has ended", func() bool { return r.row(1).State == "ended" })
	if row := r.row(1); row.Bytes > 20_000 || row.Bytes < 15_000 || row.Error != "" {
		t.Errorf("%+v", row)
	}
}

// wild is a capture of a misbehaving program.
type wild struct {
	stop func()
	done chan struct{}
}

func (w wild) Stop(context.Context) error { w.stop(); return errors.New("out of order") }
func (w wild) Done() <-chan struct{}      { return w.done }

// TestWildCaptures: a capture that fails, panics, blocks or writes too much affects only itself.
func TestWildCaptures(t *testing.T) {
	free := make(chan struct{})
	var begin func(io.Writer) (Capture, error)
	r := newRig(t, Config{Interval: minInterval, Actions: &Actions{
		Token: token, CaptureBytes: 1000, Capture: func(w io.Writer, _ Chosen) (Capture, error) { return begin(w) },
	}}, rdma.Config{})
	start := func() int { status, _ := r.post("actions/capture", `{"peer":"::1"}`, with...); return status }
	begin = func(io.Writer) (Capture, error) { return nil, errors.New("no luck") }
	if status := start(); status != http.StatusConflict {
		t.Errorf("one that fails: %d", status)
	}
	number := 1
	for name, stop := range map[string]func(){"out of order": func() {}, "it has panicked: now": func() { panic("now") }, "it has ended its goroutine": runtime.Goexit} {
		var file io.Writer
		begin = func(w io.Writer) (Capture, error) { file = w; return wild{stop, nil}, nil }
		if status := start(); status != 200 {
			t.Fatalf("%s: %d", name, status)
		}
		number++
		if n, err := file.Write(make([]byte, 900)); n != 900 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if n, err := file.Write(make([]byte, 101)); n != 0 || !errors.Is(err, errFull) {
			t.Errorf("too much: %d, %v", n, err)
		}
		if status, _ := r.post("actions/capture-stop", fmt.Sprintf(`{"capture":%d}`, number), with...); status != 200 || r.row(number).Error != name {
			t.Errorf("%s: %d %+v", name, status, r.row(number))
		}
		if _, err := file.Write([]byte{1}); !errors.Is(err, errOver) {
			t.Errorf("after its end: %v", err)
		}
	}
	begin = func(io.Writer) (Capture, error) { return wild{func() { <-free }, make(chan struct{})}, nil }
	if status := start(); status != 200 {
		t.Fatalf("%d", status)
	}
	r.page.Close()
	if status := start(); status != http.StatusServiceUnavailable {
		t.Errorf("after Close: %d", status)
	}
	if status, _, _ := r.get("actions"); status != 200 {
		t.Errorf("a look beside one whose Stop blocks: %d", status)
	}
	close(free)
	r.until("Close has ended it", func() bool { return r.row(number+1).State == "ended" })
}

// TestFile: a download during a capture contains the file as it was.
func TestFile(t *testing.T) {
	c := &capture{most: 1 << 20}
	var all []byte
	for i := range 300 {
		b := bytes.Repeat([]byte{byte(i)}, 1+i*3)
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		before := bytes.Join(c.fileChunks(), nil)
		if all = append(all, b...); !bytes.Equal(before, all) {
			t.Fatalf("after %d writes it differs", i)
		}
	}
	half := c.fileChunks()
	_, _ = c.Write(make([]byte, 70_000))
	if !bytes.Equal(bytes.Join(half, nil), all) || c.bytes != int64(len(all))+70_000 {
		t.Error("what was read has changed")
	}
}
