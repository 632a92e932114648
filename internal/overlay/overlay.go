// Package overlay changes text in files for one run of the go command, by means of its -overlay
// flag. Nothing in the repository's folders changes.
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Edit replaces a text that is in a file exactly once.
type Edit struct {
	File string // below the repository's root
	Old  string
	New  string
}

// Apply returns the files that edits change, as they are afterwards, by their names below root.
// Several edits of one file are made in order. It fails if a text is not there exactly once.
func Apply(root string, edits ...Edit) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range edits {
		src, ok := files[e.File]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return nil, err
			}
			src = string(b)
		}
		if n := strings.Count(src, e.Old); n != 1 {
			return nil, fmt.Errorf("%s has the text %d times, want once: give the edit the text as it is now\n%s", e.File, n, e.Old)
		}
		files[e.File] = strings.Replace(src, e.Old, e.New, 1)
	}
	return files, nil
}

// Write makes edits of the repository at root, and puts the changed files into the folder dir. list
// is the file there that go's -overlay flag takes.
func Write(root, dir string, edits ...Edit) (list string, err error) {
	files, err := Apply(root, edits...)
	if err != nil {
		return "", err
	}
	if root, err = filepath.Abs(root); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, content := range files {
		changed := filepath.Join(dir, strconv.Itoa(len(replace))+"_"+filepath.Base(name))
		replace[filepath.Join(root, name)] = changed
		if err := os.WriteFile(changed, []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, b, 0o600)
}
