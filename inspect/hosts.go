package inspect

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
)

// A site can make its own name point to an operator's machine, or to one that only his browser
// reaches, after the browser has loaded the site (DNS rebinding). The browser then takes this page
// for a part of that site. So the page answers only to names that no attacker can own.

// anyHost in Config.Hosts switches that check off.
const anyHost = "*"

// isKnownHost reports whether a request's Host is one of the page's names.
func (p *Page) isKnownHost(host string) bool {
	if host == "" {
		return true // browsers always send one
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true // browsers do not ask a name server for these
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return slices.Contains(p.cfg.Hosts, anyHost) || slices.Contains(p.cfg.Hosts, host) || slices.Contains(p.own, host)
}

// ownNames returns the name of this machine, with and without its domain.
func ownNames() []string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return nil
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	short, _, _ := strings.Cut(name, ".")
	return []string{name, short}
}

// isCrossSite reports whether a browser asks on behalf of another site, as for a script or a frame
// there. It is false if a user has followed a link.
func (p *Page) isCrossSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	switch site {
	case "", "none", "same-origin":
	default:
		dest := r.Header.Get("Sec-Fetch-Dest") // a frame navigates, too
		return r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate" || dest != "" && dest != "document"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	of, err := url.Parse(origin)
	if err != nil || of.Host == "" {
		return true
	}
	// A proxy may have set another Host. Then the browser's statement counts, for a name of the
	// page.
	return of.Host != r.Host && (site != "same-origin" || !p.isKnownHost(of.Host))
}
