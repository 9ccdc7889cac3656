package archive

import (
	"archive/tar"
	"bytes"
	stdgzip "compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// FuzzCheck: no input makes the checker panic or fail, every violation can be shown, and what is accepted unpacks
// to a directory with the same digests and packs to an archive that is itself when checked and packed again.
func FuzzCheck(f *testing.F) {
	files, err := testdata.FS.ReadDir("corpus")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if name := file.Name(); strings.HasPrefix(name, "c") || strings.HasPrefix(name, "t") || name == "z03-trailing-garbage.tgz" || name == "z05-truncated.tgz" {
			if b := corpus(f, name); len(b) < 20_000 {
				f.Add(b)
			}
		}
	}
	for _, tt := range faulty {
		if b := withPack(tt.members...); len(b) < 20_000 {
			f.Add(b)
			f.Add(append(b, 0))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := len(b); n > 0 && n%2 == 1 {
			b = mend(b[:n-1]) // an odd length asks for headers whose checksums agree
		}
		a, report, err := Check(FromBytes(b), Options{Plain: true, Policy: lenient()})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range report.Violations {
			checkViolation(t, "fuzz", v)
		}
		if a == nil {
			return
		}
		defer a.Close()
		checkStandard(t, a, b)
		checkAccepted(t, a)
	})
}

// mend gives every block of b that looks like a tar header the checksum that agrees.
func mend(b []byte) []byte {
	b = bytes.Clone(b)
	for at := 0; at+blockSize <= len(b); at += blockSize {
		if h := b[at : at+blockSize]; bytes.HasPrefix(h[257:], []byte("ustar")) {
			copy(h[148:], "        ")
			sum := 0
			for _, c := range h {
				sum += int(c)
			}
			copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		}
	}
	return b
}

// checkStandard makes sure that the standard library's reader finds the same files in b.
func checkStandard(t *testing.T, a *Archive, b []byte) {
	if got, err := readStandard(b); err == nil {
		b = got
	}
	tr := tar.NewReader(bytes.NewReader(b))
	for n := 0; ; n++ {
		h, err := tr.Next()
		if err == io.EOF && n == a.Listing().Files {
			return
		}
		if err != nil {
			t.Fatalf("the standard library reads %d members, then %v; accepted were %d", n, err, a.Listing().Files)
		}
		e, ok := a.Listing().Lookup(h.Name)
		if !ok || h.Typeflag == tar.TypeReg && h.Size != e.Size || h.Typeflag == tar.TypeSymlink && h.Linkname != e.Link {
			t.Fatalf("the standard library reads %+v, accepted was %+v", h, e)
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, tr); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg && [32]byte(sum.Sum(nil)) != e.SHA256 {
			t.Fatalf("the standard library reads other bytes of %q", h.Name)
		}
	}
}

func checkAccepted(t *testing.T, a *Archive) {
	l := a.Listing()
	if l.Files == 0 || l.Files > limit.Files || l.Bytes > limit.Unpacked || l.Content.IsZero() || l.Tree.IsZero() {
		t.Fatalf("accepted with the listing %+v", l)
	}
	root := openRoot(t, t.TempDir())
	if err := Unpack(a, root, UnpackOptions{}); err != nil {
		t.Fatal(err)
	}
	d, err := tree.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if d.Listing().Content != l.Content || d.Listing().Tree != l.Tree || d.Listing().Files != l.Files {
		t.Fatalf("unpacked: %v, %v; archive: %v, %v", d.Listing().Content, d.Listing().Tree, l.Content, l.Tree)
	}
	first := packed(t, a)
	again, report, err := Check(FromBytes(first), Options{Policy: lenient()})
	if err != nil || again == nil || again.Listing().Tree != l.Tree || again.Listing().Content != l.Content {
		t.Fatalf("packed again: %v, %v", report, err)
	}
	if !bytes.Equal(packed(t, again), first) || !bytes.Equal(packed(t, d), first) {
		t.Fatal("packing is not stable")
	}
}

// FuzzGzip: the stream accepts exactly what the standard library's reader accepts as one member with nothing
// after it, and reads the same bytes from it.
func FuzzGzip(f *testing.F) {
	good := zip(f, []byte(strings.Repeat("some text, some text ", 20)))
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(append(bytes.Clone(good), good...))
	f.Add(append(bytes.Clone(good), 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := readStream(b)
		var faulted *fault
		if err != nil && !errors.As(err, &faulted) {
			t.Fatal(err)
		}
		want, wantErr := readStandard(b)
		if len(b) > 3 && b[3]&0xe0 != 0 || len(b) == 0 { // reserved flags are ours to refuse
			wantErr = stdgzip.ErrHeader
		}
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("read %d bytes, %v; the standard library %d bytes, %v", len(got), err, len(want), wantErr)
		}
	})
}

func readStream(b []byte) ([]byte, error) {
	s, err := openStream(FromBytes(b), false, nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	got, err := io.ReadAll(s)
	if err == nil {
		err = s.finish()
	}
	return got, err
}

func readStandard(b []byte) ([]byte, error) {
	in := bytes.NewReader(b)
	zr, err := stdgzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	zr.Multistream(false)
	want, err := io.ReadAll(zr)
	if err == nil && in.Len() > 0 {
		err = errors.New("bytes follow")
	}
	return want, err
}
