package vm

import (
	"slices"
	"strings"
	"testing"
)

func TestSourcesAreThoseOfTheConfiguredMirror(t *testing.T) {
	const targets = `https://packages.example/apt/ cloud-sdk-bookworm
http://mirror.example/debian/ trixie
http://mirror.example/debian/ trixie-updates
http://mirror.example/security/ trixie-security
https://node.example/ nodistro
`
	s, err := sourcesFrom(targets, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"URIs: http://mirror.example/debian/\nSuites: bookworm bookworm-updates bookworm-backports\n",
		"URIs: http://mirror.example/security/\nSuites: bookworm-security\n",
	} {
		if !strings.Contains(s, want) {
			t.Errorf("no %q in:\n%s", want, s)
		}
	}
	if strings.Contains(s, "packages.example") || strings.Contains(s, "node.example") {
		t.Errorf("a repository that is not Debian's became a source:\n%s", s)
	}
	if _, err := sourcesFrom("https://node.example/ nodistro\n", false); err == nil {
		t.Error("without a Debian mirror there are sources")
	}
}

func TestReleasesAreOrderedByTheirNumbers(t *testing.T) {
	releases := []string{"6.12.9+deb12-amd64", "6.12.117+deb12-amd64", "6.1.0-9-amd64", "6.12.90+deb12.1-amd64", "6.1.0-56-amd64", "6.12.90+deb12-amd64"}
	slices.SortFunc(releases, compareReleases)
	want := "6.12.117+deb12-amd64 6.12.90+deb12.1-amd64 6.12.90+deb12-amd64 6.12.9+deb12-amd64 6.1.0-56-amd64 6.1.0-9-amd64"
	if got := strings.Join(releases, " "); got != want {
		t.Errorf("newest first:\n got %s\nwant %s", got, want)
	}
}

func TestErrorsOfAptNameNoMirror(t *testing.T) {
	const said = "Err:1 http://user:secret@mirror.example/debian bookworm\n  Could not resolve 'mirror.example'"
	got := hideMirrors(said, "http://mirror.example/debian/ bookworm\n")
	if want := "Err:1 MIRROR bookworm\n  Could not resolve 'MIRROR'"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
