package server_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// algorithm is an algorithm pack that passes gate 1.
func algorithm(name, version string) map[string]string {
	return map[string]string{
		"plugin.yaml": fmt.Sprintf("schema: forge/plugin/v1\nname: %s\nversion: %q\nkind: algorithm\nentrypoint: main:install\nsummary: test\n", name, version),
		"main.py":     "def install():\n    return 1\n",
	}
}

// tuneplaneAlgorithm is the same for the other dialect.
func tuneplaneAlgorithm(name, version string) map[string]string {
	files := algorithm(name, version)
	files["plugin.yaml"] = strings.NewReplacer("forge/plugin/v1", "tuneplane/plugin/v1", "kind:", "capability:").Replace(files["plugin.yaml"])
	return files
}

// with is files with others in place of, or beside, its own.
func with(files map[string]string, more ...string) map[string]string {
	files = maps.Clone(files)
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

// ownPack is a pack of testdata/packs.
func ownPack(tb testing.TB, name string) map[string]string {
	tb.Helper()
	files := map[string]string{}
	root := path.Join("packs", name)
	err := fs.WalkDir(testdata.FS, root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := testdata.FS.ReadFile(p)
		files[strings.TrimPrefix(p, root+"/")] = string(content)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return files
}

// archiveOf is a gzip tar of the files, in path order.
func archiveOf(tb testing.TB, files map[string]string) []byte {
	tb.Helper()
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	tw := tar.NewWriter(zw)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(files[name])), Mode: 0o644, Format: tar.FormatPAX}
		if err := tw.WriteHeader(&h); err != nil {
			tb.Fatal(err)
		}
		if _, err := tw.Write([]byte(files[name])); err != nil {
			tb.Fatal(err)
		}
	}
	for _, c := range []interface{ Close() error }{tw, zw} {
		if err := c.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	return out.Bytes()
}

func zipped(tb testing.TB, plain []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	if _, err := zw.Write(plain); err != nil {
		tb.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// artifact is a pack as it goes over the distribution protocol.
type artifact struct {
	repository, tag         string // the repository without its owner
	manifest, config, layer []byte
	content, tree           digest.Digest
}

// artifactOf makes the artifact of an archive. Where gate 1 refuses the pack, it has the shape of an artifact all the
// same and claims what can be said of the bytes; verdict is the one of a check on the publisher's own machine.
func artifactOf(tb testing.TB, layer []byte) (artifact, admission.Decision) {
	tb.Helper()
	a, found, err := archive.Check(archive.FromBytes(layer), archive.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	out := artifact{repository: "demo", tag: "1.0.0", layer: layer, config: []byte("{}"), content: digest.FromBytes([]byte("content")), tree: digest.FromBytes([]byte("tree"))}
	if a == nil {
		verdict, err := admission.CheckPack(nil, found, admission.CheckOptions{})
		if err != nil {
			tb.Fatal(err)
		}
		out.manifest = bareManifest(tb, out)
		return out, verdict
	}
	defer a.Close()
	out.content, out.tree = a.Listing().Content, a.Listing().Tree
	verdict, err := admission.CheckPack(a, found, admission.CheckOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	p, _, err := pack.Check(a, pack.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	if m := p.Manifest; m != nil && name.IsSegment(m.Name) && name.IsSegment(m.Version) {
		out.repository, out.tag = strings.ToLower(m.Name), m.Version
	}
	if !verdict.Allowed {
		out.manifest = bareManifest(tb, out)
		return out, verdict
	}
	if out.config, err = pack.BuildConfig(p); err == nil {
		out.manifest, err = pack.BuildManifest(p, descriptor(layer), descriptor(out.config))
	}
	if err != nil {
		tb.Fatal(err)
	}
	return out, verdict
}

func descriptor(b []byte) digest.Descriptor {
	return digest.Descriptor{Digest: digest.FromBytes(b), Size: int64(len(b))}
}

// bareManifest is the manifest of an algorithm pack that its publisher made without asking whether it passes.
func bareManifest(tb testing.TB, a artifact) []byte {
	tb.Helper()
	part := func(mediaType string, b []byte) map[string]any {
		return map[string]any{"mediaType": mediaType, "digest": digest.FromBytes(b).String(), "size": len(b)}
	}
	layer := part(pack.MediaTypeLayer, a.layer)
	layer["annotations"] = map[string]string{"org.opencontainers.image.title": a.repository + "-" + a.tag + ".tar.gz"}
	m, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": imageManifest, "artifactType": pack.KindAlgorithm.ArtifactType(),
		"config": part(pack.MediaTypeConfig, a.config), "layers": []any{layer},
		"annotations": map[string]string{pack.AnnotationContent: a.content.String(), pack.AnnotationTree: a.tree.String()},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

const (
	imageManifest = "application/vnd.oci.image.manifest.v1+json"
	imageIndex    = "application/vnd.oci.image.index.v1+json"
)

// pushBlob uploads a blob in one request.
func (g *gatehouse) pushBlob(as, repository string, b []byte) {
	g.tb.Helper()
	g.do(call{as: as, method: http.MethodPost, path: "/v2/" + repository + "/blobs/uploads/?digest=" + digest.FromBytes(b).String(), body: b}).want(g.tb, http.StatusCreated)
}

// putManifest puts a manifest under a reference.
func (g *gatehouse) putManifest(as, repository, reference, mediaType string, m []byte) reply {
	g.tb.Helper()
	return g.do(call{as: as, method: http.MethodPut, path: "/v2/" + repository + "/manifests/" + reference, body: m, header: map[string]string{"Content-Type": mediaType}})
}

// push publishes an artifact below owner over the distribution protocol.
func (g *gatehouse) push(as, owner string, a artifact) reply {
	g.tb.Helper()
	repository := owner + "/" + a.repository
	g.pushBlob(as, repository, a.layer)
	g.pushBlob(as, repository, a.config)
	return g.putManifest(as, repository, a.tag, imageManifest, a.manifest)
}

// publish publishes an archive below the account's name over REST, as the real clients do.
func (g *gatehouse) publish(as string, archive []byte) reply {
	g.tb.Helper()
	return g.do(call{as: as, method: http.MethodPost, path: "/api/plugins/publish", body: archive, header: map[string]string{"Content-Type": "application/gzip"}})
}

// published publishes files over REST, which must succeed.
func (g *gatehouse) published(as string, files map[string]string) wire.Plugin {
	g.tb.Helper()
	var p wire.Plugin
	g.publish(as, archiveOf(g.tb, files)).want(g.tb, http.StatusOK).into(g.tb, &p)
	return p
}

// rulesOf are the ids of a verdict's violations, sorted.
func rulesOf(d admission.Decision) []string {
	ids := make([]string, len(d.Violations))
	for i, v := range d.Violations {
		ids[i] = string(v.Rule)
	}
	slices.Sort(ids)
	return ids
}

var _ tree.Tree = (*archive.Archive)(nil)
