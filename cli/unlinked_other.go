//go:build !linux

package cli

import "os"

// openUnlinked opens a folder. Only Linux has descriptors of links, so here the way is taken as it is.
func openUnlinked(dir string) (*os.Root, error) { return os.OpenRoot(dir) }
