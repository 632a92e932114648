package inspect

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

const token = "0123456789abcdef"

// post requests an action.
func (r *rig) post(path, body string, header ...string) (status int, answer string) {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	status, _, answer = r.do(req)
	return status, answer
}

// TestActionsAreOff: without Config.Actions there are none.
func TestActionsAreOff(t *testing.T) {
	r := newRig(t, quick, rdma.Config{})
	for _, path := range []string{"actions/disconnect", "actions/drain", "actions/level", "ids", ""} {
		if status, _ := r.post(path, `{"id":1}`, "Authorization", "Bearer "); status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
			t.Errorf("%q: %d", path, status)
		}
	}
}

// TestActionsNeedTheToken: in a header, from the page itself, by POST.
func TestActionsNeedTheToken(t *testing.T) {
	level := new(slog.LevelVar)
	r := newRig(t, Config{Interval: minInterval, Actions: &Actions{Token: token, Level: level}}, rdma.Config{})
	const debug = `{"level":"debug"}`
	for name, header := range map[string][]string{
		"none": nil, "empty": {"Authorization", "Bearer "}, "another": {"Authorization", "Bearer 0123456789abcdeF"},
		"a prefix": {"Authorization", "Bearer 0123456789abcde"}, "another scheme": {"Authorization", "Basic " + token},
		"bare": {"Authorization", token}, "a cookie": {"Cookie", "token=" + token},
		"of another site": {"Authorization", "Bearer " + token, "Sec-Fetch-Site", "cross-site"},
		"another origin":  {"Authorization", "Bearer " + token, "Origin", "http://example.org"},
	} {
		if status, body := r.post("actions/level", debug, header...); status != http.StatusForbidden || strings.Contains(body, token) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if status, _, _ := r.get("actions/level", "Authorization", "Bearer "+token); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", status)
	}
	if level.Level() != slog.LevelInfo {
		t.Errorf("the level is %v", level)
	}
	with := []string{"Authorization", "Bearer " + token}
	for name, body := range map[string]string{
		"no JSON": "x", "nothing": "", "a field too many": `{"id":1,"x":2}`, "large": `{"level":"` + strings.Repeat("x", 5000) + `"}`, "a wild level": `{"level":"loud"}`,
	} {
		if status, answer := r.post("actions/level", body, with...); status != http.StatusBadRequest || strings.Contains(answer, "loud") {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	if status, body := r.post("actions/level", debug, with...); status != 200 || level.Level() != slog.LevelDebug {
		t.Errorf("%d %s, the level is %v", status, body, level)
	}
}

// TestDisconnectAndDrain end connections.
func TestDisconnectAndDrain(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Actions: &Actions{Token: token}}, rdma.Config{})
	addr := r.echo()
	with := []string{"Authorization", "Bearer " + token}
	for action, answer := range map[string]string{"disconnect": "Disconnected", "drain": "Closed"} {
		pid := r.connect(addr, 0)
		fresh()
		v := read[idView](r, "ids/"+pid.Id)
		if status, body := r.post("actions/"+action, fmt.Sprintf(`{"id":%d}`, v.ID), with...); status != 200 || !strings.Contains(body, answer) {
			t.Errorf("%s: %d %s", action, status, body)
		}
		r.until("its identifier is gone", func() bool {
			status, _, _ := r.get("ids/" + pid.Id)
			return status == http.StatusNotFound
		})
		if status, body := r.post("actions/"+action, fmt.Sprintf(`{"id":%d}`, v.ID), with...); status != http.StatusNotFound {
			t.Errorf("%s again: %d %s", action, status, body)
		}
	}
	fresh()
	listener := read[idsView](r, "ids?state=listening").Rows[0].ID
	if status, body := r.post("actions/disconnect", fmt.Sprintf(`{"id":%d}`, listener), with...); status != http.StatusConflict {
		t.Errorf("a listener is not connected: %d %s", status, body)
	}
	if status, _ := r.post("actions/level", `{"level":"info"}`, with...); status != http.StatusNotFound {
		t.Errorf("a level that cannot be set: %d", status)
	}
}

// TestActionWithoutAnswer: an action on an identifier whose loop is blocked is given up by its
// operator, and done later. A listener, which cannot be disconnected, survives that.
func TestActionWithoutAnswer(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Actions: &Actions{Token: token}}, rdma.Config{
		Loops: []eventloop.Config{{OnStall: func(eventloop.Stall) {}}},
	})
	addr := r.echo()
	pid := r.connect(addr, 0)
	fresh()
	one, listener := read[idView](r, "ids/"+pid.Id).ID, read[idsView](r, "ids?state=listening").Rows[0].ID
	free := r.block()
	for _, id := range []uint64{one, listener} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if outcome, err := r.page.runCommand(ctx, id, &cmid.Disconnect{}); err == nil || !strings.Contains(err.Error(), "not answered") {
			t.Errorf("identifier %d: %q, %v", id, outcome, err)
		}
	}
	free()
	r.until("it is disconnected", func() bool {
		status, _, _ := r.get(fmt.Sprintf("ids/%d", one))
		return status == http.StatusNotFound
	})
	r.connect(addr, 0)
}

// lineWriter sends the lines of a log.
type lineWriter chan string

func (w lineWriter) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}

// TestActionsAreLogged: the log contains the action and the peer, and nothing else.
func TestActionsAreLogged(t *testing.T) {
	lines := make(lineWriter, 100)
	log := slog.New(slog.NewTextHandler(lines, nil))
	r := newRig(t, Config{Interval: minInterval, Actions: &Actions{Token: token, Level: new(slog.LevelVar)}}, rdma.Config{Logger: log})
	with := []string{"Authorization", "Bearer " + token}
	r.post("actions/level", `{"level":"info"}`, with...)
	r.post("actions/disconnect", `{"id":77}`, with...)
	for _, want := range []string{
		`msg="an operator has acted" action=level peer=127\.0\.0\.1:\d+ outcome=INFO\n`,
		`msg="an operator has acted" id=77 action=disconnect peer=127\.0\.0\.1:\d+ err="there is no such identifier: it has ended, or there never was one"\n`,
	} {
		select {
		case line := <-lines:
			if !regexp.MustCompile(want + `$`).MatchString(line) {
				t.Errorf("the log has %q and not %q", line, want)
			}
		case <-time.After(testPatience):
			t.Fatal("an action is not logged")
		}
	}
}

// TestTextIsShort: text has microseconds, and no exponents.
func TestTextIsShort(t *testing.T) {
	for number, want := range map[float64]string{0: "0", 100: "100", 1.5: "1.5", 3.856555545737401: "3.856556", 0.0000063: "0.000006", -1: "-1", 1e9: "1000000000"} {
		if got := cellText(reflect.ValueOf(number)); got != want {
			t.Errorf("%v is %s, and should be %s", number, got, want)
		}
	}
}
