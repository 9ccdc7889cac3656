package digest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gatehouse-registry/gatehouse/digest"
)

const (
	emptySHA256 = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	emptySHA512 = "sha512:cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
)

func TestParse(t *testing.T) {
	hex64, hex128 := strings.Repeat("0a", 32), strings.Repeat("0a", 64)
	tests := []struct {
		text string
		ok   bool
	}{
		{"sha256:" + hex64, true},
		{"sha512:" + hex128, true},
		{"", false},
		{"sha256", false},
		{"sha256:", false},
		{":" + hex64, false},
		{hex64, false},
		{"sha256:" + hex64[1:], false},
		{"sha256:" + hex64 + "0", false},
		{"sha256:" + hex128, false},
		{"sha512:" + hex64, false},
		{"SHA256:" + hex64, false},
		{"sha384:" + strings.Repeat("0", 96), false},
		{"md5:" + strings.Repeat("0", 32), false},
		{"sha256:" + strings.ToUpper(hex64), false},
		{"sha256:" + strings.Repeat("g", 64), false},
		{"sha256: " + hex64[1:], false},
		{"sha256:" + hex64[2:] + "\n\n", false},
		{"sha256:sha256:" + hex64, false},
		{"sha256:" + strings.Repeat("é", 32), false},
	}
	for _, tt := range tests {
		d, err := digest.Parse(tt.text)
		if (err == nil) != tt.ok {
			t.Errorf("Parse(%q) error = %v, want accepted %v", tt.text, err, tt.ok)
			continue
		}
		if err != nil {
			if !errors.Is(err, digest.ErrMalformed) || !d.IsZero() {
				t.Errorf("Parse(%q) = %v, %v, want the zero Digest and ErrMalformed", tt.text, d, err)
			}
			continue
		}
		if d.String() != tt.text || string(d.Algorithm())+":"+d.Hex() != tt.text || d.IsZero() {
			t.Errorf("Parse(%q) gives %q, %q and %q", tt.text, d, d.Algorithm(), d.Hex())
		}
	}
}

func TestMustParsePanicsOnMalformed(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("MustParse of a malformed digest did not panic")
		}
	}()
	digest.MustParse("sha256:short")
}

func TestOfBytes(t *testing.T) {
	if got := digest.FromBytes(nil).String(); got != emptySHA256 {
		t.Errorf("FromBytes(nil) = %s, want %s", got, emptySHA256)
	}
	if got := digest.FromHash(digest.SHA512, digest.SHA512.New()).String(); got != emptySHA512 {
		t.Errorf("sha512 of nothing = %s, want %s", got, emptySHA512)
	}
	if h := digest.Algorithm("sha384").New(); h != nil {
		t.Errorf("New of an unknown algorithm = %v, want nil", h)
	}
	var zero digest.Digest
	if !zero.IsZero() || zero.String() != "" || zero.Hex() != "" || zero.Algorithm() != "" {
		t.Errorf("the zero Digest is %q", zero)
	}
}

func TestJSON(t *testing.T) {
	want := digest.Descriptor{MediaType: "text/plain", Digest: digest.FromBytes([]byte("x")), Size: 1}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := `{"mediaType":"text/plain","digest":"` + want.Digest.String() + `","size":1}`; string(text) != got {
		t.Errorf("descriptor is written as %s, want %s", text, got)
	}
	var back digest.Descriptor
	if err := json.Unmarshal(text, &back); err != nil || back != want {
		t.Errorf("descriptor reads back as %+v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"digest":""}`), &back); err != nil || !back.Digest.IsZero() {
		t.Errorf("an empty digest reads as %v, %v, want the zero Digest", back.Digest, err)
	}
	if err := json.Unmarshal([]byte(`{"digest":"sha256:00"}`), &back); !errors.Is(err, digest.ErrMalformed) {
		t.Errorf("a short digest reads with error %v, want ErrMalformed", err)
	}
}

func descriptor(b []byte) digest.Descriptor {
	return digest.Descriptor{Digest: digest.FromBytes(b), Size: int64(len(b))}
}

func TestReaderPassesWhatItPromises(t *testing.T) {
	content := bytes.Repeat([]byte("gatehouse"), 1000)
	long := digest.SHA512.New()
	long.Write(content)
	for _, want := range []digest.Descriptor{
		descriptor(content),
		{Digest: digest.FromHash(digest.SHA512, long), Size: int64(len(content))},
	} {
		for name, r := range map[string]io.Reader{
			"whole":    bytes.NewReader(content),
			"byte":     iotest.OneByteReader(bytes.NewReader(content)),
			"half":     iotest.HalfReader(bytes.NewReader(content)),
			"data+EOF": iotest.DataErrReader(bytes.NewReader(content)),
		} {
			got, err := digest.ReadAll(r, want)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s, %s: %d bytes, %v", want.Digest.Algorithm(), name, len(got), err)
			}
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	content := []byte("the bytes that were promised")
	changed := bytes.Replace(content, []byte("bytes"), []byte("bytez"), 1)
	want := descriptor(content)
	tests := []struct {
		name string
		got  []byte
		want digest.Descriptor
		size bool // the error speaks of sizes
	}{
		{"changed", changed, want, false},
		{"short", content[:10], want, true},
		{"empty", nil, want, true},
		{"long", append(bytes.Clone(content), '!'), want, true},
		{"negative size", content, digest.Descriptor{Digest: want.Digest, Size: -1}, true},
	}
	for _, tt := range tests {
		got, err := digest.ReadAll(bytes.NewReader(tt.got), tt.want)
		mismatch, ok := errors.AsType[*digest.MismatchError](err)
		if !ok {
			t.Errorf("%s: error %v, want a mismatch", tt.name, err)
			continue
		}
		if mismatch.Want != tt.want.Digest || mismatch.WantSize != tt.want.Size {
			t.Errorf("%s: the error expected %v of %d bytes, want %v", tt.name, mismatch.Want, mismatch.WantSize, tt.want)
		}
		if says := strings.Contains(err.Error(), "size differs"); says != tt.size {
			t.Errorf("%s: %q", tt.name, err)
		}
		if int64(len(got)) > max(tt.want.Size, 0) {
			t.Errorf("%s: %d bytes came through, at most %d were promised", tt.name, len(got), tt.want.Size)
		}
	}
}

func TestReaderOfNoDigest(t *testing.T) {
	if _, err := digest.ReadAll(strings.NewReader("x"), digest.Descriptor{Size: 1}); !errors.Is(err, digest.ErrMalformed) {
		t.Errorf("reading against the zero Digest: %v, want ErrMalformed", err)
	}
}

func TestReaderPassesErrorsOn(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := digest.ReadAll(iotest.ErrReader(broken), descriptor([]byte("x")))
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want the reader's own", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(emptySHA256)
	f.Add(emptySHA512)
	f.Add("sha256:" + strings.Repeat("A", 64))
	f.Fuzz(func(t *testing.T, s string) {
		d, err := digest.Parse(s)
		if err != nil {
			return
		}
		if again, err := digest.Parse(d.String()); err != nil || again != d || d.String() != s {
			t.Errorf("%q parses to %q and that to %q, %v", s, d, again, err)
		}
	})
}
