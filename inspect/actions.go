package inspect

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
)

// actionFor is the time limit for the answer to an action.
const actionFor = 30 * time.Second

// asked is the body of an action's request.
type asked struct {
	ID      uint64      `json:"id"`
	Level   *slog.Level `json:"level"`
	Peer    string      `json:"peer"`
	Seconds float64     `json:"seconds"`
	Bytes   int64       `json:"bytes"`
	Capture int         `json:"capture"`
}

// actionHandler wraps do in a handler that requires the token.
func (p *Page) actionHandler(do func(context.Context, asked) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !p.isAuthorized(r) {
			p.logDenial(r)
			p.writeError(w, errDenied)
			return
		}
		body := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096))
		body.DisallowUnknownFields()
		var what asked
		if err := body.Decode(&what); err != nil {
			p.writeError(w, &failure{http.StatusBadRequest, "the body is JSON with the fields of the action; a level is debug, info, warn or error"})
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actionFor)
		defer cancel()
		outcome, err := do(ctx, what)
		p.logAction(r, path.Base(r.URL.Path), what.ID, outcome, err)
		if err != nil {
			p.writeError(w, err)
			return
		}
		p.answerRequest(w, r, func() (any, error) { return map[string]string{"outcome": outcome}, nil })
	}
}

// logAction logs an action, its outcome and its peer.
func (p *Page) logAction(r *http.Request, action string, id uint64, outcome string, err error) {
	log := p.rt.Logger()
	if id != 0 {
		log = log.With("id", id)
	}
	if err != nil {
		log.Warn("an operator has acted", "action", action, "peer", r.RemoteAddr, "err", err)
		return
	}
	log.Warn("an operator has acted", "action", action, "peer", r.RemoteAddr, "outcome", outcome)
}

// isAuthorized reports whether r has the token, in a time that is independent of the token.
func (p *Page) isAuthorized(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(p.cfg.Actions.Token))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1 && ok
}

// disconnectID ends a connection immediately.
func (p *Page) disconnectID(ctx context.Context, what asked) (string, error) {
	return p.runCommand(ctx, what.ID, &cmid.Disconnect{})
}

// closeID ends an identifier when the peer has consumed all messages that were sent.
func (p *Page) closeID(ctx context.Context, what asked) (string, error) {
	return p.runCommand(ctx, what.ID, &rdma.Close{})
}

func (p *Page) runCommand(ctx context.Context, id uint64, c cmid.Command) (string, error) {
	found, err := p.findID(ctx, id)
	if err != nil {
		return "", err
	}
	type answer struct {
		event cmid.Event
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		// Not with ctx: a cancelled Ask destroys the identifier.
		ev, err := rdma.Ask[cmid.Event](context.Background(), p.rt, found.PID, c)
		answered <- answer{ev, err}
	}()
	var a answer
	select {
	case a = <-answered:
	case <-ctx.Done():
		return "", &failure{http.StatusConflict, "the identifier has not answered yet, and will still do it"}
	}
	if a.err != nil {
		return "", &failure{http.StatusConflict, truncateText(a.err.Error())}
	}
	if failed, ok := a.event.(rdma.Failure); ok {
		return "", &failure{http.StatusConflict, truncateText(failed.Error())}
	}
	return a.event.Kind().String(), nil
}

// findID returns the identifier with that number.
func (p *Page) findID(ctx context.Context, id uint64) (*rdma.IDInfo, error) {
	r, err := p.snapshot.get(ctx)
	if err != nil || r.value == nil {
		return nil, errors.Join(err, r.err)
	}
	found := r.value.findID(id, "")
	if found == nil {
		return nil, &failure{http.StatusNotFound, "there is no such identifier: it has ended, or there never was one"}
	}
	return found, nil
}

// actionsView lists the possible actions and the captures.
type actionsView struct {
	Taken    string       `json:"taken"`
	Possible bool         `json:"possible"`  // actions are switched on
	Level    string       `json:"log_level"` // "": it cannot be set
	Captures bool         `json:"captures"`  // captures are possible
	Rows     []captureRow `json:"rows"`      // the captures, oldest first
}

func (p *Page) actionsView(now time.Time) actionsView {
	v := actionsView{Taken: formatTime(now), Rows: []captureRow{}}
	a := p.cfg.Actions
	if a == nil {
		return v
	}
	v.Possible, v.Captures, v.Rows = true, a.Capture != nil, p.captures.rows(now)
	if a.Level != nil {
		v.Level = a.Level.Level().String()
	}
	return v
}

// setLevel sets the log level.
func (p *Page) setLevel(_ context.Context, what asked) (string, error) {
	if p.cfg.Actions.Level == nil {
		return "", &failure{http.StatusNotFound, "this program's log has no level that could be set"}
	}
	if what.Level == nil {
		return "", &failure{http.StatusBadRequest, "which level?"}
	}
	p.cfg.Actions.Level.Set(*what.Level)
	return p.cfg.Actions.Level.Level().String(), nil
}
