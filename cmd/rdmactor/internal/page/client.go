package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/plain"
)

const (
	defaultPath = "/debug/rdma/"
	patience    = 10 * time.Second // per answer
	roomHeader  = 64 << 10
	roomAnswer  = 16 << 20 // twice 500 rows with texts of a page's maximum length
	roomSaid    = 256      // of an error's text
	roomList    = 256 << 20
	// of a list in an answer, far above a page's maximum
	mostElements = 4096
	mostNames    = 256
	roomCell     = 512 // of a value that is not a text

	// MostRows is how many rows one answer has at most.
	MostRows = 500
	// MostIDs is how many identifiers All returns at most.
	MostIDs = 200_000
)

var (
	errNoPage = errors.New("what answers there is no live page (package inspect): check the port and the path")
	errLong   = fmt.Errorf("an answer without end: more than %d MiB", roomAnswer>>20)
	// ErrSilent: no answer, or no end of it, in time.
	ErrSilent = fmt.Errorf("no answer within %v", patience)
	// ErrGone: there is no such identifier, or it has ended.
	ErrGone = errors.New("there is no such identifier: it has ended, or there never was one")
)

// Client sends requests to one page.
type Client struct {
	base     *url.URL
	http     http.Client
	patience time.Duration
	room     int64
}

// Open returns a client of the page at an address: a URL, or HOST:PORT for a page at its usual
// path.
func Open(address string) (*Client, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("that is no URL") // without the text, which might contain a password
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q: want an http or https URL", u.Redacted())
	case u.Host == "" || u.Hostname() == "":
		return nil, fmt.Errorf("%q: no host", u.Redacted())
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = defaultPath
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/"
	u.RawQuery, u.Fragment, u.RawPath = "", "", ""
	c := &Client{base: u, patience: patience, room: roomAnswer}
	c.http.Transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxResponseHeaderBytes: roomHeader, MaxIdleConns: 2, IdleConnTimeout: time.Minute,
	}
	// a page never redirects, and another server's redirect leads elsewhere
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// String returns the page's address, without a password.
func (c *Client) String() string { return plain.Text(c.base.Redacted()) }

// Query selects identifiers.
type Query struct {
	Text, States, Sort string
	Descending         bool
	Page, Size         int
}

func (q Query) values() url.Values {
	v := url.Values{"format": {"json"}}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	set("q", q.Text)
	set("state", q.States)
	set("sort", q.Sort)
	if q.Descending {
		v.Set("order", "desc")
	}
	v.Set("page", strconv.Itoa(max(q.Page, 1)))
	v.Set("size", strconv.Itoa(min(max(q.Size, 1), MostRows)))
	return v
}

// IDs requests a page of identifiers.
func (c *Client) IDs(ctx context.Context, q Query) (v IDs, err error) {
	_, err = c.getIDs(ctx, q, &v)
	return v, err
}

func (c *Client) getIDs(ctx context.Context, q Query, v *IDs) (size int, err error) {
	size, err = c.getResource(ctx, "ids", q.values(), v)
	switch {
	case err != nil:
		return 0, err
	case v.Rows == nil, len(v.Rows) > min(max(q.Size, 1), MostRows):
		return 0, errNoPage
	}
	v.Page, v.Pages = max(v.Page, 1), max(v.Pages, 1)
	v.Total, v.Matched = max(v.Total, 0), max(v.Matched, 0)
	return size, nil
}

// All requests all identifiers that q selects, page by page. They are not a snapshot: an identifier
// that ends in between may be missing, and a new one may move another out of sight. Complete is
// false if there are more than MostIDs, or more than the memory limit allows.
func (c *Client) All(ctx context.Context, q Query) (rows []Row, complete bool, err error) {
	type name struct {
		id  uint64
		pid string
	}
	seen := make(map[name]bool)
	q.Size = MostRows
	read := 0
	for q.Page = 1; ; q.Page++ {
		var v IDs
		size, err := c.getIDs(ctx, q, &v)
		if err != nil {
			return nil, false, err
		}
		for _, r := range v.Rows {
			if n := (name{r.ID, r.PID}); !seen[n] {
				seen[n] = true
				rows = append(rows, r)
			}
		}
		if q.Page >= v.Pages || len(v.Rows) == 0 {
			return rows, true, nil
		}
		if read += size; q.Page*MostRows >= MostIDs || read > roomList {
			return rows, false, nil
		}
	}
}

// ID requests one identifier, by its number or its PID's id.
func (c *Client) ID(ctx context.Context, which string) (v ID, err error) {
	_, err = c.getResource(ctx, "ids/"+url.PathEscape(which), url.Values{"format": {"json"}}, &v)
	if gone := (*statusError)(nil); errors.As(err, &gone) && gone.code == http.StatusNotFound {
		return v, ErrGone
	}
	if err == nil && v.History == nil {
		err = errNoPage
	}
	return v, err
}

// Overview requests the data of the program as a whole.
func (c *Client) Overview(ctx context.Context) (v Overview, err error) {
	_, err = c.getResource(ctx, "", url.Values{"format": {"json"}}, &v)
	if err == nil && v.Loops == nil {
		err = errNoPage
	}
	v.Total = max(v.Total, 0)
	return v, err
}

// Sections requests the list of the program's tables.
func (c *Client) Sections(ctx context.Context) (all []Title, err error) {
	var v list[Title]
	_, err = c.getResource(ctx, "sections", url.Values{"format": {"json"}}, &v)
	if none := (*statusError)(nil); errors.As(err, &none) && none.code == http.StatusNotFound {
		return nil, nil
	}
	return v, err
}

// Section requests one of the program's tables.
func (c *Client) Section(ctx context.Context, name string) (v Section, err error) {
	_, err = c.getResource(ctx, "sections/"+url.PathEscape(name), url.Values{"format": {"json"}}, &v)
	if err == nil && (v.Rows == nil || len(v.Columns) > mostNames) {
		err = errNoPage
	}
	v.Total = max(v.Total, 0)
	return v, err
}

// getResource requests a resource, and returns the length of the answer.
func (c *Client) getResource(ctx context.Context, path string, query url.Values, into any) (size int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.patience, ErrSilent)
	defer cancel()
	at := c.base.String() + path + "?" + query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return 0, causeOf(ctx, err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, causeOf(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, newStatusError(resp)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, c.room+1))
	switch {
	case err != nil:
		return 0, causeOf(ctx, err)
	case int64(len(data)) > c.room:
		return 0, errLong
	}
	return len(data), decodeAnswer(data, into)
}

// causeOf returns the cause of an error, without the request's address and fit for a terminal.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if at := (*url.Error)(nil); errors.As(err, &at) {
		err = at.Err
	}
	if errors.Is(err, unix.ECONNREFUSED) {
		err = fmt.Errorf("%w: start the program there, or name the address of its live page as HOST:PORT", err)
	}
	return &failure{err}
}

// failure is an error whose text may contain bytes from the server.
type failure struct{ error }

func (f *failure) Error() string {
	text := f.error.Error()
	return plain.Text(text[:min(len(text), roomSaid)])
}

func (f *failure) Unwrap() error { return f.error }

// statusError is an answer with a status other than 200.
type statusError struct {
	code int
	text string
}

func (s *statusError) Error() string {
	text := fmt.Sprintf("the server answers with %d, %s", s.code, s.text)
	if s.code == http.StatusNotFound {
		text += ": is the live page (package inspect) at another port or path?"
	}
	return text
}

func newStatusError(resp *http.Response) error {
	said, _ := io.ReadAll(io.LimitReader(resp.Body, roomSaid)) // an explanation only
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	if strings.HasPrefix(line, "<") { // a page for people
		line = ""
	}
	text := cmp.Or(http.StatusText(resp.StatusCode), "an unknown status")
	if line != "" {
		text += ": " + plain.Text(line)
	}
	return &statusError{resp.StatusCode, text}
}
