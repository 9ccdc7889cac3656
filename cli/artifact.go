package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// artifact is a pack made ready for the registry (design.md 2). Its archive lies in a temporary folder: close it.
type artifact struct {
	client.Artifact
	pack     *pack.Pack
	report   rule.Report        // what the archive rules and the pack rules found: warnings only
	decision admission.Decision // of the check without a registry
	digest   digest.Digest      // of the manifest
	archive  string             // path
}

func (a *artifact) close() error { return os.RemoveAll(filepath.Dir(a.archive)) }

// buildArtifact checks a directory or an archive and makes its artifact. A pack that is refused is a *rule.Denied.
func buildArtifact(path string, opt admission.CheckOptions) (a *artifact, err error) {
	err = withTree(path, opt.Policy, func(t tree.Tree, found rule.Report) error {
		decision, err := admission.CheckPack(t, found, opt)
		if err != nil {
			return err
		}
		if !decision.Allowed {
			return decision.Err()
		}
		a, err = newArtifact(t, found, decision, opt)
		return err
	})
	return a, err
}

func newArtifact(t tree.Tree, found rule.Report, decision admission.Decision, opt admission.CheckOptions) (a *artifact, err error) {
	p, report, err := pack.Check(t, pack.Options{Policy: opt.Policy, Dialect: opt.Dialect})
	if err != nil {
		return nil, err
	}
	found.Merge(report)
	dir, err := os.MkdirTemp("", "sf-pack-*")
	if err != nil {
		return nil, err
	}
	a = &artifact{pack: p, report: found, decision: decision, archive: filepath.Join(dir, p.Manifest.ArchiveName())}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	packed, err := packTo(a.archive, t)
	if err != nil {
		return nil, err
	}
	if a.Config, err = pack.BuildConfig(p); err != nil {
		return nil, err
	}
	a.Layer = digest.Descriptor{MediaType: pack.MediaTypeLayer, Digest: packed.Digest, Size: packed.Size}
	config := digest.Descriptor{MediaType: pack.MediaTypeConfig, Digest: digest.FromBytes(a.Config), Size: int64(len(a.Config))}
	if a.Manifest, err = pack.BuildManifest(p, a.Layer, config); err != nil {
		return nil, err
	}
	a.digest = digest.FromBytes(a.Manifest)
	a.Open = func() (io.ReadCloser, error) { return os.Open(a.archive) }
	return a, nil
}

// packTo writes the archive of a tree to a new file.
func packTo(path string, t tree.Tree) (archive.Packed, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return archive.Packed{}, err
	}
	packed, err := archive.Pack(f, t)
	return packed, errors.Join(err, f.Close())
}

// describeArtifact is what pack and publish print, for people and for programs.
type describeArtifact struct {
	Name      string        `json:"name"` // <owner>/<name>, or the name alone when no owner is known
	Version   string        `json:"version"`
	Kind      pack.Kind     `json:"kind"`
	Content   digest.Digest `json:"content"`
	Tree      digest.Digest `json:"tree"`
	Manifest  digest.Digest `json:"manifest"`
	Archive   digest.Digest `json:"archive"`
	Size      int64         `json:"size"` // bytes of the archive
	Reference string        `json:"reference,omitempty"`
	Path      string        `json:"path,omitempty"`
	Published bool          `json:"published"`
}

func (a *artifact) describe(owner string) describeArtifact {
	d := describeArtifact{
		Name: a.pack.Manifest.Name, Version: a.pack.Manifest.Version, Kind: a.pack.Manifest.Kind, Content: a.pack.Content(),
		Tree: a.pack.Tree(), Manifest: a.digest, Archive: a.Layer.Digest, Size: a.Layer.Size,
	}
	if owner != "" {
		d.Name = owner + "/" + d.Name
	}
	return d
}

// print shows what was made.
func (d describeArtifact) print(w io.Writer, did string) error {
	_, err := fmt.Fprintf(w, "%s %s@%s (%s)\n   content  %s\n   tree     %s\n   manifest %s\n   archive  %s, %d bytes\n",
		did, d.Name, d.Version, d.Kind, d.Content, d.Tree, d.Manifest, d.Archive, d.Size)
	if d.Reference != "" && err == nil {
		_, err = fmt.Fprintf(w, "   ref      %s\n", d.Reference)
	}
	if d.Path != "" && err == nil {
		_, err = fmt.Fprintf(w, "   in       %s\n", d.Path)
	}
	return err
}
