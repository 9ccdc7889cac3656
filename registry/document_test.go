package registry

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

const emptyBlob = `{"mediaType": "application/vnd.oci.empty.v1+json", "digest": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", "size": 2}`

// manifestWith is a valid image manifest with more members, each ending in a comma.
func manifestWith(members string) []byte {
	return fmt.Appendf(nil, `{%s "schemaVersion": 2, "mediaType": %q, "config": %s, "layers": [%s]}`, members, mediaImageManifest, emptyBlob, emptyBlob)
}

func readText(mediaType string, content []byte) (Manifest, document, error) {
	s := &Service{now: time.Now}
	return s.readManifest("alice/x", Reference{Tag: "v1"}, mediaType, content)
}

func TestReadManifest(t *testing.T) {
	subject := `"subject": ` + strings.Replace(emptyBlob, "44136f", "000000", 1) + ","
	many := func(list string, n int) string {
		return `"` + list + `": [` + strings.Repeat(emptyBlob+",", n-1) + emptyBlob + "]"
	}
	tests := []struct {
		name      string
		mediaType string
		content   []byte
		want      Code // "" accepts
	}{
		{"whole", mediaImageManifest, manifestWith(""), ""},
		{"without mediaType", mediaImageManifest, bytes.Replace(manifestWith(""), []byte(`"mediaType": "`+mediaImageManifest+`",`), nil, 1), ""},
		{"docker", mediaDockerManifest, bytes.Replace(manifestWith(""), []byte(mediaImageManifest), []byte(mediaDockerManifest), 1), ""},
		{"subject", mediaImageManifest, manifestWith(subject), ""},
		{"unknown member", mediaImageManifest, manifestWith(`"org.example": {"Digest": "x", "LAYERS": 1},`), ""},
		{"annotations in two cases", mediaImageManifest, manifestWith(`"annotations": {"a": "1", "A": "2", "layers": "x", "esc": "\u001b"},`), ""},
		{"same layer 10,000 times", mediaImageManifest, fmt.Appendf(nil, `{"config": %s, %s}`, emptyBlob, many("layers", 10_000)), ""},
		{"index", mediaImageIndex, []byte(`{"schemaVersion": 2, ` + many("manifests", 2) + `}`), ""},
		{"empty index", mediaImageIndex, []byte(`{"schemaVersion": 2, "manifests": []}`), ""},
		{"unknown type", "application/vnd.example+json", []byte(`{"layers": 1, "layers": 2}`), ""},
		{"unknown type, no JSON", "application/vnd.example", []byte{0, 1, 2}, ""},

		{"two media types", mediaImageManifest, bytes.Replace(manifestWith(""), []byte("image.manifest.v1"), []byte("image.index.v1"), 1), ManifestInvalid},
		{"known under an unknown type", "application/json", manifestWith(""), ManifestInvalid},
		{"look-alike of layers", mediaImageManifest, bytes.Replace(manifestWith(""), []byte(`"layers"`), []byte(`"Layers"`), 1), ManifestInvalid},
		{"look-alike by long s", mediaImageManifest, bytes.Replace(manifestWith(""), []byte(`"layers"`), []byte(`"layer`+"\u017f"+`"`), 1), ManifestInvalid},
		{"look-alike by escape", mediaImageManifest, bytes.Replace(manifestWith(""), []byte(`"layers"`), []byte(`"layer\u017f"`), 1), ManifestInvalid},
		{"look-alike in a layer", mediaImageManifest, bytes.Replace(manifestWith(""), []byte(`"size": 2}]`), []byte(`"Size": 2}]`), 1), ManifestInvalid},
		{"look-alike in the subject", mediaImageManifest, manifestWith(strings.Replace(subject, `"digest"`, `"DIGEST"`, 1)), ManifestInvalid},
		{"no config", mediaImageManifest, []byte(`{"layers": []}`), ManifestInvalid},
		{"config null", mediaImageManifest, []byte(`{"config": null, "layers": []}`), ManifestInvalid},
		{"index with layers", mediaImageIndex, []byte(`{"manifests": [], "layers": []}`), ManifestInvalid},
		{"no object", mediaImageIndex, []byte(`null`), ManifestInvalid},
		{"array", mediaImageIndex, []byte(`[]`), ManifestInvalid},
		{"empty", mediaImageManifest, nil, ManifestInvalid},
		{"negative size", mediaImageManifest, bytes.Replace(manifestWith(""), []byte(`"size": 2}]`), []byte(`"size": -2}]`), 1), ManifestInvalid},
		{"fractional size", mediaImageManifest, bytes.Replace(manifestWith(""), []byte(`"size": 2}]`), []byte(`"size": 2.5}]`), 1), ManifestInvalid},
		{"huge size", mediaImageManifest, bytes.Replace(manifestWith(""), []byte(`"size": 2}]`), []byte(`"size": 9223372036854775808}]`), 1), ManifestInvalid},
		{"layer without digest", mediaImageManifest, bytes.Replace(manifestWith(""), []byte(`"digest"`), []byte(`"x"`), 1), ManifestInvalid},
		{"subject without size is of 0 bytes", mediaImageManifest, manifestWith(`"subject": {"mediaType": "a/b", "digest": "sha256:x"},`), ManifestInvalid},
		{"after the end", mediaImageManifest, append(manifestWith(""), '{', '}'), ManifestInvalid},
		{"too large", mediaImageManifest, append(manifestWith(""), bytes.Repeat([]byte(" "), 4<<20)...), TooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, _, err := readText(tt.mediaType, tt.content)
			if CodeOf(err) != tt.want {
				t.Errorf("%v (code %s), want code %q", err, CodeOf(err), tt.want)
			}
			if err == nil && m.Digest != digest.FromBytes(tt.content) {
				t.Errorf("digest %s", m.Digest)
			}
		})
	}
}

func TestReadManifestByDigest(t *testing.T) {
	s := &Service{now: time.Now}
	content := manifestWith("")
	h := digest.SHA512.New()
	h.Write(content)
	want := digest.FromHash(digest.SHA512, h)
	for _, ref := range []Reference{{Digest: want}, {Tag: "v1", Digest: want}} {
		if m, _, err := s.readManifest("alice/x", ref, mediaImageManifest, content); err != nil || m.Digest != want {
			t.Errorf("%+v: %s, %v", ref, m.Digest, err)
		}
		if _, _, err := s.readManifest("alice/x", ref, mediaImageManifest, append(content, ' ')); CodeOf(err) != DigestInvalid {
			t.Errorf("%+v of other content: %v, want DigestInvalid", ref, err)
		}
	}
}

func TestReadManifestListsReferencesOnce(t *testing.T) {
	other := strings.Replace(emptyBlob, "44136f", "000000", 1)
	m, _, err := readText(mediaImageManifest, fmt.Appendf(nil, `{"config": %s, "layers": [%s, %s, %s], "subject": %s}`, emptyBlob, other, emptyBlob, other, other))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.References) != 2 || m.References[1] != m.Subject {
		t.Errorf("references %v, subject %s: want the config and the layer once each, the subject's digest too since a layer has it", m.References, m.Subject)
	}
}

// corpusManifests gives the hostile manifests of the corpus, unpacked.
func corpusManifests(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := fs.Glob(testdata.FS, "corpus/m*")
	if err != nil || len(names) == 0 {
		t.Fatalf("corpus: %d manifests, %v", len(names), err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		content, err := fs.ReadFile(testdata.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			content = gunzip(t, content)
		}
		all[path.Base(name)] = content
	}
	return all
}

func gunzip(t testing.TB, content []byte) []byte {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	content, err = io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// FuzzReadManifest: no content makes readManifest panic or gives an error without a code; of what it accepts, a decoder
// that minds the case of names reads the very descriptors that the registry read.
func FuzzReadManifest(f *testing.F) {
	for _, content := range corpusManifests(f) {
		if len(content) < 1<<16 {
			f.Add(content, false)
			f.Add(content, true)
		}
	}
	f.Add(manifestWith(`"annotations": {"a": "b"},`), false)
	f.Fuzz(func(t *testing.T, content []byte, isIndex bool) {
		mediaType := mediaImageManifest
		if isIndex {
			mediaType = mediaImageIndex
		}
		m, doc, err := readText(mediaType, content)
		if err != nil {
			if code := CodeOf(err); code.Meaning().Status >= 500 {
				t.Errorf("%v has code %s", err, code)
			}
			return
		}
		var exact map[string]json.RawMessage
		if err := json.Unmarshal(content, &exact); err != nil {
			t.Fatalf("accepted, but no JSON object: %v", err)
		}
		for name, list := range map[string][]descriptor{"layers": doc.Layers, "manifests": doc.Manifests} {
			var want []map[string]any
			if raw, ok := exact[name]; ok {
				if err := json.Unmarshal(raw, &want); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if len(want) != len(list) {
				t.Fatalf("%s: an exact decoder sees %d, the registry %d", name, len(want), len(list))
			}
			for i, d := range list {
				if want[i]["digest"] != d.Digest.String() {
					t.Errorf("%s[%d]: an exact decoder sees %v, the registry %s", name, i, want[i]["digest"], d.Digest)
				}
			}
		}
		for _, d := range m.References {
			if d.IsZero() {
				t.Error("a reference to nothing")
			}
		}
	})
}
