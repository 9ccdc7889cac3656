package pack

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"path"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// pngSignature begins every PNG.
const pngSignature = "\x89PNG\r\n\x1a\n"

// maxIconSide is the greatest width and height of an icon, in pixels.
const maxIconSide = 512

// icon checks the PNG that a tuneplane manifest names and keeps it as a data URI (packs.md 4.3). Any other icon is
// a text and stands for itself.
func (l *layout) icon() {
	file := l.m.IconPath()
	if file == "" {
		l.found.icon = l.m.Icon
		return
	}
	if !isInnerPath(file) {
		return // the manifest's rule says so
	}
	target, kind := tree.ResolveLink("", file, l.nodes.look)
	e := l.nodes.entries[target]
	switch {
	case kind == tree.Outside || l.linkAt(file):
		l.add("layout.icon", "icon", file, "the icon %.200q is a link; it must be a file of the pack", file)
		return
	case kind == tree.Counted && !l.nodes.counted(path.Clean(file)):
		l.behindLink("icon", file, target) // and go on: the clients read it where it lies
	}
	switch {
	case kind != tree.Counted || e.Kind != tree.Counted:
		l.add("layout.icon", "icon", file, "the icon %.200q is not a file of the pack", file)
		return
	case e.Size > limit.Icon:
		l.add("layout.icon", "icon", file, "the icon has %d bytes; at most %d are allowed", e.Size, limit.Icon)
		return
	}
	data, ok := l.read(e.Path, limit.Icon)
	if !ok {
		return
	}
	if fault := pngFault(data); fault != "" {
		l.add("layout.icon", "icon", file, "%s", fault)
		return
	}
	l.found.icon = "data:image/png;base64," + base64.StdEncoding.EncodeToString(data)
}

// linkAt reports whether the last element of a path is itself a link.
func (l *layout) linkAt(file string) bool {
	dir, ok := l.nodes.folder(path.Dir(file))
	return ok && l.nodes.entries[path.Join(dir, path.Base(file))].Link != ""
}

// pngFault says what keeps data from being a PNG that the clients show, "" for nothing. Colours and pixels are
// not looked at.
func pngFault(data []byte) string {
	if !strings.HasPrefix(string(data), pngSignature) {
		return "the icon is no PNG: its first 8 bytes are not the signature"
	}
	const invalid = "the icon's PNG structure is broken: expected a header, pixels and an end, each with its checksum, and nothing after"
	rest := data[len(pngSignature):]
	header, pixels := false, false
	for {
		kind, payload, after, ok := pngChunk(rest)
		if !ok || header == (kind == "IHDR") {
			return invalid
		}
		if kind == "IHDR" {
			if len(payload) != 13 {
				return invalid
			}
			w, h := binary.BigEndian.Uint32(payload), binary.BigEndian.Uint32(payload[4:])
			if w < 1 || w > maxIconSide || h < 1 || h > maxIconSide {
				return "the icon's width and height must lie between 1 and 512 pixels"
			}
			header = true
		}
		pixels = pixels || kind == "IDAT"
		if kind == "IEND" {
			if len(payload) != 0 || len(after) != 0 || !pixels {
				return invalid
			}
			return ""
		}
		rest = after
	}
}

// pngChunk reads the first chunk of b: length, type, payload, and a checksum of type and payload.
func pngChunk(b []byte) (kind string, payload, after []byte, ok bool) {
	const frame = 12
	if len(b) < frame {
		return "", nil, nil, false
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if n > uint64(len(b)-frame) {
		return "", nil, nil, false
	}
	payload, sum := b[8:8+n], b[8+n:frame+n]
	if crc32.ChecksumIEEE(b[4:8+n]) != binary.BigEndian.Uint32(sum) {
		return "", nil, nil, false
	}
	return string(b[4:8]), payload, b[frame+n:], true
}
