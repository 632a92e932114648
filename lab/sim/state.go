package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// state is the progress of runs with -for, stored in a file. Only one run at a time can use it.
type state struct {
	file *os.File
	record
}

// record is the content of the file.
type record struct {
	Next     uint64 // the lowest unplayed seed; 0: nothing is stored
	Worlds   int
	Failures []kind // of seeds below Next
}

// openState opens the file, or one in the user's cache if name is empty. An unwritable file is an
// error now, not after a night.
func openState(name string) (*state, error) {
	if name == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("where to remember the seeds (or say it with -state): %w", err)
		}
		name = filepath.Join(cache, "rdmactor", "simulation.json")
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	s := &state{file: file}
	if err := s.lockAndRead(); err != nil {
		_ = file.Close() // nothing was written
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// lockAndRead locks the file until the process ends, and reads it.
func (s *state) lockAndRead() error {
	switch err := unix.Flock(int(s.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return fmt.Errorf("another run goes on from there: give this one another file with -state (%w)", err)
	case err != nil:
		return err
	}
	err := json.NewDecoder(s.file).Decode(&s.record)
	if err == io.EOF { // a new file
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; remove it to begin anew", err)
	}
	return nil
}

// saveRecord overwrites the record. Bytes after it are ignored, so a process that is killed leaves
// either the old or the new record.
func (s *state) saveRecord(r record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := s.file.WriteAt(append(b, '\n'), 0); err != nil {
		return err
	}
	s.record = r
	return s.file.Truncate(int64(len(b) + 1))
}

// close releases the lock.
func (s *state) close() error { return s.file.Close() }
