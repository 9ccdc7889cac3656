package archive

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// Packed says what Pack wrote.
type Packed struct {
	Size   int64         // bytes
	Digest digest.Digest // of them
}

// Pack writes the archive of a tree: its counted files in path order, links as the bytes they lead to, without
// times, owners or modes but for an x bit. The same tree gives the same bytes, and Check accepts them under any
// policy that the tree's names pass, however often the tree's files repeat themselves (Compressor). A tree that breaks a
// rule that can't be softened is a *rule.Denied, found before anything is written or, for the limit on an archive's
// size, after some of it is.
func Pack(w io.Writer, t tree.Tree) (Packed, error) {
	report := CheckTree(t, lenient())
	if !report.OK() {
		return Packed{}, denied(t, report.Violations)
	}
	out := newPackWriter(w)
	zw, err := NewCompressor(out)
	if err != nil {
		return Packed{}, fmt.Errorf("pack: %w", err)
	}
	tw := tar.NewWriter(zw)
	err = tree.Each(t, func(e tree.Entry, r io.Reader) error { return packFile(tw, e, r) })
	if err == nil {
		err = tw.Close()
	}
	if err == nil {
		err = zw.Close()
	}
	if f, ok := errors.AsType[*fault](err); ok {
		return Packed{}, denied(t, f.violations)
	}
	if err != nil {
		return Packed{}, fmt.Errorf("pack: %w", err)
	}
	return Packed{Size: out.n, Digest: digest.FromHash(digest.SHA256, out.sum)}, nil
}

func packFile(tw *tar.Writer, e tree.Entry, r io.Reader) error {
	h := tar.Header{Typeflag: tar.TypeReg, Name: e.Path, Size: e.Size, Mode: 0o644, Format: tar.FormatPAX}
	if e.Executable {
		h.Mode = 0o755
	}
	if err := tw.WriteHeader(&h); err != nil {
		return err
	}
	_, err := io.Copy(tw, r)
	return err
}

// lenient is the policy that softens every rule of archives that may be.
var lenient = sync.OnceValue(rule.SoftenAll)

func denied(t tree.Tree, violations []rule.Violation) error {
	report := rule.Report{}
	for _, v := range violations {
		report.Add(v)
	}
	l := t.Listing()
	subject := rule.Subject{ContentDigest: l.Content.String(), TreeDigest: l.Tree.String()}
	return &rule.Denied{Decision: report.Decide(rule.Publish, subject, nil)}
}

// packWriter passes on an archive's bytes, hashes them and stops at the limit.
type packWriter struct {
	w   io.Writer
	sum hash.Hash
	n   int64
}

func newPackWriter(w io.Writer) *packWriter { return &packWriter{w: w, sum: sha256.New()} }

func (p *packWriter) Write(b []byte) (int, error) {
	p.sum.Write(b)
	p.n += int64(len(b))
	if p.n > limit.Compressed {
		return 0, faultf("archive.limit.compressed", "the archive has at least %d bytes, at most %d are allowed", p.n, limit.Compressed)
	}
	return p.w.Write(b)
}
