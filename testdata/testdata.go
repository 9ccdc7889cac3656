// Package testdata embeds the vectors and hostile inputs that tests of several packages share. README.md in
// each folder states its format and where it comes from.
package testdata

import "embed"

// FS holds the folders vectors, corpus, launch and packs.
//
//go:embed all:vectors all:corpus all:packs
var FS embed.FS
