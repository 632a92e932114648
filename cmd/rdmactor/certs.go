package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/internal/devcerts"
)

const certsUsage = `rdmactor certs [NAME...] [flags]

Creates certificates for development, with keys that only the owner of their
files can read:

  ca.pem      ca-key.pem      an authority: programs take ca.pem with --tls-ca;
                              its key only signs more certificates
  server.pem  server-key.pem  a server reached by these NAMEs, host names and
                              addresses (default localhost, 127.0.0.1 and ::1)
  client.pem  client-key.pem  a client; --client gives another name, or several

Programs take a certificate with --tls-cert and its key with --tls-key. If the
folder has an authority, it signs the certificates named on the command line.
Existing files are not changed. Certificates are valid for a year and cannot be
revoked. They are not for production: their subjects say so.

EXAMPLES
  rdmactor certs                          # all of them, in the folder certs
  rdmactor certs --client ann             # another client of that authority
  rdmactor certs shop.example --dir shop  # another authority, and its server

FLAGS
`

// certsFlags is the command line of certs.
type certsFlags struct {
	dir     string
	server  []string
	clients []string
}

func parseCerts(args []string, stdout io.Writer) (c certsFlags, err error) {
	f := flag.NewFlagSet("rdmactor certs", flag.ContinueOnError)
	f.StringVar(&c.dir, "dir", "certs", "write to `FOLDER`")
	f.Func("client", "`NAME` of a client, and of its files; may be repeated", func(name string) error {
		if name == "ca" || name == "server" || strings.HasSuffix(name, "-key") || !isHost(name) {
			return errors.New("want letters, digits, - and ., and neither ca nor server")
		}
		c.clients = append(c.clients, name)
		return nil
	})
	if c.server, err = cli.Parse(f, certsUsage, args, stdout); err != nil {
		return c, err
	}
	for _, name := range c.server {
		if net.ParseIP(name) == nil && !isHost(strings.TrimPrefix(name, "*.")) {
			return c, fmt.Errorf("%q: want a host name or an IP address, without a port", name)
		}
	}
	return c, nil
}

// isHost reports whether a name is a valid host name.
func isHost(name string) bool {
	return name != "" && len(name) < 254 && name[0] != '.' && name[0] != '-' &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") == ""
}

// runCerts makes certificates.
func runCerts(args []string, stdout io.Writer) error {
	c, err := parseCerts(args, stdout)
	if err != nil {
		return err
	}
	files := map[string]devcerts.Pair{}
	ca, err := c.readAuthority()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if ca, err = devcerts.New(); err != nil {
			return err
		}
		files["ca"] = ca.Pair
		if len(c.server) == 0 {
			c.server = []string{"localhost", "127.0.0.1", "::1"}
		}
		if len(c.clients) == 0 {
			c.clients = []string{"client"}
		}
	case err != nil:
		return fmt.Errorf("%s: %w", c.dir, err)
	case len(c.server)+len(c.clients) == 0:
		return fmt.Errorf("%s has an authority already: name the server or --client whose certificate it is to sign, or another folder with --dir", c.dir)
	}
	if err := c.signCerts(ca, files); err != nil {
		return err
	}
	return c.writeFiles(files, stdout)
}

// readAuthority reads the folder's authority.
func (c *certsFlags) readAuthority() (*devcerts.Authority, error) {
	cert, err := os.ReadFile(c.filePath("ca.pem"))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(c.filePath("ca-key.pem"))
	if err != nil { // not fs.ErrNotExist: one of the authority's files is missing
		return nil, errors.New("there is ca.pem, but no ca-key.pem to sign with: " + err.Error())
	}
	return devcerts.Load(devcerts.Pair{Cert: cert, Key: key})
}

// signCerts creates the certificates that the command line names, and adds them to files.
func (c *certsFlags) signCerts(ca *devcerts.Authority, files map[string]devcerts.Pair) (err error) {
	if len(c.server) > 0 {
		if files["server"], err = ca.Server(c.server...); err != nil {
			return err
		}
	}
	for _, name := range c.clients {
		if files[name], err = ca.Client(name); err != nil {
			return err
		}
	}
	return nil
}

// writeFiles writes the new files, if none of them exists.
func (c *certsFlags) writeFiles(files map[string]devcerts.Pair, stdout io.Writer) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	order := append([]string{"ca", "server"}, c.clients...)
	for name := range files {
		for _, path := range []string{c.filePath(name + ".pem"), c.filePath(name + "-key.pem")} {
			switch _, err := os.Lstat(path); {
			case err == nil:
				return fmt.Errorf("%s: %w: delete it to replace it, or use another folder (--dir) or another --client NAME", path, fs.ErrExist)
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
		}
	}
	for _, name := range order {
		p, ok := files[name]
		if !ok {
			continue
		}
		delete(files, name) // a client may be named twice
		cert, key := c.filePath(name+".pem"), c.filePath(name+"-key.pem")
		err := errors.Join(createFile(key, p.Key, 0o600), createFile(cert, p.Cert, 0o644))
		clear(p.Key)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s, %s\n", cert, key)
	}
	return nil
}

func (c *certsFlags) filePath(name string) string { return filepath.Join(c.dir, name) }

// createFile writes a new file.
func createFile(name string, b []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}
