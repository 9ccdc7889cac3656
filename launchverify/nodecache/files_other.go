//go:build !unix

package nodecache

import (
	"errors"
	"os"
)

const noFollow = 0

var errNotEmpty = errors.New("folder not empty")

func alive(string) bool         { return true }
func syncFolder(string) error   { return nil }
func removeTree(p string) error { return os.RemoveAll(p) }
func processSpace() string      { return "" }
