package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"
)

// Config configures a Page. Zero fields have defaults.
type Config struct {
	// Path is where the handler is mounted, with a slash at both ends: /debug/rdma/.
	Path string
	// Interval is how often viewers get news, and the runtime is inspected at most: 1 s, and at
	// least 100 ms.
	Interval time.Duration
	// Viewers is how many may get events at a time: 16.
	Viewers int
	// Sections are tables of the program's own: remoting's peers, say. See Rows.
	Sections []Section
	// Actions switches actions on. nil: there are none.
	Actions *Actions
}

// Actions are what the page may do besides showing: POST actions/disconnect, actions/drain (both
// with {"id": N}) and actions/level (with {"level": "debug"}), each with the header
//
//	Authorization: Bearer TOKEN
//
// A browser sends that header only for the page itself, because the page asks for the token and
// keeps it in its tab. Each action is logged.
type Actions struct {
	// Token is what an action needs. It has at least 16 bytes.
	Token string
	// Level is what actions/level sets. nil: that action is refused.
	Level *slog.LevelVar
}

const (
	defaultPath     = "/debug/rdma/"
	defaultInterval = time.Second
	minInterval     = 100 * time.Millisecond
	defaultViewers  = 16
	minToken        = 16
)

// sectionName is what may stand in a path and in a page's address.
var sectionName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// withDefaults is c as a Page uses it.
func (c Config) withDefaults() (Config, error) {
	c.Path = cmp.Or(c.Path, defaultPath)
	if !strings.HasPrefix(c.Path, "/") || !strings.HasSuffix(c.Path, "/") || strings.ContainsAny(c.Path, "{} ") {
		return c, fmt.Errorf("inspect: the path %q has no slash at both ends", c.Path)
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
	if c.Actions != nil && len(c.Actions.Token) < minToken {
		return c, errors.New("inspect: a token has at least 16 bytes")
	}
	return c, nil
}
