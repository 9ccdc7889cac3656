//go:build !unix

package nodecache

import (
	"errors"
	"io/fs"
)

const nonBlocking = 0

var (
	errStale     = errors.New("stale")
	errNotFolder = errors.New("no folder")
	errFolder    = errors.New("a folder")
)

func keepsOthersOut(fs.FileInfo) bool { return true }
func ownFile(fs.FileInfo) bool        { return false }
func occupied(err error) bool         { return errors.Is(err, fs.ErrExist) }
func full(error) bool                 { return false }
func alive(int) bool                  { return true }
