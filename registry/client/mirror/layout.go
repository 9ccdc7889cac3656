package mirror

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// What marks an OCI image layout, and the annotation of an entry of its index that holds the tag.
const (
	layoutVersion = `{"imageLayoutVersion":"` + ocispec.ImageLayoutVersion + `"}`
	tagAnnotation = ocispec.AnnotationRefName
)

// maxIndex bounds an index.json in bytes; flushEvery is how many changes of one are kept in memory.
const (
	maxIndex   = 256 * limit.MiB
	flushEvery = 256
)

// layouts are the layouts in a folder: the folder itself is the one of repository "", and DIR/NAME that of NAME. They are
// written blob by blob, each synced; an index is written anew after flushEvery changes and at the end, so what an
// interrupted copy leaves is a layout that lacks its last tags.
type layouts struct {
	dir   string
	write bool

	mu   sync.Mutex
	open map[string]*layout
}

// layout is one of them.
type layout struct {
	root  *os.Root
	dir   string
	index index
	dirty int
	types map[digest.Digest]string // media types of manifests, as the indexes that name them say
}

// index is an OCI image index: of a layout, or of what refers to a manifest.
type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType,omitempty"`
	Manifests     []descriptor `json:"manifests"`
}

func newIndex() index {
	return index{SchemaVersion: 2, MediaType: ocispec.MediaTypeImageIndex, Manifests: []descriptor{}}
}

func openLayouts(dir string, write bool) (*layouts, error) {
	if !write {
		if _, err := os.Stat(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return &layouts{dir: dir, write: write, open: map[string]*layout{}}, nil
}

// get opens a repository's layout, and makes it where layouts are written. The caller holds mu.
func (l *layouts) get(repository string) (*layout, error) {
	if one := l.open[repository]; one != nil {
		return one, nil
	}
	one := &layout{dir: filepath.Join(l.dir, filepath.FromSlash(repository)), types: map[digest.Digest]string{}}
	one.index = newIndex()
	if l.write {
		if err := one.create(); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(one.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, registry.Errorf(registry.NameUnknown, "there is no layout in %s", one.dir)
	}
	if err != nil {
		return nil, err
	}
	one.root = root
	content, err := one.readFile(ocispec.ImageIndexFile, maxIndex)
	if err == nil {
		err = json.Unmarshal(content, &one.index)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, errors.Join(registry.Errorf(registry.Invalid, "%s: %w", filepath.Join(one.dir, ocispec.ImageIndexFile), err), root.Close())
	}
	l.open[repository] = one
	return one, nil
}

// create makes an empty layout, or leaves the one that is there.
func (o *layout) create() error {
	for _, a := range []digest.Algorithm{digest.SHA256, digest.SHA512} {
		if err := os.MkdirAll(filepath.Join(o.dir, "blobs", string(a)), 0o755); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(o.dir, ocispec.ImageLayoutFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.Replace(filepath.Join(o.dir, ocispec.ImageLayoutFile), []byte(layoutVersion), 0o644)
}

func (o *layout) readFile(name string, most int64) ([]byte, error) {
	f, err := o.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, most)
}

func blobName(d digest.Digest) string { return path.Join("blobs", string(d.Algorithm()), d.Hex()) }

// with runs fn on a repository's layout, alone.
func (l *layouts) with(repository string, fn func(*layout) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, err := l.get(repository)
	if err != nil {
		return err
	}
	return fn(one)
}

// Repositories implements place: the folders below that are layouts.
func (l *layouts) Repositories(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		stop := errors.New("enough")
		err := filepath.WalkDir(l.dir, func(name string, e fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil || e.Name() != ocispec.ImageLayoutFile {
				return err
			}
			rel, err := filepath.Rel(l.dir, filepath.Dir(name))
			if err != nil {
				return err
			}
			repository := filepath.ToSlash(rel)
			if err := registry.CheckRepositoryName(repository); err != nil {
				return err
			}
			if !yield(repository, nil) {
				return stop
			}
			return nil
		})
		if err != nil && !errors.Is(err, stop) {
			yield("", err)
		}
	}
}

// entries are a copy of a layout's index.
func (l *layouts) entries(repository string) (list []descriptor, err error) {
	err = l.with(repository, func(o *layout) error {
		list = slices.Clone(o.index.Manifests)
		return nil
	})
	return list, err
}

// Tags implements place.
func (l *layouts) Tags(_ context.Context, repository string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		list, err := l.entries(repository)
		if err != nil {
			yield("", err)
			return
		}
		for _, d := range list {
			if tag := d.Annotations[tagAnnotation]; checkTag(tag) == nil && !yield(tag, nil) {
				return
			}
		}
	}
}

// Roots implements place: the entries whose name is no tag.
func (l *layouts) Roots(_ context.Context, repository string) ([]descriptor, error) {
	list, err := l.entries(repository)
	return slices.DeleteFunc(list, func(d descriptor) bool { return d.Digest.IsZero() || checkTag(d.Annotations[tagAnnotation]) == nil }), err
}

// find is the entry of a tag, or of a digest.
func (o *layout) find(reference string) (descriptor, bool) {
	for _, d := range o.index.Manifests {
		if d.Annotations[tagAnnotation] == reference || d.Digest.String() == reference {
			return d, true
		}
	}
	return descriptor{}, false
}

// Resolve implements place.
func (l *layouts) Resolve(_ context.Context, repository, reference string) (d digest.Digest, err error) {
	err = l.with(repository, func(o *layout) error {
		if d, err = digest.Parse(reference); err != nil {
			entry, ok := o.find(reference)
			if !ok {
				return registry.Errorf(registry.ManifestUnknown, "%s has no tag %q", o.dir, reference)
			}
			d = entry.Digest
		}
		return o.stat(d)
	})
	return d, err
}

// stat answers BlobUnknown for a blob that is not there.
func (o *layout) stat(d digest.Digest) error {
	_, err := o.root.Stat(blobName(d))
	if errors.Is(err, fs.ErrNotExist) {
		return registry.Errorf(registry.BlobUnknown, "%s has no blob %s", o.dir, d)
	}
	return err
}

// Manifest implements place.
func (l *layouts) Manifest(ctx context.Context, repository, reference string) (m manifest, err error) {
	d, err := l.Resolve(ctx, repository, reference)
	if err != nil {
		return m, err
	}
	err = l.with(repository, func(o *layout) error {
		content, err := o.readFile(blobName(d), limit.Manifest)
		if err != nil {
			return err
		}
		entry, _ := o.find(d.String())
		mediaType := entry.MediaType
		if mediaType == "" {
			mediaType = o.types[d]
		}
		if m, err = newManifest(mediaType, content, d); err != nil {
			return err
		}
		c, err := m.parse()
		for _, child := range c.Manifests {
			o.types[child.Digest] = child.MediaType
		}
		return err
	})
	return m, err
}

// Referrers implements place: an index names what refers to something beside the rest, and Roots finds it.
func (l *layouts) Referrers(context.Context, string, digest.Digest) ([]descriptor, bool, error) {
	return nil, true, nil
}

// HasBlob implements place.
func (l *layouts) HasBlob(_ context.Context, repository string, d digest.Digest) (bool, error) {
	err := l.with(repository, func(o *layout) error { return o.stat(d) })
	if absent(err) {
		return false, nil
	}
	return err == nil, err
}

// Blob implements place.
func (l *layouts) Blob(_ context.Context, repository string, d digest.Digest) (body io.ReadCloser, err error) {
	err = l.with(repository, func(o *layout) error {
		if err := o.stat(d); err != nil {
			return err
		}
		body, err = o.root.Open(blobName(d))
		return err
	})
	return body, err
}

// Mount implements place: each layout stands for itself.
func (l *layouts) Mount(context.Context, string, string, digest.Digest) (bool, error) {
	return false, nil
}

// PutBlob implements place.
func (l *layouts) PutBlob(_ context.Context, repository string, want digest.Descriptor, r io.Reader) error {
	var root *os.Root
	if err := l.with(repository, func(o *layout) error { root = o.root; return nil }); err != nil {
		return err
	}
	temporary := path.Join("blobs", "."+rand.Text())
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = root.Rename(temporary, blobName(want.Digest))
	}
	if err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	dir, err := root.Open(path.Dir(blobName(want.Digest)))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// PutManifest implements place.
func (l *layouts) PutManifest(ctx context.Context, repository, tag string, m manifest) error {
	want := digest.Descriptor{Digest: m.Digest, Size: int64(len(m.Content))}
	if err := l.PutBlob(ctx, repository, want, newContentReader(m)); err != nil {
		return err
	}
	c, err := m.parse()
	if err != nil {
		return err
	}
	return l.with(repository, func(o *layout) error {
		entry := m.describe(c)
		entry.ArtifactType, entry.Annotations = "", nil
		switch _, listed := o.find(m.Digest.String()); {
		case tag != "":
			o.index.Manifests = slices.DeleteFunc(o.index.Manifests, func(d descriptor) bool {
				_, named := d.Annotations[tagAnnotation]
				return d.Annotations[tagAnnotation] == tag || (!named && d.Digest == m.Digest)
			})
			entry.Annotations = map[string]string{tagAnnotation: tag}
		case listed || c.Subject == nil:
			return nil
		}
		o.index.Manifests = append(o.index.Manifests, entry)
		if o.dirty++; o.dirty >= flushEvery {
			return o.flush()
		}
		return nil
	})
}

// flush writes the index.
func (o *layout) flush() error {
	content, err := json.Marshal(o.index)
	if err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(o.dir, ocispec.ImageIndexFile), append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the index: %w", err)
	}
	o.dirty = 0
	return nil
}

// Close implements place.
func (l *layouts) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, o := range l.open {
		if l.write {
			errs = append(errs, o.flush())
		}
		errs = append(errs, o.root.Close())
	}
	l.open = map[string]*layout{}
	return errors.Join(errs...)
}
