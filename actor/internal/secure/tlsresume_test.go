package secure

import (
	"crypto/tls"
	"testing"

	"github.com/rdmactor/rdmactor/internal/certtest"
)

// sessions is a user's cache of sessions, which counts how often it is used.
type sessions struct {
	tls.ClientSessionCache
	used int
}

func (s *sessions) Get(key string) (*tls.ClientSessionState, bool) {
	s.used++
	return s.ClientSessionCache.Get(key)
}

func (s *sessions) Put(key string, state *tls.ClientSessionState) {
	s.used++
	s.ClientSessionCache.Put(key, state)
}

// TestTLSResumesNothing: a second handshake is a whole one, also if the user has a cache of
// sessions, which is not used.
func TestTLSResumesNothing(t *testing.T) {
	client, server := configs(t, certtest.New(t))
	cache := &sessions{ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	client.ClientSessionCache = cache
	for range 2 {
		s := begin(t, client, server, tlsPeer, tlsPeer)
		if ce, se := s.run(nil); ce != nil || se != nil {
			t.Fatal(ce, se)
		}
		for _, side := range []*TLS{s.client, s.server} {
			if _, known, err := side.Finish(); err != nil || known.DidResume || len(known.PeerCertificates) == 0 {
				t.Errorf("%+v, %v", known, err)
			}
			side.Close()
		}
	}
	if cache.used > 0 {
		t.Errorf("the cache is used %d times", cache.used)
	}
}
