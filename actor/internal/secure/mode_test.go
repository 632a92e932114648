package secure

import (
	"strings"
	"testing"
)

// TestFeatures: of all pairs of hellos only those with the same mode and suite go on.
func TestFeatures(t *testing.T) {
	good := map[Features]bool{0: true, FeaturePSK: true, FeaturePSK | FeatureChaCha: true, FeatureTLS: true}
	for ours := range good {
		for bits := range 256 {
			theirs := Features(bits)
			err := ours.Same(theirs)
			if theirs&7 == ours {
				if err != nil {
					t.Errorf("%#x and %#x: %v", ours, theirs, err)
				}
				continue
			}
			wantRefused(t, "another mode", err)
		}
	}
	for want, c := range map[string][2]Features{
		"the peer's side is not secured": {FeaturePSK, 0}, "ours is not": {0, FeatureTLS}, "no mode there is": {FeaturePSK, 3},
		"another mode or suite": {FeaturePSK, FeatureTLS},
	} {
		if err := c[0].Same(c[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%#x and %#x: %v, want %q", c[0], c[1], err, want)
		}
	}
	if err := Features(0).Same(0); err != nil {
		t.Errorf("both without security: %v", err)
	}
	for _, s := range pskSuites {
		if got := PSKFeatures(s).Suite(); got != s {
			t.Errorf("%v is %v", s, got)
		}
	}
}

// TestFeaturesStripped: a mode that is stripped from a hello, or changed, is detected by a side
// that has one, whichever way the hello goes.
func TestFeaturesStripped(t *testing.T) {
	for _, ours := range []Features{FeaturePSK, FeaturePSK | FeatureChaCha, FeatureTLS} {
		for flip := range 3 {
			wantRefused(t, "changed", ours.Same(ours^1<<flip))
		}
		wantRefused(t, "stripped", ours.Same(0))
	}
}
