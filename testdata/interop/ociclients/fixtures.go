package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
)

// Media types of the images here.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// descriptor is one of the OCI image specification.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// layout is an OCI image layout being written.
type layout struct {
	dir  string
	errs []error
}

// makeFixtures writes what a client pushes:
//
//	image      an image of this machine's platform, tag v1
//	multi      an index of two platforms, tag v1
//	nested     an index that holds such an index, tag v1
//	flat       a layout that is itself such an index, as crane pushes it
//	pack       a pack clip-<client> 1.2.0, as `sf plugin pack` writes it
//	pack-other other bytes under the same name and version
//	file.txt, predicate.json, rootfs.tar
func (r *round) makeFixtures() error {
	image, multi, nested, flat := newLayout(r.file("image")), newLayout(r.file("multi")), newLayout(r.file("nested")), newLayout(r.file("flat"))
	image.tag("v1", image.image(r.client, runtime.GOARCH))
	multi.tag("v1", multi.index(multi.image(r.client, "amd64"), multi.image(r.client, "arm64")))
	nested.tag("v1", nested.index(nested.index(nested.image(r.client, "amd64"), nested.image(r.client, "arm64"))))
	flat.top(flat.image(r.client, "amd64"), flat.image(r.client, "arm64"))
	rootfs, err := tarOf("hello from " + r.client + "\n")
	return errors.Join(errors.Join(image.errs...), errors.Join(multi.errs...), errors.Join(nested.errs...), errors.Join(flat.errs...), err,
		os.WriteFile(r.file("rootfs.tar"), rootfs, 0o644),
		os.WriteFile(r.file("file.txt"), []byte("an artifact of "+r.client+"\n"), 0o644),
		os.WriteFile(r.file("predicate.json"), []byte(`{"checked":true}`+"\n"), 0o644),
		r.makePack("pack", ""), r.makePack("pack-other", "# other bytes\n"))
}

// makePack writes the artifact of a pack that no other client publishes.
func (r *round) makePack(name, more string) error {
	src := filepath.Join(r.dir, name+"-src")
	module := filepath.Join(src, "clip")
	if err := os.MkdirAll(module, 0o755); err != nil {
		return err
	}
	manifest := fmt.Sprintf("schema: forge/plugin/v1\nname: %s\nversion: \"1.2.0\"\nkind: algorithm\nentrypoint: clip.patch:install\n", r.packName())
	err := errors.Join(
		os.WriteFile(filepath.Join(src, "plugin.yaml"), []byte(manifest), 0o644),
		os.WriteFile(filepath.Join(module, "__init__.py"), nil, 0o644),
		os.WriteFile(filepath.Join(module, "patch.py"), []byte("def install(params, **context):\n    pass\n"+more), 0o644))
	if err != nil {
		return err
	}
	_, screen, err := r.command([]string{r.sf, "plugin", "pack", src, "-o", r.file(name)})
	if err != nil {
		return fmt.Errorf("sf plugin pack: %w\n%s", err, screen)
	}
	return nil
}

func (r *round) packName() string { return "clip-" + r.client }

// pack is the repository that takes the client's pack.
func (r *round) pack() string { return r.host + "/alice/" + r.packName() }

func newLayout(dir string) *layout {
	l := &layout{dir: dir}
	l.check(os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755))
	l.check(os.WriteFile(filepath.Join(dir, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644))
	return l
}

func (l *layout) check(err error) { l.errs = append(l.errs, err) }

func (l *layout) blob(mediaType string, content []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	l.check(os.WriteFile(filepath.Join(l.dir, "blobs", "sha256", sum), content, 0o644))
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(content)}
}

func (l *layout) document(mediaType string, v any) descriptor {
	content, err := json.Marshal(v)
	l.check(err)
	return l.blob(mediaType, content)
}

// image adds an image with one layer.
func (l *layout) image(owner, arch string) descriptor {
	files, err := tarOf(fmt.Sprintf("hello from %s on %s\n", owner, arch))
	l.check(err)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(files)
	l.check(errors.Join(err, z.Close()))
	config := l.document(typeConfig, map[string]any{
		"architecture": arch, "os": "linux", "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(files))}},
	})
	d := l.document(typeManifest, map[string]any{"schemaVersion": 2, "mediaType": typeManifest, "config": config,
		"layers": []descriptor{l.blob(typeLayer, packed.Bytes())}})
	d.Platform = &platform{arch, "linux"}
	return d
}

func (l *layout) index(children ...descriptor) descriptor {
	return l.document(typeIndex, map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": children})
}

// tag names what the layout holds.
func (l *layout) tag(name string, d descriptor) {
	d.Annotations = map[string]string{"org.opencontainers.image.ref.name": name}
	l.top(d)
}

// top writes the layout's own index.
func (l *layout) top(list ...descriptor) {
	content, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": list})
	l.check(errors.Join(err, os.WriteFile(filepath.Join(l.dir, "index.json"), content, 0o644)))
}

// tagged is the digest of what a layout names.
func (r *round) tagged(name string) string {
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal([]byte(r.read(name+"/index.json")), &index); err != nil || len(index.Manifests) != 1 {
		return fmt.Sprintf("%s names %d manifests (%v)", name, len(index.Manifests), err)
	}
	return index.Manifests[0].Digest
}

// noiseBytes is what makes a layer too large to lie beside its row.
const noiseBytes = 200_000

// tarOf is an archive of a file hello.txt and one that does not compress.
func tarOf(hello string) ([]byte, error) {
	noise := make([]byte, noiseBytes)
	random := rand.New(rand.NewPCG(uint64(len(hello)), uint64(hello[0])))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	var errs []error
	for _, file := range []struct {
		name    string
		content []byte
	}{{"hello.txt", []byte(hello)}, {"noise.bin", noise}} {
		errs = append(errs, w.WriteHeader(&tar.Header{Name: file.name, Mode: 0o644, Size: int64(len(file.content)), Typeflag: tar.TypeReg}))
		_, err := w.Write(file.content)
		errs = append(errs, err)
	}
	return b.Bytes(), errors.Join(append(errs, w.Close())...)
}

// layerOf is the digest of the first layer of a manifest in a file.
func (r *round) layerOf(name string) string {
	var manifest struct{ Layers []descriptor }
	if err := json.Unmarshal([]byte(r.read(name)), &manifest); err != nil || len(manifest.Layers) == 0 {
		return fmt.Sprintf("%s has %d layers (%v)", name, len(manifest.Layers), err)
	}
	return manifest.Layers[0].Digest
}

func digestOf(content string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))) }

// word is a truth in words, for comparing.
func word(b bool) string { return fmt.Sprint(b) }
