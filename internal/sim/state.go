package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// state remembers, in a file, which seed is next.
type state struct {
	file string
	next uint64 // 0: nothing is remembered
}

// openState reads it. No file: one in the user's cache.
func openState(file string) (*state, error) {
	if file == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("where to remember the seeds (or say it with -state): %w", err)
		}
		file = filepath.Join(cache, "rdmactor", "simulation-seed")
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return &state{file: file}, os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err != nil {
		return nil, err
	}
	next, err := parseSeed(strings.TrimSpace(string(b)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to begin anew", file, err)
	}
	return &state{file, next}, nil
}

// save writes it, so that a reader finds the old seed or the new one.
func (s *state) save(next uint64) error {
	if next == s.next {
		return nil
	}
	tmp := s.file + ".new"
	if err := os.WriteFile(tmp, []byte(strconv.FormatUint(next, 10)+"\n"), 0o644); err != nil {
		return err
	}
	s.next = next
	return os.Rename(tmp, s.file)
}
