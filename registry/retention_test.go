package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

func (w *world) tags(repository string) []string {
	w.t.Helper()
	tags, err := w.other.Tags(context.Background(), root, repository, "", -1)
	w.must("tags", err)
	return tags
}

// TestRetention holds a rule's bounds, what it leaves alone, and that what it gives up is gone from the store.
func TestRetention(t *testing.T) {
	t.Parallel()
	set := eager()
	set.Retention = []registry.RetentionRule{
		{Repositories: "alice/app", KeepTags: 2, KeepFor: time.Hour, Keep: []string{"latest", "v1?"}, UntaggedAfter: 24 * time.Hour},
		{Repositories: "alice/**", UntaggedAfter: 24 * time.Hour},
	}
	everyEngine(t, set, func(t *testing.T, w *world) {
		ctx := context.Background()
		for n := 1; n <= 5; n++ {
			w.must("push", pushImage(ctx, w.other, "alice/app", n, false))
			w.must("push elsewhere", pushImage(ctx, w.other, "bob/app", n, false))
			w.pass(time.Minute)
		}
		w.must("push", pushImage(ctx, w.other, "alice/app", 10, false))
		first := digest.FromBytes(image(configOf(1), blobOf(1), digest.Digest{}))
		signature := image(configOf(20), blobOf(20), digest.Digest{})
		for _, content := range [][]byte{blobOf(20), configOf(20)} {
			w.must("push", push(ctx, w.other, "alice/app", content, false))
		}
		w.must("sign", putManifest(ctx, w.other, "alice/app", strings.Replace(first.String(), ":", "-", 1)+".sig", signature))
		referrer := image(configOf(20), blobOf(20), first)
		w.must("refer", putManifest(ctx, w.other, "alice/app", digest.FromBytes(referrer).String(), referrer))

		w.collect()
		if got := w.tags("alice/app"); len(got) != 7 {
			t.Errorf("within keep_for: tags %v, want all", got)
		}
		w.pass(2 * time.Hour)
		var told []string
		dry, err := w.janitor.Collect(ctx, root, registry.CollectOptions{DryRun: true, Each: func(r registry.Removal) error {
			told = append(told, r.Kind+" "+r.Repository+" "+r.Tag+" "+r.Reason)
			return nil
		}})
		w.must("dry run", err)
		if dry.Tags != 3 || len(told) != 3 || !strings.Contains(told[0], "retention of alice/app") {
			t.Errorf("a dry run tells of %q, want the tags v1, v2, v3 with the rule", told)
		}
		if got := w.tags("alice/app"); len(got) != 7 {
			t.Errorf("a dry run changed the tags: %v", got)
		}
		w.collect()
		want := []string{"v10", "v4", "v5"}
		if got := slices.DeleteFunc(w.tags("alice/app"), func(t string) bool { return strings.HasPrefix(t, "sha256-") }); !slices.Equal(got, want) {
			t.Errorf("tags %v, want %v", got, want)
		}
		w.must("a manifest that lost its tag just now", pull(w.other, "alice/app", first.String()))
		for range 4 { // the image, then what belonged to it
			w.pass(25 * time.Hour)
			w.collect()
		}
		if got := w.tags("alice/app"); !slices.Equal(got, want) {
			t.Errorf("tags %v, want %v: a signature goes with its subject", got, want)
		}
		for what, reference := range map[string]string{"the image": first.String(), "its referrer": digest.FromBytes(referrer).String(), "its signature": digest.FromBytes(signature).String()} {
			if err := pull(w.other, "alice/app", reference); registry.CodeOf(err) != registry.ManifestUnknown {
				t.Errorf("%s: %v, want ManifestUnknown", what, err)
			}
		}
		for _, n := range []int{4, 5, 10} {
			w.must("a kept tag", pull(w.other, "alice/app", tagOf(n)))
		}
		for n := 1; n <= 5; n++ {
			w.must("a repository without a rule", pull(w.other, "bob/app", tagOf(n)))
		}
		if strings.Contains(w.stored(), digest.FromBytes(blobOf(20)).String()) || !strings.Contains(w.stored(), digest.FromBytes(blobOf(1)).String()) {
			t.Error("the store holds what nobody names, or lacks what bob/app names")
		}
	})
}

// TestRetentionKeepsIndexes holds that a manifest stays for as long as an index names it, and that one which is pushed again
// begins to wait anew.
func TestRetentionKeepsIndexes(t *testing.T) {
	t.Parallel()
	set := eager()
	set.Retention = []registry.RetentionRule{{Repositories: "**", UntaggedAfter: time.Hour}}
	everyEngine(t, set, func(t *testing.T, w *world) {
		ctx := context.Background()
		child := image(configOf(1), blobOf(1), digest.Digest{})
		d := digest.FromBytes(child)
		pushChild := func() {
			for _, content := range [][]byte{blobOf(1), configOf(1)} {
				w.must("push", push(ctx, w.other, "alice/app", content, false))
			}
			w.must("push", putManifest(ctx, w.other, "alice/app", d.String(), child))
		}
		pushChild()
		index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType,
			"manifests": []any{map[string]any{"mediaType": imageType, "digest": d.String(), "size": len(child)}}})
		w.must("index", err)
		w.must("push", putManifest(ctx, w.other, "alice/app", "latest", index))
		for range 3 {
			w.pass(2 * time.Hour)
			w.collect()
		}
		w.must("a part of an index", pull(w.other, "alice/app", d.String()))
		w.must("delete", w.other.DeleteManifest(ctx, root, "alice/app", registry.Reference{Tag: "latest"}))
		w.collect()
		w.pass(30 * time.Minute)
		pushChild()
		w.pass(45 * time.Minute)
		w.collect() // the index goes; the child is loose from now on
		w.pass(30 * time.Minute)
		w.collect()
		w.must("half an hour after it came loose", pull(w.other, "alice/app", d.String()))
		w.pass(time.Hour)
		w.collect()
		if err := pull(w.other, "alice/app", d.String()); registry.CodeOf(err) != registry.ManifestUnknown {
			t.Errorf("an hour and a half after it came loose: %v, want ManifestUnknown", err)
		}
	})
}

func TestRetentionRuleCheck(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]registry.RetentionRule{
		"":                {Repositories: "a/**", KeepTags: 3, Keep: []string{"v*"}},
		"repositories":    {Repositories: "A B", KeepTags: 3},
		"keep_tags":       {Repositories: "a/b", KeepTags: -1, UntaggedAfter: 1},
		"is not negative": {Repositories: "a/b", KeepFor: -1},
		"keep[0]":         {Repositories: "a/b", KeepTags: 1, Keep: []string{"["}},
		"removes nothing": {Repositories: "a/b"},
	} {
		err := r.Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
}

// TestUnknownManifestsKeepWhatTheyName holds that a manifest of a kind that the registry does not know protects the blobs that
// it names: the registry can't tell what they mean.
func TestUnknownManifestsKeepWhatTheyName(t *testing.T) {
	t.Parallel()
	w := newSQLiteWorld(t, eager())
	ctx := context.Background()
	named, loose := large("named"), large("loose")
	w.must("push", push(ctx, w.other, "alice/app", named, false))
	w.must("push", push(ctx, w.other, "alice/app", loose, false))
	content := []byte("#!of-a-kind-of-its-own\nlayer = " + digest.FromBytes(named).String() + "\n")
	_, err := w.other.PutManifest(ctx, root, "alice/app", registry.Reference{Tag: "own"}, "application/vnd.example.own", content)
	w.must("push the manifest", err)
	w.collect()
	w.must("a blob that it names", pullBlob(w.other, "alice/app", digest.FromBytes(named)))
	if err := pullBlob(w.other, "alice/app", digest.FromBytes(loose)); registry.CodeOf(err) != registry.BlobUnknown {
		t.Errorf("a blob that nothing names: %v, want BlobUnknown", err)
	}
	if err := w.other.DeleteBlob(ctx, root, "alice/app", digest.FromBytes(named)); registry.CodeOf(err) != registry.Unsupported {
		t.Errorf("deletion of a blob that it names: %v, want Unsupported", err)
	}
}

// TestPackRepositoriesLoseStrays holds that a repository of packs gives up what was pushed by digest and never got a tag, and
// signatures of what is not there, after a week; never a version nor what refers to one.
func TestPackRepositoriesLoseStrays(t *testing.T) {
	t.Parallel()
	everyEngine(t, eager(), func(t *testing.T, w *world) {
		ctx := context.Background()
		const repository = "alice/demo"
		put := func(n int, reference func(d digest.Digest) string, subject digest.Digest) digest.Digest {
			t.Helper()
			for _, content := range [][]byte{blobOf(n), configOf(n)} {
				w.must("push", push(ctx, w.other, repository, content, false))
			}
			content := image(configOf(n), blobOf(n), subject)
			d := digest.FromBytes(content)
			w.must("push", putManifest(ctx, w.other, repository, reference(d), content))
			return d
		}
		byDigest := func(d digest.Digest) string { return d.String() }
		signatureOf := func(of digest.Digest) func(digest.Digest) string {
			return func(digest.Digest) string { return strings.Replace(of.String(), ":", "-", 1) + ".sig" }
		}
		version := put(1, byDigest, digest.Digest{})
		w.must("publish", w.bare.Update(ctx, func(tx registry.Tx) error {
			if err := tx.SetPackRepository(repository, "demo", "demo", "algorithm"); err != nil {
				return err
			}
			return tx.InsertVersion(registry.Version{Repository: repository, Owner: "alice", PackName: "demo", Version: "1.0", Key: "1", Dialect: "forge", Kind: "algorithm", Manifest: version})
		}))
		kept := []digest.Digest{version, put(2, byDigest, version), put(3, signatureOf(version), digest.Digest{})}
		gone := []digest.Digest{put(4, byDigest, digest.Digest{}), put(5, signatureOf(digest.FromBytes(nil)), digest.Digest{})}
		w.collect()
		w.pass(6 * 24 * time.Hour)
		w.collect()
		for _, d := range append(slices.Clone(kept), gone...) {
			w.must("within a week", pull(w.other, repository, d.String()))
		}
		for range 3 {
			w.pass(8 * 24 * time.Hour)
			w.collect()
		}
		for _, d := range kept {
			w.must("a version and what refers to it", pull(w.other, repository, d.String()))
		}
		for _, d := range gone {
			if err := pull(w.other, repository, d.String()); registry.CodeOf(err) != registry.ManifestUnknown {
				t.Errorf("a stray: %v, want ManifestUnknown", err)
			}
		}
	})
}

// TestAskedForStays holds that what a client heard to be there, and so did not push again, is there when the manifest that names
// it comes: a blob whose manifest went meanwhile, and the child of an index.
func TestAskedForStays(t *testing.T) {
	t.Parallel()
	set := registry.DefaultSettings()
	set.Retention = []registry.RetentionRule{{Repositories: "**", UntaggedAfter: 24 * time.Hour}}
	everyEngine(t, set, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.must("push", pushImage(ctx, w.other, "alice/app", 1, false))
		w.must("untag", w.other.DeleteManifest(ctx, root, "alice/app", registry.Reference{Tag: tagOf(1)}))
		child := image(configOf(1), blobOf(1), digest.Digest{})
		ref := registry.Reference{Digest: digest.FromBytes(child)}
		w.collect() // finds that nothing keeps the manifest
		w.pass(25 * time.Hour)

		if _, err := w.other.StatManifest(ctx, root, "alice/app", ref); err != nil {
			t.Fatal(err)
		}
		w.collect()
		index := []byte(`{"schemaVersion":2,"mediaType":"` + imageIndex + `","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"` +
			ref.Digest.String() + `","size":` + fmt.Sprint(len(child)) + `}]}`)
		_, err := w.other.PutManifest(ctx, root, "alice/app", registry.Reference{Tag: "all"}, imageIndex, index)
		w.must("index", err)
		w.must("pull of the child", pull(w.other, "alice/app", ref.Digest.String()))

		w.must("untag", w.other.DeleteManifest(ctx, root, "alice/app", registry.Reference{Digest: digest.FromBytes(index)}))
		w.collect()
		w.pass(25 * time.Hour)
		for _, content := range [][]byte{blobOf(1), configOf(1)} {
			if _, err := w.other.StatBlob(ctx, root, "alice/app", digest.FromBytes(content)); err != nil {
				t.Fatal(err)
			}
		}
		if r := w.collect(); r.Manifests != 1 || r.Links != 0 {
			t.Errorf("collected %+v, want the manifest and none of the blobs that were asked for", r)
		}
		w.must("push by who asked", putManifest(ctx, w.other, "alice/app", "again", image(configOf(1), blobOf(1), digest.FromBytes(index))))
		w.must("pull", pull(w.other, "alice/app", "again"))

		w.pass(25 * time.Hour)
		w.must("read-only", registry.SetReadOnly(ctx, w.bare, "for a moment"))
		if _, err := w.other.StatBlob(ctx, root, "alice/app", digest.FromBytes(blobOf(1))); err != nil {
			t.Errorf("HEAD of a blob while read-only: %v", err)
		}
		w.must("writable", registry.SetReadOnly(ctx, w.bare, ""))
	})
}
