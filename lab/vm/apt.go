package vm

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	release = "bookworm"
	keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
)

// apt is a private configuration of apt for the Debian mirror of this machine. It has its own
// lists, cache and sources. In it no package is installed, so all dependencies of a package are
// downloaded. It needs no root and changes nothing outside its directory.
type apt struct{ dir string }

// openApt fetches the package lists of the release, its updates and its security updates, and of
// its backports if wanted.
func openApt(ctx context.Context, dir string, backports bool) (*apt, error) {
	a := &apt{dir: dir}
	for _, d := range []string{"state/lists/partial", "cache/archives/partial", "sources", "none"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	targets, err := aptTargets(ctx)
	if err != nil {
		return nil, err
	}
	sources, err := sourcesFrom(targets, backports)
	if err != nil {
		return nil, err
	}
	conf := fmt.Sprintf(`
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
Dir::State "%[1]s/state";
Dir::State::lists "%[1]s/state/lists";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "%[1]s/sources";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "%[1]s/none";
Debug::NoLocking "true";
`, dir)
	for name, content := range map[string]string{"conf": conf, "status": "", "sources/vm.sources": sources} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	_, err = a.runWithConfig(ctx, "", "apt-get", "-q", "-o", "APT::Update::Error-Mode=any", "update")
	return a, err
}

var debianSuite = regexp.MustCompile(`^(bookworm|trixie|forky|duke|sid|unstable|testing|stable|oldstable)(-security|/updates|-updates|-backports)?$`)

// sourcesFrom finds the mirrors in lines of "URI suite", and returns the apt sources for the
// guest's release on them.
func sourcesFrom(targets string, backports bool) (string, error) {
	var archive, security string
	for line := range strings.Lines(targets) {
		uri, suite, _ := strings.Cut(strings.TrimSpace(line), " ")
		m := debianSuite.FindStringSubmatch(suite)
		switch {
		case m == nil:
		case m[2] == "-security" || m[2] == "/updates":
			security = uri
		default:
			archive = uri
		}
	}
	if archive == "" {
		return "", errors.New("no Debian mirror is configured in /etc/apt")
	}
	suites := release + " " + release + "-updates"
	if backports {
		suites += " " + release + "-backports"
	}
	signed := ""
	if _, err := os.Stat(keyring); err == nil {
		signed = "Signed-By: " + keyring + "\n"
	}
	entry := func(uri, suites string) string {
		return "Types: deb\nURIs: " + uri + "\nSuites: " + suites + "\nComponents: main\n" + signed + "\n"
	}
	s := entry(archive, suites)
	if security != "" {
		s += entry(security, release+"-security")
	}
	return s, nil
}

// aptTargets returns what /etc/apt configures, as lines of "URI suite".
func aptTargets(ctx context.Context) (string, error) {
	return runTool(ctx, "", nil, "apt-get", "indextargets", "--no-release-info", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages")
}

// aptTool runs one of apt's programs. Its errors do not contain the addresses of packages, because
// these may contain passwords, and errors end up in logs.
func aptTool(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	out, err := runTool(ctx, dir, append(env, "DEBIAN_FRONTEND=noninteractive"), name, args...)
	if err == nil {
		return out, nil
	}
	configured, _ := aptTargets(ctx)
	return "", fmt.Errorf("%s", hideMirrors(err.Error(), configured))
}

var address = regexp.MustCompile(`\b[a-z+]+://\S+`)

func hideMirrors(text, targets string) string {
	text = address.ReplaceAllString(text, "MIRROR")
	for line := range strings.Lines(targets) {
		uri, _, _ := strings.Cut(line, " ")
		if u, err := url.Parse(uri); err == nil && u.Hostname() != "" {
			text = strings.ReplaceAll(text, u.Hostname(), "MIRROR")
		}
	}
	return text
}

func (a *apt) runWithConfig(ctx context.Context, dir, name string, args ...string) (string, error) {
	return aptTool(ctx, dir, []string{"APT_CONFIG=" + a.dir + "/conf"}, name, args...)
}

// unpackPackages downloads packages and unpacks them below root. A package is a name or
// name=version.
func (a *apt) unpackPackages(ctx context.Context, root string, packages ...string) error {
	debs, err := a.downloadPackages(ctx, packages...)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(debs[0])) }()
	return unpackAll(ctx, root, debs)
}

// unpackClosure downloads and unpacks packages with all their dependencies.
func (a *apt) unpackClosure(ctx context.Context, root string, packages ...string) error {
	args := append([]string{"-q", "-y", "--download-only", "install"}, packages...)
	if _, err := a.runWithConfig(ctx, "", "apt-get", args...); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(a.dir, "cache/archives/*.deb"))
	if err != nil {
		return err
	}
	return unpackAll(ctx, root, debs)
}

// downloadPackages returns the downloaded files, sorted by name. The caller must remove their
// directory.
func (a *apt) downloadPackages(ctx context.Context, packages ...string) ([]string, error) {
	dir, err := os.MkdirTemp(a.dir, "download-")
	if err != nil {
		return nil, err
	}
	if _, err := a.runWithConfig(ctx, dir, "apt-get", append([]string{"-q", "download"}, packages...)...); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err == nil && len(debs) != len(packages) {
		err = fmt.Errorf("apt-get downloaded %d of %d packages: %v", len(debs), len(packages), debs)
	}
	return debs, err
}

func unpackAll(ctx context.Context, root string, debs []string) error {
	for _, deb := range debs {
		if _, err := runTool(ctx, "", nil, "dpkg-deb", "-x", deb, root); err != nil {
			return err
		}
	}
	return nil
}

// packageVersions returns the versions of each package on the mirror, newest first.
func (a *apt) packageVersions(ctx context.Context, packages ...string) (map[string][]string, error) {
	out, err := a.runWithConfig(ctx, "", "apt-cache", append([]string{"madison"}, packages...)...)
	if err != nil {
		return nil, err
	}
	v := map[string][]string{}
	for line := range strings.Lines(out) {
		if f := strings.Split(line, "|"); len(f) == 3 && !strings.Contains(f[2], "Sources") {
			name := strings.TrimSpace(f[0])
			v[name] = append(v[name], strings.TrimSpace(f[1]))
		}
	}
	return v, nil
}
