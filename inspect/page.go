package inspect

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/optional"
)

//go:embed assets
var assets embed.FS

// Page is the handler: see the package's documentation.
type Page struct {
	rt       *rdma.Runtime
	cfg      Config
	mux      *http.ServeMux
	snapshot *feed[*snapshot]
	records  *feed[*recordings]
	captures captures
	sections map[string]*feed[table]
	columns  map[string][]string
	titles   []sectionTitle
	viewers  atomic.Int64
	bounds   bounds
	denials  denials
	own      []string        // this machine's names
	closed   context.Context // ends the viewers
	close    context.CancelFunc
}

// New makes a page that shows rt. It starts nothing.
func New(rt *rdma.Runtime, config ...Config) (*Page, error) {
	cfg, err := optional.Value(config).withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Page{
		rt: rt, cfg: cfg, own: ownNames(), mux: http.NewServeMux(), titles: []sectionTitle{}, bounds: newBounds(),
		snapshot: &feed[*snapshot]{every: cfg.Interval, read: func() *snapshot { return takeSnapshot(rt) }},
		records: &feed[*recordings]{every: cfg.Interval, read: func() *recordings {
			return &recordings{loops: rt.Flight(), taken: time.Now()}
		}},
		sections: make(map[string]*feed[table]), columns: make(map[string][]string),
	}
	p.closed, p.close = context.WithCancel(context.Background())
	for _, s := range cfg.Sections {
		p.sections[s.name] = &feed[table]{every: cfg.Interval, read: s.read}
		p.columns[s.name] = s.columns
		p.titles = append(p.titles, sectionTitle{s.name, s.title})
	}
	p.registerRoutes()
	return p, nil
}

// Close ends all requests for events and a running capture, and lets none begin. Any goroutine.
func (p *Page) Close() { p.close() }

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
	if !p.isKnownHost(r.Host) || p.isCrossSite(r) {
		p.writeError(w, &failure{http.StatusForbidden, "asked for under a name that is not in inspect.Config.Hosts, or by another site"})
		return
	}
	p.mux.ServeHTTP(w, r)
}

func (p *Page) registerRoutes() {
	at := func(pattern string, handle http.HandlerFunc) {
		method, rest, _ := strings.Cut(pattern, " ")
		p.mux.HandleFunc(method+" "+p.cfg.Path+rest, handle)
	}
	at("GET {$}", p.serveRoot)
	at("GET page.css", assetHandler("page.css", "text/css; charset=utf-8"))
	for _, name := range []string{"page.js", "flight.js", "actions.js"} {
		at("GET "+name, assetHandler(name, "text/javascript; charset=utf-8"))
	}
	at("GET icon.svg", assetHandler("icon.svg", "image/svg+xml"))
	at("GET states.svg", p.serveDiagram)
	at("GET events", p.serveEvents)
	for _, name := range []string{"ids", "loops", "memory", "listeners", "devices", "flight", "actions", "overview"} {
		at("GET "+name, p.viewHandler(name))
	}
	at("GET ids/{key...}", p.viewHandler("id"))
	at("GET sections", func(w http.ResponseWriter, r *http.Request) {
		p.answerRequest(w, r, func() (any, error) { return p.titles, nil })
	})
	at("GET sections/{name}", p.viewHandler("section"))
	if p.cfg.Actions != nil {
		at("POST actions/disconnect", p.actionHandler(p.disconnectID))
		at("POST actions/drain", p.actionHandler(p.closeID))
		at("POST actions/level", p.actionHandler(p.setLevel))
		at("POST actions/capture", p.actionHandler(p.startCapture))
		at("POST actions/capture-stop", p.actionHandler(p.stopCapture))
		at("POST actions/capture-delete", p.actionHandler(p.deleteCapture))
		at("GET captures/{file}", p.downloadCapture)
	}
}

// serveRoot serves the page to a browser, and the overview to other clients.
func (p *Page) serveRoot(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("format") == "" && strings.Contains(r.Header.Get("Accept"), "text/html") {
		assetHandler("page.html", "text/html; charset=utf-8")(w, r)
		return
	}
	p.viewHandler("overview")(w, r)
}

// assetHandler serves an embedded file. A browser caches it, and asks whether it has changed.
func assetHandler(name, kind string) http.HandlerFunc {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // a file that was not embedded: every test sees it
	}
	sum := sha256.Sum256(data)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(data)
	}
}

// failure is an error with the status of its answer.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

func badRequest(err error) error { return &failure{http.StatusBadRequest, err.Error()} }

// A view waits for a feed's reading, repeatedly. The function that it returns makes the answer of
// that reading.
type view func(ctx context.Context) (func() (any, error), error)

// viewHandler returns a handler that answers with a view once.
func (p *Page) viewHandler(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := r.URL.Query()
		switch name {
		case "id":
			v.Set("id", r.PathValue("key"))
		case "section":
			v.Set("name", r.PathValue("name"))
		}
		shown, err := p.viewByName(name, v)
		if err != nil {
			p.writeError(w, err)
			return
		}
		value, err := shown(r.Context())
		if err != nil {
			p.writeError(w, err)
			return
		}
		p.answerRequest(w, r, value)
	}
}

// viewByName returns the view of that name. Its content also depends on the query.
func (p *Page) viewByName(name string, v url.Values) (view, error) {
	switch name {
	case "ids":
		q, err := parseQuery(v)
		if err != nil {
			return nil, badRequest(err)
		}
		return p.viewOfSnapshot(func(s *snapshot) (any, error) { return q.selectPage(s), nil }), nil
	case "id":
		return p.viewOfID(v.Get("id"))
	case "section":
		return p.viewOfSection(v.Get("name"))
	case "flight":
		return p.viewOfFlight(v)
	case "actions":
		return func(context.Context) (func() (any, error), error) {
			return func() (any, error) { return p.actionsView(time.Now()), nil }, nil
		}, nil
	case "loops":
		return p.viewOfSnapshot(func(s *snapshot) (any, error) { return loopsOf(s), nil }), nil
	case "memory":
		return p.viewOfSnapshot(func(s *snapshot) (any, error) { return memoryOf(s), nil }), nil
	case "listeners":
		return p.viewOfSnapshot(func(s *snapshot) (any, error) { return listenersOf(s), nil }), nil
	case "devices":
		return p.viewOfSnapshot(func(s *snapshot) (any, error) { return devicesOf(s), nil }), nil
	case "overview":
		return p.viewOfSnapshot(func(s *snapshot) (any, error) { return p.overviewOf(s), nil }), nil
	}
	return nil, &failure{http.StatusBadRequest, "there is no such view"}
}

// viewOfSnapshot returns a view of the runtime.
func (p *Page) viewOfSnapshot(show func(*snapshot) (any, error)) view {
	return viewOf(p.snapshot, show)
}

// viewOf returns a view of a feed's readings.
func viewOf[T any](f *feed[*T], show func(*T) (any, error)) view {
	return func(ctx context.Context) (func() (any, error), error) {
		r, err := f.get(ctx)
		if err == nil && r.value == nil {
			err = r.err
		}
		if err != nil {
			return nil, err
		}
		return func() (any, error) { return show(r.value) }, nil
	}
}

// viewOfID returns the view of one identifier, by its number or its PID's id.
func (p *Page) viewOfID(which string) (view, error) {
	handle, err := strconv.ParseUint(which, 10, 64)
	if err != nil {
		handle = 0
	}
	if which == "" || which == "0" || len(which) > maxText {
		return nil, &failure{http.StatusBadRequest, "which identifier? A number, or a PID's id"}
	}
	return p.viewOfSnapshot(func(s *snapshot) (any, error) {
		i := s.findID(handle, which)
		if i == nil {
			return nil, &failure{http.StatusNotFound, "there is no such identifier: it has ended, or there never was one"}
		}
		return s.idDetail(i), nil
	}), nil
}

// viewOfSection returns the view of one of the program's tables.
func (p *Page) viewOfSection(name string) (view, error) {
	f := p.sections[name]
	if f == nil {
		return nil, &failure{http.StatusNotFound, "there is no such section"}
	}
	title := ""
	for _, t := range p.titles {
		if t.Name == name {
			title = t.Title
		}
	}
	return func(ctx context.Context) (func() (any, error), error) {
		r, err := f.get(ctx)
		if err != nil && !errors.Is(err, errSlow) {
			return nil, err
		}
		v := sectionView{Name: name, Title: title, Columns: p.columns[name], Total: r.value.total, Rows: r.value.rows}
		if v.Rows == nil {
			v.Rows = []map[string]any{}
		}
		v.Taken, v.Late = formatTime(r.taken), r.lateSeconds(p.cfg.Interval)
		if err != nil {
			v.Taken = ""
		} else {
			err = r.err
		}
		if err != nil {
			v.Error = truncateText(err.Error())
		}
		return func() (any, error) { return v, nil }, nil
	}, nil
}
