package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"
)

// TestFlagsLikeGetopt: what rping takes on its command line.
func TestFlagsLikeGetopt(t *testing.T) {
	want := pingFlags{
		client: true, addr: "10.0.0.1", port: "99", count: 10, size: 100, verbose: true, validate: true,
		device: "auto", timeout: 10 * time.Second,
	}
	for _, line := range []string{
		"-c -a 10.0.0.1 -p 99 -C 10 -S 100 -v -V",
		"-cvV -a 10.0.0.1 -p 99 -C 10 -S 100",
		"-cvVC10 -a10.0.0.1 -p99 -S100",
		"-cvVC 10 -a 10.0.0.1 -p=99 --S=100 --timeout 10s",
	} {
		got, err := parsePing(strings.Fields(line), io.Discard)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", line, got, err, want)
		}
	}
}

func TestBadCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"":                             "rdmactor --help",
		"pong":                         `unknown command "pong"`,
		"ping":                         "server or client?",
		"ping -s -c":                   "server or client?",
		"ping -c":                      "connect to whom?",
		"ping -cP -a 127.0.0.1":        "-P",
		"ping -s now":                  `unexpected "now"`,
		"ping -sx":                     "-x",
		"ping -s -S 0":                 "-S 0",
		"ping -s -C -1":                "-C -1",
		"ping -s --timeout 0s":         "--timeout",
		"ping -s --device rxe0":        "--device rxe0: have auto, iwarp and kernel",
		"ping -s -I 127.0.0.1":         "-I: a client's address",
		"ping -c -a ::1 -I here":       "-I",
		"ping -c -a 1.2.3.4:5 -C 1":    "1.2.3.4:5",
		"ping -c -a 127.0.0.1 -p none": "none",
		"time -s -c":                   "-s and -c",
		"time -c":                      "connect to whom?",
		"time now":                     `unexpected "now"`,
		"time -s --json":               "it is the client that measures",
		"time -I 127.0.0.1":            "-I: only a client",
		"time -n 1,,2":                 `"": want numbers from 1 to 50000`,
		"time -n 0":                    `"0": want numbers`,
		"time -n 50001":                `"50001": want numbers`,
		"time --ids 50001":             `"50001": want a number from 0 to 50000`,
		"time --ids -1":                `"-1": want a number from 0`,
		"time --level verbs":           "--level verbs: have actor and cmid",
		"time --timeout 0s":            "--timeout 0s: too short",
		"time --device siw0":           "--device siw0: have auto, iwarp and kernel",
		"time --device iwarp -a ::":    "-a ::: both sides of a connection need an address",
	} {
		err := run(context.Background(), strings.Fields(line), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rdmactor %s: %v, want an error that says %q", line, err, want)
		}
	}
}

func TestHelp(t *testing.T) {
	for line, want := range map[string]string{
		"--help": "rdmactor ping", "help": "rdmactor ping", "ping --help": "-P", "ping -h": "-crc", "ping -help": "-crc",
		"time -h": "-level", "time --help": "cmtime",
	} {
		var out bytes.Buffer
		err := run(context.Background(), strings.Fields(line), &out, io.Discard)
		if err != nil && !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), want) {
			t.Errorf("rdmactor %s: %v, prints %q, want %q in it", line, err, &out, want)
		}
		if strings.Contains(out.String(), "default -1") {
			t.Errorf("rdmactor %s: prints %q, with a default that nobody can mean", line, &out)
		}
	}
}
