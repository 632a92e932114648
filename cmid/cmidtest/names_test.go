package cmidtest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/rdmactor/rdmactor/cmid"
)

// The network's names resolve on every host, in the order in which they were given, to listen and
// to connect.
func TestName(t *testing.T) {
	f := NewFabric(Config{})
	f.Name("svc", "10.0.0.9", "fd00::2", "10.0.0.1")
	f.Name("nobody")
	for _, h := range []string{"", "far"} {
		d, ok := f.Host(h).Driver().(cmid.NameResolver)
		if !ok {
			t.Fatal("the driver resolves no names")
		}
		want := []string{"10.0.0.9:7471", "[fd00::2]:7471", "10.0.0.1:7471"}
		for _, flags := range []cmid.AddrInfoFlags{0, cmid.RAIPassive} {
			info, err := d.LookupAddrInfo(context.Background(), "svc", "7471", &cmid.AddrInfo{Flags: flags})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range info {
				at := i.Dst
				if flags != 0 {
					at = i.Src
				}
				got = append(got, at.String())
			}
			if !slices.Equal(got, want) {
				t.Errorf("flags %v: %v, want %v", flags, got, want)
			}
		}
		if _, err := d.LookupAddrInfo(context.Background(), "nobody", "7471", nil); !errors.Is(err, cmid.EAINoName) {
			t.Errorf("a name without addresses: %v", err)
		}
		if info, err := d.LookupAddrInfo(context.Background(), "10.0.0.1", "7471", nil); err != nil || len(info) != 1 {
			t.Errorf("an address: %v, %v", info, err)
		}
	}
}
